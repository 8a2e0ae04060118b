"""Canvas components: live pictures that change in place."""
