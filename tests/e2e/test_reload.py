"""A mounted folder changes under a process that runs: SIGHUP and the look every few seconds."""

import signal
import sys
from pathlib import Path

from asched_lab.apiserver.server import ApiServer
from tests.builders import a_node
from tests.e2e.extenders import running
from tests.e2e.mounts import Mount, placed


async def test_files_that_change_are_followed(tmp_path: Path) -> None:
    server = ApiServer(kubelet=False)
    await server.start()
    try:
        for number in range(3):
            server.create("nodes", a_node(f"e{number}").allocatable().json)
        mount = Mount(tmp_path, server)
        mount.write("e0")
        command = [sys.executable, "-m", "asched", "run", "--secure-port=0"]
        command += ["--config", str(mount.config), "--plugin-dir", str(mount.plugins)]
        with running(command, mount.log) as process:
            assert await placed(server, "first") == "e0"

            mount.write("e1", lease="30s")
            process.send_signal(signal.SIGHUP)
            await mount.says("leaderElection.leaseDuration takes effect with the next start")
            await mount.says("The new configuration is in use")
            assert await placed(server, "second") == "e1"

            (mount.plugins / "picky.py").write_text("def broken(:\n")
            await mount.says("The new configuration is refused: plugin file")  # without a signal
            assert await placed(server, "third") == "e1"
        assert process.returncode == 0
    finally:
        await server.stop()
