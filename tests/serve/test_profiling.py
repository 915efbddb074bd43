"""What a process says of its threads, tasks and objects."""

import asyncio
import threading

import pytest

from asched.serve import profiling
from asched.serve.pages import Asked
from tests.patience import HANG_S


def asked(name, **query):
    return Asked("GET", f"/debug/pprof/{name}", {key: (value,) for key, value in query.items()})


class Turns:
    """Stands for the event that ends a profile: over after so many looks."""

    def __init__(self, looks):
        self.looks = looks

    def wait(self, _):
        self.looks -= 1
        return self.looks < 0


def outer(begun, ended):
    inner(begun, ended)


def inner(begun, ended):
    begun.set()
    ended.wait(HANG_S)


@pytest.fixture
def thread():
    """Waits in `inner` until the test ends."""
    begun, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=outer, args=(begun, ended))
    thread.start()
    assert begun.wait(HANG_S)
    yield
    ended.set()
    thread.join()


@pytest.mark.usefixtures("thread")
async def test_a_profile_counts_whole_stacks_of_the_other_threads():
    told = await asyncio.to_thread(profiling.sample, HANG_S, Turns(3))
    counts = {}
    for line in told.splitlines():
        stack, _, count = line.rpartition(" ")
        counts[stack] = int(count)
    chain = f"threading.run;{__name__}.outer;{__name__}.inner"
    found = {stack: count for stack, count in counts.items() if chain in stack}
    assert sum(found.values()) == 3
    assert all(stack.startswith("threading._bootstrap;") for stack in found)
    assert f"{profiling.__name__}.sample" not in told
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


@pytest.mark.usefixtures("thread")
def test_a_profile_of_no_time_is_empty():
    assert profiling.sample(0.0, Turns(3)) == "\n"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 30.0),
        *(({"seconds": text}, 30.0) for text in ("x", "", "0", "-1", "nan", "-inf")),
        ({"seconds": "7"}, 7.0),
        ({"seconds": "121"}, 120.0),
        ({"seconds": "inf"}, 120.0),
        ({"seconds": "0.0001"}, profiling.SAMPLE_S),
    ],
)
async def test_a_profile_lasts_as_long_as_asked_within_bounds(given, seconds, monkeypatch):
    monkeypatch.setattr(profiling, "sample", lambda lasts, _: f"{lasts}")
    page = await profiling.Profiling().page(asked("profile", **given))
    assert (page.status, page.body) == (200, f"{seconds}".encode())


async def test_there_is_one_profile_at_a_time(monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def sample(_seconds, _over):
        begun.set()
        go_on.wait(HANG_S)
        return "told"

    monkeypatch.setattr(profiling, "sample", sample)
    pages = profiling.Profiling()
    first = asyncio.ensure_future(pages.page(asked("profile")))
    assert await asyncio.to_thread(begun.wait, HANG_S)
    refused = await pages.page(asked("profile"))
    assert (refused.status, refused.body) == (
        500,
        b"Could not enable CPU profiling: cpu profiling already in use\n",
    )
    go_on.set()
    assert (await first).body == b"told"
    assert (await pages.page(asked("profile"))).status == 200


async def test_tasks_are_told_by_name_with_where_they_wait():
    async def waiting_here():
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(waiting_here(), name=name) for name in ("~b", "~a")]
    await asyncio.sleep(0)
    page = await profiling.Profiling().page(asked("goroutine"))
    lines = page.body.decode().splitlines()
    for task in tasks:
        task.cancel()
    assert page.status == 200
    assert lines[0] == f"goroutine profile: total {len(asyncio.all_tasks())}"
    at = lines.index("~a")
    assert lines[at + 2] == "~b"
    for line in (lines[at + 1], lines[at + 3]):
        assert line.startswith(f"    {__file__}:")
        assert line.endswith(" waiting_here")


async def test_objects_are_counted_by_type_most_first():
    class Counted:
        pass

    kept = [Counted() for _ in range(20_000)]
    head, *rows = (await profiling.Profiling().page(asked("heap"))).body.decode().splitlines()
    counts = {name: int(count) for count, name in (row.split(maxsplit=1) for row in rows)}
    assert counts[Counted.__qualname__] == len(kept)
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert len(rows) <= profiling.TYPES_MAX
    assert int(head.removeprefix("heap profile: ").split()[0]) >= sum(counts.values())


async def test_the_index_names_every_profile_and_nothing_else_is_there():
    pages = profiling.Profiling()
    page = await pages.page(asked(""))
    assert page.status == 200
    index = page.body.decode()
    assert all(f'href="/debug/pprof/{name}"' in index for name in ("goroutine", "heap", "profile"))
    assert (await pages.page(asked("mutex"))).status == 404
