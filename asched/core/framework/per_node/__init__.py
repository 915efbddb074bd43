"""Plugins of users that think of one node at a time, as the framework's own kind."""
