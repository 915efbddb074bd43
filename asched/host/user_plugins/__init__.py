"""Plugins of users: where they come from, their arguments, their rights."""
