"""`asched top --web`: the live view on this machine, at a secret address."""

import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp

from asched.cli.reach import TOKEN_HEADER
from tests.support import HANG_S
from tests.unit.cli.programs import (
    LEASE,
    POD,
    TOKEN,
    World,
    a_forwarder,
    a_kubeconfig,
    asched_process,
)
from tests.unit.kube.scripted import scripted
from tests.unit.serve.browser import a_tab
from tests.unit.serve.views import a_view
from tests.unit.serve.world import a_port

PASSED_ON = (
    "ui/",
    "debug/asched/view?names=1&since=2",
    "debug/asched/pods/a/b%2Fc",
    "debug/asched/nodes/n",
)
NOT_PASSED_ON = (
    *("", "metrics", "uix", "ui/x", "debug/pprof/"),
    *("debug/asched/cache", "debug/asched/queue"),
)


async def test_pages_to_look_at_are_passed_on_and_no_others() -> None:
    async with a_forwarder() as (source, base, session):
        for path in PASSED_ON:
            async with session.get(base + path.replace("%2F", "%252F")) as answer:
                assert answer.status == 200, path
        for path in NOT_PASSED_ON:
            async with session.get(base + path) as answer:
                assert answer.status == 404, path
        async with session.delete(base + "debug/asched/view") as answer:
            assert answer.status == 405
        assert [one.replace("%25", "%") for one in source.asked] == [f"/{one}" for one in PASSED_ON]


async def test_without_the_secret_and_under_another_name_there_is_nothing() -> None:
    async with a_forwarder() as (source, base, session):
        root, secret = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)(.{24})/", base).groups()
        port = root.rpartition(":")[2].rstrip("/")
        for path in ("", "ui/", "x" * 24 + "/ui/", secret[:-1] + "/ui/", "debug/asched/view"):
            async with session.get(root + path) as answer:
                assert answer.status == 404, path
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil"):
            async with session.get(base + "ui/", headers={"Host": host}) as answer:
                assert answer.status == 421, host
        assert source.asked == []
        async with session.get(base + "ui/", headers={"Host": f"localhost:{port}"}) as answer:
            assert answer.status == 200


async def test_the_page_waits_for_a_scheduler_that_starts_and_its_questions_do_not() -> None:
    async with a_forwarder() as (source, base, session):
        source.fails = 3
        async with session.get(base + "ui/") as answer:
            assert answer.status == 200
        source.fails = 1
        async with session.get(base + "debug/asched/view") as answer:
            assert (answer.status, await answer.text()) == (502, "nobody is there\n")


async def test_it_reaches_the_leader_with_one_token_for_many_pages(tmp_path: Path) -> None:
    world = World()
    proxied = f"{POD.replace('asched-7f-x', 'https:asched-7f-x:10260')}/proxy"
    world.answers[f"{proxied}/debug/asched/view"] = (200, a_view(1))
    world.answers[f"{proxied}/ui/"] = (200, {"page": 1})
    async with scripted(world.answer) as server:
        kubeconfig = a_kubeconfig(tmp_path, server.url)
        command = (sys.executable, "-m", "asched", "top", "--web", kubeconfig)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        async with asyncio.timeout(HANG_S):
            said = (await process.stdout.readline()).decode()
            url = re.search(r"http://\S+", said)[0]
            async with aiohttp.ClientSession() as session:
                for _ in range(3):
                    async with session.get(url) as answer:
                        assert answer.status == 200
            process.send_signal(signal.SIGINT)
            status = await process.wait()
    assert status == 0
    paths = [seen.path for seen in server.seen]
    assert paths == [LEASE, POD, TOKEN, f"{proxied}/debug/asched/view", *[f"{proxied}/ui/"] * 3]
    assert {seen.headers.get(TOKEN_HEADER) for seen in server.seen[3:]} == {"short-lived"}


async def test_after_a_failure_it_asks_who_leads_now(tmp_path: Path) -> None:
    world = World()
    proxied = f"{POD.replace('asched-7f-x', 'https:asched-7f-x:10260')}/proxy"
    page = f"{proxied}/debug/asched/view"
    world.answers[page] = (503, {"message": "no route"})
    async with scripted(world.answer) as server:
        flag = a_kubeconfig(tmp_path, server.url)
        refused = await asched_process("top", "--web", flag)
        assert refused[0] == 1
        assert "the API server cannot reach pod asched-7f-x" in refused[2]


async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async with a_port(allowed=("/*",)) as port:
        number = port.server.port
        ended, _, err = await asched_process(
            "top", "--web", f"--server=https://localhost:{number}", f"--port={number}"
        )
    assert ended == 1
    assert f"cannot listen on 127.0.0.1:{number}" in err
    assert "choose another --port" in err


async def test_in_a_browser_the_demo_shows_itself_while_it_runs() -> None:
    async with a_tab() as tab:
        command = (sys.executable, "-m", "asched", "demo", "--ui", "--nodes", "12", "--pods", "60")
        demo = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert demo.stdout is not None
        try:
            async with asyncio.timeout(HANG_S):
                first = (await demo.stdout.readline()).decode()
                url = re.search(r"http://127\.0\.0\.1:\S+/ui/", first)
                assert url is not None, first
                await tab.open(url[0])
                await tab.until("document.querySelectorAll('#cells button').length === 12")
                await tab.until("document.querySelectorAll('#recent li').length > 0")
                await tab.eval("document.querySelector('#recent a').click()")
                await tab.until("document.querySelector('#details-body ol li')")
                story: Any = await tab.eval("document.getElementById('details').innerText")
                errors = list(tab.errors)  # afterwards there is nobody to be asked
        finally:
            demo.send_signal(signal.SIGTERM)
            await demo.communicate()
    assert "node chosen" in story or "no node" in story
    assert errors == []
