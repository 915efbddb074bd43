"""Slow twins: the rules again, plainly, over objects instead of columns."""
