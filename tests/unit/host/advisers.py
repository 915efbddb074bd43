"""Plans of a host with an extender, and its advising port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from asched.core.config.defaults import configuration
from asched.host.advising import AdvisingPlan, advise
from asched.serve.options import ServingOptions

EXTENDER = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}


def a_plan(**changes: Any) -> AdvisingPlan:
    document = {"profiles": [{"schedulerName": "default-scheduler"}], "extenders": [EXTENDER]}
    options: dict[str, Any] = {
        "serving": ServingOptions(bind_address="127.0.0.1", secure_port=0),
        "follows": False,
        **changes,
    }
    return AdvisingPlan(configuration=configuration(document), **options)


@asynccontextmanager
async def serving(plan: AdvisingPlan) -> AsyncIterator[str]:
    """The address without its scheme."""
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(advise(plan, started))
    await asyncio.wait([started, task], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield f"127.0.0.1:{started.result()}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
