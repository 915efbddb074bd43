"""`asched` as a process: how it ends when somebody else decides that it ends."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from asched.cli.main import main
from tests.support import HANG_S


def test_sigterm_is_heard_before_a_command_listens_to_it(tmp_path: Path) -> None:
    """Process 1 of a container would not hear it with the default disposition. This one waits for
    its configuration, from a pipe to which nothing is written.
    """
    silent = tmp_path / "config.yaml"
    os.mkfifo(silent)
    command = (sys.executable, "-m", "asched", "config", "check", str(silent))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        with silent.open("w", encoding="utf-8"):  # until it has opened it, too
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == 143
        assert process.stdout is not None
        assert process.stdout.read() == b""


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


@pytest.mark.parametrize(
    ("words", "shell", "status", "said"),
    [
        ("config view FILE", ">/dev/full", 1, "cannot write the output: no space left"),
        ("config view FILE", ">&-", 0, ""),
        ("config check -", "<&-", 2, "<stdin>:1:1: apiVersion is missing"),
        ("config check FILE", "", 0, r"caf\xe9.yaml: valid"),
    ],
)
def test_streams_that_lead_nowhere_and_names_that_cannot_be_shown(
    words: str, shell: str, status: int, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "café.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    command = [
        sys.executable,
        "-c",
        "import sys; from asched.cli.main import main; sys.exit(main())",
    ]
    line = " ".join(map(shlex.quote, (*command, *words.replace("FILE", str(file)).split())))
    plain = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    ended = subprocess.run(
        f"{line} {shell}", shell=True, capture_output=True, text=True, env=plain, check=False
    )
    told = ended.stdout + ended.stderr
    assert (ended.returncode, said in told) == (status, True), told
    assert "Traceback" not in told
    assert "Exception ignored" not in told


def test_shadow_run_is_run_with_a_shadow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--shadow=default-scheduler", f"--write-config-to={tmp_path / 'written'}"]
    assert main(["shadow", "run", *flags]) == 0
    assert capsys.readouterr().err == ""
    written = (tmp_path / "written").read_text(encoding="utf-8")

    assert main(["run", *flags]) == 0
    assert (tmp_path / "written").read_text(encoding="utf-8") == written

    assert main(["shadow", "run"]) == 2
    assert "needs --shadow=NAME" in capsys.readouterr().err
