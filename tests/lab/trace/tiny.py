"""A recorded cluster of a few nodes, as the published files are written."""

import gzip
from pathlib import Path

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,32000,65536,2,P100
node-1,32000,65536,2,T4
node-2,96000,65536,8,G2
"""
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n" + "".join(
    f"pod-{number:02},{cpu},{1024 * memory},{gpus},{milli},{spec},LS,Running\n"
    for number, (cpu, memory, gpus, milli, spec) in enumerate(
        (
            *[(4000, 4, 1, 470, "")] * 6,
            *[(3000, 4, 1, 810, "")] * 4,
            *[(8000, 8, 1, 1000, "P100|T4")] * 3,
            (16000, 8, 2, 1000, ""),
            *[(2000, 4, 0, 0, "")] * 3,
        )
    )
)


def write(folder: Path, nodes: str = NODES, pods: str = PODS) -> Path:
    """The folder to be named to `asched simulate`."""
    base = folder / "openb"
    base.mkdir()
    for name, text in (("node_list_gpu_node", nodes), ("pod_list_tiny", pods)):
        (base / f"openb_{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder
