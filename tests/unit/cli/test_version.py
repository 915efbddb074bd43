"""`asched version`: versions of the command, the scheduler and the API server."""

import json
from pathlib import Path

from asched.cli.commands import installed_version
from tests.unit.cli.programs import PAGE, World, a_kubeconfig, asched
from tests.unit.kube.scripted import scripted
from tests.unit.serve.views import a_view

VIEW = PAGE.replace("pods/team/web", "view")


async def test_it_asks_the_leader_and_the_api_server(tmp_path: Path) -> None:
    world = World()
    world.answers[VIEW] = (200, a_view(1))
    world.answers["/version"] = (200, {"gitVersion": "v1.36.3"})
    async with scripted(world.answer) as server:
        kubeconfig = a_kubeconfig(tmp_path, server.url)
        text = await asched("version", kubeconfig)
        as_json = await asched("version", "-o=json", kubeconfig)
    client = installed_version()
    assert text == (
        0,
        f"client     {client}\nscheduler  1.2.3, decides as Kubernetes 1.37\napiServer  v1.36.3\n",
        "",
    )
    assert as_json[0] == 0
    assert json.loads(as_json[1]) == {
        "client": {"version": client},
        "scheduler": {"version": "1.2.3", "rules": "1.37"},
        "apiServer": {"version": "v1.36.3"},
    }


async def test_what_does_not_answer_is_one_line(tmp_path: Path) -> None:
    ended, out, err = await asched("version", a_kubeconfig(tmp_path, "http://127.0.0.1:1"))
    assert (ended, err) == (0, "")
    client, scheduler, server = out.splitlines()
    assert client == f"client     {installed_version()}"
    assert scheduler.startswith("scheduler  unknown: http://127.0.0.1:1: ")
    assert server.startswith("apiServer  unknown: ")

    async with scripted(World().answer) as api:  # no view, no version
        ended, out, err = await asched("version", a_kubeconfig(tmp_path, api.url))
    assert (ended, err, len(out.splitlines())) == (0, "", 3)
    assert "it is older than this command" in out
