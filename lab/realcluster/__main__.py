"""The commands of lab/realcluster; README.md describes them."""

import argparse
import os
import sys

from realcluster.cluster import Cluster
from realcluster.installations import INSTALLATIONS
from realcluster.processes import enter_network, in_network
from realcluster.results import Results
from realcluster.settings import CONTROL_PLANE_NETWORK, NODES, Settings, read_settings
from realcluster.trial import TRIALS, Trial

TITLES = {name: title for name, (title, _) in TRIALS.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m realcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the cluster")
    commands.add_parser("down", help="end it, and remove what it left on this machine")
    run = commands.add_parser("run", help="run a command in the network of the control plane")
    run.add_argument("words", nargs=argparse.REMAINDER)
    for name, text in (("off", "cut the power of a node"), ("on", "start a node again")):
        node = commands.add_parser(name, help=text)
        node.add_argument("number", type=int, choices=NODES)
    trial = commands.add_parser("trial", help="install asched, and try what happens to it")
    trial.add_argument("installation", choices=INSTALLATIONS)
    trial.add_argument("names", nargs="*", help=f"of trials: {', '.join(TRIALS)}; default: all")
    commands.add_parser("table", help="print what the trials found, as Markdown")
    arguments = parser.parse_args()
    settings = read_settings()
    cluster = Cluster(settings)
    match arguments.command:
        case "up":
            cluster.up()
        case "down":
            cluster.down()
        case "off":
            cluster.cut_power(arguments.number)
        case "on":
            cluster.start_node(arguments.number)
        case "trial":
            enter_network(CONTROL_PLANE_NETWORK)
            Trial(settings, arguments.installation).run(arguments.names)
        case "table":
            print(Results(settings.folder / "results.json").table(TITLES))
        case "run":
            _become(settings, arguments.words)
    return 0


def _become(settings: Settings, words: list[str]) -> None:
    """Become the command, as an administrator of the cluster would run it."""
    os.environ["KUBECONFIG"] = str(settings.kubeconfig)
    os.environ["PATH"] = f"{settings.assets}:{os.environ['PATH']}"
    command = in_network(CONTROL_PLANE_NETWORK, *words)
    os.execvp(command[0], command)  # noqa: S606 - the words are the administrator's


if __name__ == "__main__":
    sys.exit(main())
