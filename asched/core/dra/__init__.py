"""Dynamic resource allocation: which devices a claim gets on a node, and in which order they are
tried.

Everything here is a function of what it is given: slices, classes, devices already taken, claims
and a node. The rules of the plugin (statuses, hints, writes) stand in `core/plugins`.
"""
