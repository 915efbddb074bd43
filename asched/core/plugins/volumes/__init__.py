"""Volumes: the plugins that speak of claims, volumes and their limits."""
