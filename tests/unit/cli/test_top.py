"""`asched top`: what it prints, and what it does on a terminal."""

import asyncio
import json
import os
import pty
import sys
from typing import Any

import pytest
import yaml

from asched.cli.pages import PageError
from asched.cli.sources import read_page
from asched.cli.top_text import screen
from asched.kube.transport import Reply
from tests.patience import HANG_S
from tests.unit.cli.programs import asched
from tests.unit.serve.views import a_view
from tests.unit.serve.world import a_port


def lines(view: dict[str, Any], **how: Any) -> list[str]:
    return list(screen(view, **how))


def test_queues_rates_and_waits_come_first() -> None:
    said = lines(a_view(3))
    assert said[0] == "asched leads   3 nodes   100000 pods, 96600 on nodes   22:13:20Z"
    assert said[1] == "active 12   backoff 3   unschedulable 3400   gated 7   being bound 2"
    assert said[2] == "bound 19/s   no node 19/s   error 19/s   (at most 39/s, 39/s, 39/s)"
    assert said[3].startswith("first attempt to bound: 50 % within 9.0 s, 99 % within 19.0 s")


def test_reasons_are_grouped_with_the_nodes_that_gave_them() -> None:
    said = lines(a_view(3))
    at = said.index("   PODS   OLDEST  WHY")
    assert said[at + 1] == "   3300   61.0 s  NodeResourcesFit: Insufficient cpu (4000)"
    assert said[at + 2] == "                  such as ml/train-0"
    assert f"{20:7}{'':11}2 other reasons" in said
    assert any(line.endswith("such as ml/train-0, ml/x") for line in lines(a_view(3), is_wide=True))


def test_gangs_and_the_fullest_nodes_follow() -> None:
    said = lines(a_view(400))
    assert "  1/4        4  ml/crew" in said
    assert "scarcest resource of nodes: pods on 81, cpu on 81, memory on 81, " in "\n".join(said)
    fullest = said[said.index(" IN USE  SCARCE                FULLEST NODES") + 1 :]
    assert len(fullest) == 8
    shares = [int(line.split("%")[0]) for line in fullest]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 103
    assert len(lines(a_view(400), is_wide=True)) > 100


def test_a_terminal_is_not_told_what_to_do_by_names_and_lines_are_cut_to_it() -> None:
    view = a_view(1)
    view["waiting"]["groups"][0]["reasons"][0]["reason"] = "\x1b[2J\x07evil\n\u202e"
    said = lines(view, columns=60)
    assert all(len(line) <= 60 for line in said)
    assert any("?[2J?evil??" in line for line in said)
    assert all(line.isprintable() or not line for line in said)


async def test_once_prints_text_json_or_yaml() -> None:
    told = a_view(3)
    async with a_port(allowed=("/*",)) as port:

        async def view(_: int, __: int) -> dict[str, Any]:
            return told

        port.inspector.view = view
        server = f"--server=https://localhost:{port.server.port}"
        plain = await asched("top", "--once", server)
        as_json = await asched("top", "--once", "-o", "json", server)
        as_yaml = await asched("top", "--once", "-o", "yaml", server)
    assert plain == (0, "\n".join(lines(told)) + "\n", "")
    assert json.loads(as_json[1]) == told
    assert yaml.safe_load(as_yaml[1]) == told


async def test_whoever_may_not_is_told_what_to_be_granted() -> None:
    async with a_port() as port:
        server = f"--server=https://localhost:{port.server.port}"
        ended, out, err = await asched("top", "--once", server)
    assert (ended, out) == (1, "")
    assert "denies access to the live view; give the --token" in err


def test_a_terminal_is_not_told_what_to_do_by_a_server_that_refuses() -> None:
    body = json.dumps({"kind": "Status", "message": "no\x1b[2J way"}).encode()
    with pytest.raises(PageError) as refused:
        read_page(Reply(500, body, b""), "live view", dict)
    assert str(refused.value) == "the scheduler answered 500: no?[2J way"


async def test_without_a_terminal_one_text_follows_the_other_and_failures_are_told() -> None:
    async with a_port(allowed=("/*",)) as port:
        asked = 0

        async def view(_: int, __: int) -> dict[str, Any]:
            nonlocal asked
            asked += 1
            if asked == 2:
                raise RuntimeError("no")
            return a_view(3, version=str(asked))

        port.inspector.view = view
        flags = ("top", "--every=0.5", "-o=json", f"--server=https://localhost:{port.server.port}")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "asched", *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        output = b""
        async with asyncio.timeout(HANG_S):
            while output.count(b'"version"') < 2:
                output += await process.stdout.read(1 << 16)
        process.terminate()
        _, err = await process.communicate()
    assert b'"version": "1"' in output
    assert b'"version": "3"' in output
    assert b"asched top: the scheduler answered 500" in err


async def test_on_a_terminal_it_is_drawn_in_place_until_q() -> None:
    async with a_port(allowed=("/*",)) as port:

        async def view(_: int, __: int) -> dict[str, Any]:
            return a_view(3)

        port.inspector.view = view
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "asched", "top", "--every=0.5"),
            f"--server=https://localhost:{port.server.port}",
            stdin=theirs,
            stdout=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(theirs)
        loop = asyncio.get_running_loop()
        drawn = b""
        async with asyncio.timeout(HANG_S):
            while drawn.count(b"asched leads") < 2:
                drawn += await loop.run_in_executor(None, os.read, ours, 1 << 16)
            os.write(ours, b"q")
            while b"\x1b[?1049l" not in drawn:
                drawn += await loop.run_in_executor(None, os.read, ours, 1 << 16)
            status = await process.wait()
        os.close(ours)
    assert status == 0
    assert drawn.startswith(b"\x1b[?1049h")
    assert b"q ends" in drawn
    first = drawn.split(b"\x1b[H")[1]
    assert first.count(b"\r\n") == 23  # all rows of a terminal that tells no size
