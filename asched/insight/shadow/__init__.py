"""Beside another scheduler: what it decided, what we would have, and why these differ."""
