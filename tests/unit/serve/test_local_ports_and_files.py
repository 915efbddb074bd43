"""What a web page, another user of the machine, or a stolen address may do to what asched serves
and writes on a machine: the extender's loopback port, the forwarder of `asched top
--web`, private files.
"""

import argparse
import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from asched.kube.files import write_private
from asched.serve.options import ServingOptions
from asched.serve.tls import Certificates
from asched_lab.commands.apiserver import add_parser, serve
from tests.builders import a_node, a_pod
from tests.support import HANG_S
from tests.unit.cli.programs import a_forwarder
from tests.unit.host.advisers import a_plan, serving

JSON: Final = "application/json"
#: A page that is passed on, and ways out of it.
DOTS: Final = (
    *("debug/asched/pods/../..", "debug/asched/pods/./x", "debug/asched/nodes/%2e%2e/x"),
    *("debug/asched/nodes/%252E%252e/x", "debug/asched/groups/a%2f..%2fb"),
    "debug/asched/pods/..%5cx",
)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": JSON}, 200),
        ({"Content-Type": f"{JSON}; charset=utf-8", "Host": "localhost:80"}, 200),
        ({"Content-Type": JSON, "Host": "[::1]"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": JSON, "Host": "page.example:10261"}, 421),
        ({"Content-Type": JSON, "Host": "127.0.0.1.page.example"}, 421),
        ({"Content-Type": JSON, "Host": ""}, 421),
    ],
)
async def test_a_web_page_cannot_ask_the_extender(headers: dict[str, str], status: int) -> None:
    """A browser sends other types without asking, and the name of the page that it shows."""
    question = {"Pod": a_pod("web").json, "Nodes": {"items": [a_node("n").json]}}
    async with (
        asyncio.timeout(HANG_S),
        serving(a_plan()) as address,
        aiohttp.ClientSession() as session,
        session.post(
            f"http://{address}/filter", data=json.dumps(question), headers=headers
        ) as answer,
    ):
        assert answer.status == status


async def test_an_extender_for_the_network_is_asked_by_any_name() -> None:
    plan = a_plan(serving=ServingOptions(bind_address="0.0.0.0", secure_port=0))
    question = {"Pod": a_pod("web").json, "Nodes": {"items": [a_node("n").json]}}
    async with (
        asyncio.timeout(HANG_S),
        serving(plan) as address,
        aiohttp.ClientSession() as session,
        session.post(
            f"http://{address}/filter", json=question, headers={"Host": "extender.svc"}
        ) as answer,
    ):
        assert answer.status == 200


@pytest.mark.parametrize("path", DOTS)
async def test_the_forwarder_passes_on_no_way_out_of_a_page(path: str) -> None:
    async with asyncio.timeout(HANG_S), a_forwarder() as (source, base, _):
        address, _, secret = base.removeprefix("http://").partition("/")
        host, _, port = address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))  # no client resolves it
        writer.write(f"GET /{secret}{path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.close()
        assert source.asked == []


def others_may_read(path: Path) -> Path:
    path.write_text("old")
    path.chmod(0o644)
    return path


def is_private(path: Path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_kubeconfig_replaces_one_that_others_may_read(tmp_path: Path) -> None:
    path = others_may_read(tmp_path / "kubeconfig")
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["apiserver", f"--kubeconfig-out={path}", "--token=secret"])
    task = asyncio.ensure_future(serve(args))
    async with asyncio.timeout(HANG_S):
        while b"secret" not in path.read_bytes():  # noqa: ASYNC110 - a file tells of nothing
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert is_private(path)


def test_a_serving_key_replaces_one_that_others_may_read(tmp_path: Path) -> None:
    key = others_may_read(tmp_path / "asched.key")
    Certificates(ServingOptions(cert_dir=str(tmp_path)))
    assert key.read_bytes().startswith(b"-----BEGIN")
    assert is_private(key)


def test_a_private_file_is_written_where_a_link_or_a_device_points(tmp_path: Path) -> None:
    target = others_may_read(tmp_path / "target")
    (tmp_path / "link").symlink_to(target)
    assert write_private(tmp_path / "link", b"new") == target
    assert (tmp_path / "link").read_bytes() == b"new"
    assert is_private(target)
    assert write_private(os.devnull, b"gone") == Path(os.devnull)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "target"]
