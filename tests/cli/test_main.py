"""`asched` as a process: how it ends when somebody else decides that it ends."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator

import pytest

from asched.cli import run
from asched.cli.main import main


@pytest.fixture
def default_sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("default_sigterm")
def test_sigterm_is_heard_before_a_command_listens_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 1 of a container would not hear it with the default disposition."""

    def is_starting(argv: list[str]) -> int:
        assert argv == []
        signal.raise_signal(signal.SIGTERM)
        return 0

    monkeypatch.setattr(run, "main", is_starting)
    with pytest.raises(SystemExit) as end:
        main(["run"])

    assert end.value.code == 143


async def test_a_reader_that_has_read_enough_is_no_error() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "asched", "plugins", "list", "--all"), stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout._transport.close()  # type: ignore[attr-defined]  # as `head` does
    said = await process.stderr.read()

    assert await process.wait() == 141
    assert said == b""
