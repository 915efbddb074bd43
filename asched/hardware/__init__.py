"""Plugins for machines that cost more than a CPU: written as users write theirs, and found as
theirs are, by entry points of this distribution. None runs unless a profile names it.

Rules   nobody imports this room, but for `lab/trace`, which plays the rules of `gpu/`; it imports
        `asched.plugin` and the objects of the API (`core/model`), as users' plugins may.
"""
