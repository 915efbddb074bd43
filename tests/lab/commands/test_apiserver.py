"""`asched apiserver` as a process."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml

from asched_lab.commands import apiserver

CODE = (
    "import argparse, sys; from asched_lab.commands import apiserver;"
    " p = argparse.ArgumentParser();"
    " apiserver.add_parser(p.add_subparsers()); a = p.parse_args(sys.argv[1:]); sys.exit(a.run(a))"
)
ROOT = Path(__file__).resolve().parents[2]


async def test_it_serves_until_interrupted(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CODE,
        "apiserver",
        "--kubeconfig-out",
        str(config),
        "--token",
        "t",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        serving = (await process.stdout.readline()).decode()
        paste = (await process.stdout.readline()).decode()
        assert paste == f"export KUBECONFIG={config}\n"
        url = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        assert serving == f"serving on {url}\n"
        assert config.stat().st_mode & 0o077 == 0
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
            assert await answer.text() == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


def parsed(*args: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    apiserver.add_parser(parser.add_subparsers())
    return parser.parse_args(["apiserver", *args])


def test_a_certificate_without_a_key_is_one_clear_line(capsys, tmp_path: Path) -> None:
    assert apiserver.run(parsed("--tls-cert-file", "x")) == 2
    assert "go together; give both or neither" in capsys.readouterr().err


def test_an_address_that_cannot_be_listened_on_is_one_clear_line(capsys) -> None:
    assert apiserver.run(parsed("--bind-address", "192.0.2.1")) == 2
    error = capsys.readouterr().err
    assert error.startswith("asched apiserver: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("--runtime-config", "scheduling.k8s.io/v1beta1"),
            "--runtime-config scheduling.k8s.io/v1beta1 needs --version 1.37 or 1.38",
        ),
        (("--runtime-config", "apps/v1=false"), "only =true is supported"),
        (("--runtime-config", "apps/v2"), "apps/v2 is unknown"),
    ],
)
def test_group_versions_of_another_version_are_refused(args, words, capsys) -> None:
    assert apiserver.run(parsed(*args)) == 2
    assert words in capsys.readouterr().err


def test_faults_are_named_with_a_rate(capsys):
    chosen = parsed("--fault", "overload=0.25", "--fault", "mute-watch").fault
    assert [(fault.action, fault.rate) for fault in chosen] == [("refuse", 0.25), ("mute_watch", 1)]
    for wrong, words in (
        ("quake=1", "there is no fault 'quake'; there are delay, reset, "),
        ("delay=often", "could not convert string to float: 'often'"),
        ("delay=2", "the rate of delay must be a number from 0 to 1, not 2.0"),
    ):
        with pytest.raises(SystemExit):
            parsed("--fault", wrong)
        assert words in capsys.readouterr().err
