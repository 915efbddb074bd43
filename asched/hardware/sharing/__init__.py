"""Shared devices that are assigned by annotations, as device plugins on the nodes expect them."""
