"""What `asched run` makes of its words before anything runs."""

import json
import re
import subprocess
import sys

import pytest
import yaml

from asched.cli import run
from asched.cli.flag_table import flag_texts
from asched.cli.flags import parse
from asched.host.configuration.policy_map import fetch_policy
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions
from asched_lab.apiserver.server import ApiServer
from tests.support import recorded_text

POLICY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsHostPorts"}]}'


def test_the_effective_configuration_is_written_and_that_is_all(tmp_path):
    file = tmp_path / "effective.yaml"

    assert run.main([f"--write-config-to={file}", "--scheduler-name=mine"]) == 0

    assert "schedulerName: mine" in file.read_text()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path, capsys):
    assert run.main([f"--write-config-to={tmp_path}/no/such/folder"]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert "no/such/folder: No such file or directory" in line


def test_serving_and_access_follow_the_flags():
    plan = run.plan_of(
        parse(
            [
                "--secure-port=1234",
                "--authorization-always-allow-paths=/healthz,/metrics",
                "--authentication-token-webhook-cache-ttl=3s",
            ]
        )
    )

    assert plan.serving.options.secure_port == 1234
    rules = plan.serving.access
    assert rules.authorization.authorization_always_allow_paths == ("/healthz", "/metrics")
    assert rules.authentication.authentication_token_webhook_cache_ttl == 3.0


def test_flags_are_shown_as_kube_scheduler_shows_them():
    """Names and defaults of the recorded page, apart from what a run was given."""
    text = recorded_text("outside/log/startup_text.log")
    recorded = dict(re.findall(r'FLAG: --([\w-]+)="(.*?)"\n', text))
    ours = flag_texts({})
    given = {name for name, value in recorded.items() if "$" in value} | {
        *("bind-address", "secure-port", "v", "leader-elect", "cert-dir"),
        *("help", "version", "scheduler-name"),
        "kube-api-qps",  # no limit by default
        "leader-elect-resource-name",  # a lease of our own, unless we serve default-scheduler
    }

    shared = (recorded.keys() & ours.keys()) - given

    assert len(shared) > 40
    assert {name: ours[name] for name in shared} == {name: recorded[name] for name in shared}


@pytest.fixture
async def server(tmp_path):
    server = ApiServer()
    await server.start()
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    for name, data in (("good", {"policy.cfg": POLICY}), ("empty", {"other": "x"})):
        metadata = {"name": name, "namespace": "kube-system"}
        server.create("configmaps", {"metadata": metadata, "data": data})
    yield ConnectionOptions(kubeconfig=str(tmp_path / "kubeconfig"))
    await server.stop()


async def test_a_policy_is_fetched_from_its_config_map(server):
    assert await fetch_policy(server, "kube-system", "good") == POLICY


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty", 'configmap kube-system/empty has no key "policy.cfg"'),
        ("absent", "couldn't get policy config map kube-system/absent"),
    ],
)
async def test_a_policy_that_is_not_there_is_one_clear_line(server, name, text):
    with pytest.raises(ConnectError, match=text):
        await fetch_policy(server, "kube-system", name)


def started(*words: str) -> list[str]:
    """What a process says that finds no server at its address, and ends."""
    command = [sys.executable, "-m", "asched", "run", "--secure-port=0", *words]
    command += ["--master=http://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr.splitlines()


def recorded(message):
    """The recorded line of a start that begins so."""
    lines = recorded_text("outside/log/startup_json.log").splitlines()
    (line,) = [line for line in lines if f'"msg":"{message}' in line]
    return json.loads(line.replace("$millis", "0"))


def test_the_start_tells_flags_and_configuration_in_kube_schedulers_words():
    lines = [json.loads(line) for line in started("-v=2", "--logging-format=json")]
    told = {line["msg"]: line for line in lines}
    for message in ('FLAG: --leader-elect-lease-duration=\\"15s\\"', 'FLAG: --v=\\"2\\"'):
        theirs = recorded(message)
        assert told[theirs["msg"]]["v"] == theirs["v"]
    theirs, ours = recorded("Using component config"), told["Using component config"]
    assert ours["v"] == theirs["v"]
    document = yaml.safe_load(ours["config"])
    assert document.keys() == yaml.safe_load(theirs["config"]).keys()
    assert document["leaderElection"]["leaseDuration"] == "15s"
    # The end of the history is an object as well.
    assert lines[-1]["msg"] == "command failed"
    assert "cannot reach" in lines[-1]["err"]
