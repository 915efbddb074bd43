"""aiohttp, imported without what it would do for nothing: whoever wants it takes it from here.

It takes a tenth of a second of CPU, so modules that few starts need import this one, and are
imported late themselves.
"""

from asched.edge.certificates import late_contexts

with late_contexts():
    import aiohttp
    from aiohttp import web

__all__ = ["aiohttp", "web"]
