"""Solvers of other packages, watched from outside: two lines in an existing training.

Nothing of theirs is imported or replaced; their own records (`torchode`) and callbacks
(`torchdiffeq`) are turned into what our hooks are told.
"""
