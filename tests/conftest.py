"""Asynchronous tests run on the loop that `asched run` runs on: uvloop where it is installed."""

import asyncio


def pytest_asyncio_loop_factories(config, item):
    try:
        import uvloop
    except ImportError:
        return {"asyncio": asyncio.new_event_loop}
    return {"uvloop": uvloop.new_event_loop}
