"""`asched plugins`, and plugins on the command line of `asched run`."""

import subprocess
import sys
from pathlib import Path

import pytest

from asched.cli import run
from asched.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def test_list_shows_origin_points_and_where_it_is_enabled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = EXAMPLES / "cost_aware.py"
    config = EXAMPLES / "cost_aware.yaml"
    assert main(["plugins", "list", "--plugin", str(file), "--config", str(config)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["NAME", "ORIGIN", "POINTS", "ENABLED", "IN"]
    assert ["NodeName", "in", "tree", "filter", "asched", "(filter)"] in rows
    assert rows[-1] == ["CostAware", f"{file}:CostAware", "score", "asched", "(score)"]
    assert "Coscheduling" not in [row[0] for row in rows]
    assert main(["plugins", "list", "--all"]) == 0
    assert "Coscheduling" in capsys.readouterr().out


def test_new_writes_a_plugin_whose_test_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "new", "quiet-GPUHours2", "--dir", str(tmp_path / "mine")]) == 0
    written = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert written == ["quiet_gpu_hours2.py", "test_quiet_gpu_hours2.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    done = subprocess.run(
        command, cwd=tmp_path / "mine", capture_output=True, text=True, check=False
    )
    assert "3 passed" in done.stdout
    assert main(["plugins", "new", "quiet-GPUHours2", "--dir", str(tmp_path / "mine")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["plugins", "new", "../x"]) == 2
    assert main(["plugins", "new", "node-name"]) == 2
    assert "NodeName is an in-tree plugin" in capsys.readouterr().err


def test_run_refuses_a_plugin_in_one_line_and_with_v_shows_the_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("import missing_thing\n")
    assert run.main([f"--plugin={bad}", "--secure-port=0"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"asched run: plugin file {bad} cannot be imported: ModuleNotFoundError:"
        f" No module named 'missing_thing' ({bad}:1)"
    )
    assert run.main([f"--plugin={bad}", "--secure-port=0", "-v2"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_bad_args_name_the_plugin_and_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    text = (EXAMPLES / "random_scheduler.yaml").read_text().replace("seed: 7", "seed: x")
    config.write_text(text)
    flags = [f"--plugin={EXAMPLES}/random_scheduler.py", f"--config={config}", "--secure-port=0"]
    assert run.main(flags) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        'asched run: initializing plugin "RandomScore": args.seed: expected `int | null`, got `str`'
    )


def test_the_demo_runs_with_a_plugin(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "asched", "demo", "--nodes", "3", "--pods", "4", "--log"]
    plugin = str(EXAMPLES / "node_logger.py")
    done = subprocess.run(
        [*command, str(log), "--plugin", plugin],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in log.read_text().splitlines() if "node_logger.py" in line]
    assert lines
    assert all(" cpuCores=" in line and " memoryMiB=" in line for line in lines)
