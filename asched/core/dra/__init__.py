"""Dynamic resource allocation: which devices a claim gets on a node, and in which order they are
tried.

Everything in this package is a function of its arguments: slices, classes, devices already taken,
claims and a node. The plugin (statuses, hints, writes) is in `core/plugins`.
"""
