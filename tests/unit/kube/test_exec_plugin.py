"""Plugins that print credentials: bounded in time, and in nobody's way."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from asched.kube.credentials import load_credentials
from asched.kube.errors import ConnectError
from asched.kube.exec_plugins import ExecPlugin, Printed, Variable
from asched.kube.exec_plugins import run_plugin as run
from tests.unit.kube.kubeconfigs import kubeconfig

V1 = "client.authentication.k8s.io/v1"


def plugin(folder, text, **more):
    """A plugin that runs this Python."""
    script = folder / "plugin"
    script.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{text}\n")
    script.chmod(0o755)
    return ExecPlugin(command=str(script), api_version=V1, **more)


def printing(document):
    return f"print({json.dumps(document)!r})"


def credential(version=V1, kind="ExecCredential", **said):
    return printing({"apiVersion": version, "kind": kind, "status": said})


def children():
    """Numbers of the processes that this one has started, and not seen the end of."""
    found = set()
    for told in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if told.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(told.parent.name)
    return found


async def test_what_a_plugin_is_told(tmp_path):
    said = (
        "told = [os.environ['KUBERNETES_EXEC_INFO'], os.environ['MORE'], sys.argv[1:]]\n"
        "token = json.dumps([*told, sys.stdin.read()])\n"
        f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential',"
        " 'status': {'token': token}}))"
    )
    variables = [Variable("MORE", "m")]
    asked = plugin(tmp_path, said, args=["a", "b"], env=variables, provide_cluster_info=True)
    info, more, words, typed = json.loads((await run(asked, {"server": "https://a"})).token)
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://a"}},
    }
    assert (more, words, typed) == ("m", ["a", "b"], "")


async def test_a_certificate_may_be_printed(tmp_path, certificates):
    crt, key = (path.read_text() for path in certificates.issue("printed"))
    said = credential(clientCertificateData=crt, clientKeyData=key)
    found = await run(plugin(tmp_path, said), {})
    assert found == Printed("", crt.encode(), key.encode())
    user = {"exec": {"command": str(tmp_path / "plugin"), "apiVersion": V1}}
    path = kubeconfig(tmp_path / "config", "https://a:1", user)
    assert (await load_credentials(path)).tls() is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sys.exit('no\\nluck')", "ended with 1: no luck"),
        ("", "printed no ExecCredential"),
        ("print('[]')", "printed no ExecCredential"),
        (credential(kind="Status", token="t"), "printed Status"),
        (credential(version="client.authentication.k8s.io/v1beta1", token="t"), "v1beta1, not"),
        (credential(), "neither a token nor a certificate"),
        (credential(clientCertificateData="c"), "without its key"),
        (credential(token="t", expirationTimestamp="2001-01-01T00:00:00"), "timezone"),
    ],
)
async def test_what_is_no_credential_is_one_line(tmp_path, text, message):
    with pytest.raises(ConnectError, match=message) as caught:
        await run(plugin(tmp_path, text), {})
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_is_not_installed_says_how_to_get_it():
    with pytest.raises(ConnectError, match=r"cannot be started: .*; is it installed\?$"):
        await run(ExecPlugin("/nonexistent/p", V1), {})
    missing = ExecPlugin("/nonexistent/p", V1, install_hint="brew\n  install p")
    with pytest.raises(ConnectError, match=r"/nonexistent/p cannot be started: .*; brew install p"):
        await run(missing, {})


@pytest.mark.parametrize("turns", range(4))
async def test_who_gives_up_while_a_plugin_is_being_started_leaves_no_process(tmp_path, turns):
    asked = plugin(tmp_path, "time.sleep(1000)")
    before = children()
    starting = asyncio.create_task(run(asked, {}))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert children() == before
