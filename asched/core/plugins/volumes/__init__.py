"""Volumes: the plugins for claims, volumes and their limits."""
