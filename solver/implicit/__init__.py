"""What implicit steps need: Jacobians, linear systems, Newton's iteration, row by row."""
