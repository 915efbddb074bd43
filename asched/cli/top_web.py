"""`asched top --web`: the live view in a browser.

Serves the scheduler's page /ui/ on this machine at a secret address, and forwards the page's
requests, until Ctrl-C.
"""

import argparse
import asyncio
import webbrowser

from asched.cli.forwarder import Forwarder
from asched.cli.sources import open_source
from asched.host.ending import stop_on_signals


async def serve(args: argparse.Namespace) -> int:
    """Serve until interrupted. Raises PageError."""
    ended = asyncio.Event()
    stop_on_signals(ended.set)
    source = await open_source(args)
    forwarder = Forwarder(source)
    try:
        await forwarder.check()
        url = await forwarder.start(args.port or 0)
        print(f"the live view is at {url} until Ctrl-C", flush=True)
        if args.open:
            await asyncio.to_thread(webbrowser.open, url)
        await ended.wait()
    finally:
        await forwarder.close()
        await source.close()
    return 0
