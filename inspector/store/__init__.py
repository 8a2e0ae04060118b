"""Files of a run: written so that a killed process loses almost nothing, read while they grow."""
