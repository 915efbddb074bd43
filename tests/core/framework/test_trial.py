"""What a PostFilter plugin may try: a row as the columns stand now, promises included."""

from asched.core.framework.runner import Runner
from asched.core.framework.trial import Trial
from asched.core.framework.waiting import WaitingPods
from asched.core.state.pods import PodInfo
from tests.builders import a_node, a_pod
from tests.core.framework.runners import a_runner


def tried(runner: Runner, pod: PodInfo) -> Trial:
    runner.fitting(pod)
    return runner.trial(runner.cache.state_of(pod), WaitingPods(), 5, 7.0)


def test_a_row_is_judged_as_it_stands_with_those_who_were_promised_room() -> None:
    nodes = [a_node(name).allocatable(cpu="2") for name in ("n1", "n2")]
    promised = a_pod("vip").requests(cpu="1").priority(9).status(nominatedNodeName="n2")
    runner = a_runner(*nodes, waiting=promised)
    cluster = runner.cluster
    pod = cluster.classes.info_of(a_pod().requests(cpu="2").build())
    trial = tried(runner, pod)
    assert trial.status_of(pod, 0) is None
    refused = trial.status_of(pod, 1)
    assert refused is not None
    assert (refused.plugin, refused.message) == ("NodeResourcesFit", "Insufficient cpu")
    other = cluster.classes.info_of(a_pod("other").requests(cpu="1").build())
    with cluster.supposing().there((other,), 0):
        assert trial.status_of(pod, 0) == refused
    assert trial.status_of(pod, 0) is None


def test_it_knows_its_attempt() -> None:
    runner = a_runner(a_node("n1"))
    trial = tried(runner, runner.cluster.classes.info_of(a_pod().build()))
    assert (trial.seed, trial.now_s, trial.scheduler_name) == (5, 7.0, "default-scheduler")
    assert (trial.extenders, trial.in_placements, trial.is_of_group) == (None, False, False)
