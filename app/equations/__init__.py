"""Equations that people type: read by a grammar of our own, never run as Python."""
