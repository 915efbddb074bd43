"""Plugins for accelerators, NUMA, load and network. They are installed like user plugins, by entry
points of this distribution. A plugin runs only if a profile names it.

Rules   no package imports this one, except `lab/trace`, which applies the rules of `gpu/`; it
        imports `asched.plugin` and the API objects (`core/model`), as user plugins may.
"""
