"""Other packages' calls, answered by this solver."""
