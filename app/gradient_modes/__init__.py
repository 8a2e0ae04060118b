"""Parts of the Adjoints page."""
