"""The step of the plain loop, traced once and run as native code: many attempts a call."""
