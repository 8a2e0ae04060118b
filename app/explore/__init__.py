"""Parts of the pages that try many settings and compare runs."""
