"""Widgets drawn from what the solver says of its settings."""
