"""`asched top`: what it prints."""

import json
from typing import Any

import pytest
import yaml

from asched.cli.pages import PageError
from asched.cli.sources import read_page
from asched.cli.top import screen
from asched.kube.transport import Reply
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


def test_pools_are_shown_where_there_are_some() -> None:
    rows = [
        {"name": "batch", "holder": "replica-a", "waiting": 12, "stopped": 3, "gapSeconds": 5.2},
        {"name": "default", "holder": "", "waiting": 0, "stopped": 0, "gapSeconds": None},
    ]
    said = lines({**a_view(3), "pools": rows})
    at = said.index("WAITING  STOPPED      GAP  POOL     HELD BY")
    assert said[at + 1 : at + 3] == [
        "     12        3    5.2 s  batch    replica-a",
        "      0        0        -  default",
    ]
    assert not any("POOL " in line for line in lines(a_view(3)))


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


def test_a_terminal_is_not_told_what_to_do_by_names() -> None:
    view = a_view(1)
    view["waiting"]["groups"][0]["reasons"][0]["reason"] = "\x1b[2J\x07evil\n\u202e"
    said = lines(view)
    assert any("?[2J?evil??" in line for line in said)
    assert all(line.isprintable() or not line for line in said)


async def test_once_prints_text_json_or_yaml() -> None:
    told = a_view(3)
    async with a_port(allowed=("/*",)) as port:

        async def view(_: int, __: int) -> dict[str, Any]:
            return told

        port.inspector.view = view
        server = f"--server=https://localhost:{port.server.port}"
        plain = await asched("top", server)
        as_json = await asched("top", "-o", "json", server)
        as_yaml = await asched("top", "-o", "yaml", server)
    assert plain == (0, "\n".join(lines(told)) + "\n", "")
    assert json.loads(as_json[1]) == told
    assert yaml.safe_load(as_yaml[1]) == told


async def test_whoever_may_not_is_told_what_to_be_granted() -> None:
    async with a_port() as port:
        server = f"--server=https://localhost:{port.server.port}"
        ended, out, err = await asched("top", server)
    assert (ended, out) == (1, "")
    assert "denies access to the live view; give the --token" in err


def test_a_terminal_is_not_told_what_to_do_by_a_server_that_refuses() -> None:
    body = json.dumps({"kind": "Status", "message": "no\x1b[2J way"}).encode()
    with pytest.raises(PageError) as refused:
        read_page(Reply(500, body, b""), "live view", dict)
    assert str(refused.value) == "the scheduler answered 500: no?[2J way"
