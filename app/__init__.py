"""The dashboard: views of recorded and running solves, and the worker processes behind them."""
