"""When pods end: what counts before what, and what is known of those that are late."""

from typing import Any

import pytest
from msgspec.structs import replace

from asched.batch.backfill.expected_ends import (
    DURATION,
    GRACE_S,
    LATE_S,
    MAX_EXEC_TIME,
    OVERDUE_S,
    SAMPLES_MIN,
    Ends,
    ExpectedEnd,
)
from asched.core.cluster.cluster import Cluster
from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.model.decode import decode
from asched.core.model.kinds import JOB
from asched.core.model.timestamp import rfc3339
from asched.core.model.workload import Job
from tests.builders import PodBuilder, a_pod

NOW_S = 1_700_000_000.0
BEGAN_S = NOW_S - 50


def placed(cluster: Cluster, pod: PodBuilder, **status: Any) -> PodInfo:
    info = cluster.classes.info_of(pod.spec(nodeName="n1").status(**status).build())
    info.node_name = "n1"
    return info


def running(cluster: Cluster, pod: PodBuilder) -> PodInfo:
    return placed(cluster, pod, startTime=rfc3339(BEGAN_S))


def owned(name: str, **spec: Any) -> PodBuilder:
    owner = {"kind": "Job", "name": "job", "uid": "uid-job", "controller": True}
    return a_pod(name).metadata(ownerReferences=[owner]).spec(**spec)


def a_job(seconds: int | None, began_s: float | None) -> Job:
    spec = {} if seconds is None else {"activeDeadlineSeconds": seconds}
    status = {} if began_s is None else {"startTime": rfc3339(began_s)}
    metadata = {"name": "job", "namespace": "default", "uid": "uid-job"}
    return decode(Job, {"metadata": metadata, "spec": spec, "status": status})


def test_a_deadline_counts_from_the_start_and_leaves_a_grace_period() -> None:
    cluster = Cluster()
    pod = a_pod().spec(activeDeadlineSeconds=100, terminationGracePeriodSeconds=7)

    assert Ends(cluster).of(running(cluster, pod), NOW_S) == ExpectedEnd(
        BEGAN_S + 107, is_hard=True
    )


def test_of_the_deadlines_of_pod_and_job_the_first_counts() -> None:
    cluster = Cluster()
    cluster.apply(Seen(JOB, a_job(60, BEGAN_S - 20)))
    info = running(cluster, owned("one", activeDeadlineSeconds=100))

    assert Ends(cluster).of(info, NOW_S) == ExpectedEnd(BEGAN_S + 40 + GRACE_S, is_hard=True)


def believing(cluster: Cluster) -> Ends:
    ends = Ends(cluster)
    ends.believes_soft = True
    return ends


def test_the_time_that_kueue_allows_a_job_or_pod_is_soft() -> None:
    cluster, labels = Cluster(), {MAX_EXEC_TIME: "30"}
    job = a_job(60, BEGAN_S)
    cluster.apply(Seen(JOB, replace(job, metadata=replace(job.metadata, labels=labels))))

    of_job = running(cluster, owned("one"))
    of_pod = running(cluster, a_pod("two").labels(labels))

    assert believing(cluster).of(of_job, NOW_S) == ExpectedEnd(BEGAN_S + 60 + GRACE_S, is_hard=True)
    assert believing(cluster).of(of_pod, BEGAN_S) == ExpectedEnd(BEGAN_S + 30, is_hard=False)
    assert Ends(cluster).of(of_pod, BEGAN_S) is None, "any owner may write the label"
    unknown = running(cluster, a_pod("three").labels({MAX_EXEC_TIME: "soon"}))
    assert believing(cluster).of(unknown, NOW_S) is None


def test_the_deadline_of_another_job_of_that_name_is_none() -> None:
    cluster = Cluster()
    cluster.apply(Seen(JOB, a_job(60, BEGAN_S)))
    owner = {"kind": "Job", "name": "job", "uid": "uid-before", "controller": True}

    assert (
        Ends(cluster).of(running(cluster, a_pod().metadata(ownerReferences=[owner])), NOW_S) is None
    )


def test_what_is_expected_is_soft_and_counts_only_without_a_deadline() -> None:
    cluster = Cluster()
    expected = {DURATION: "60"}

    soft = running(cluster, a_pod("soft").metadata(annotations=expected))
    both = running(
        cluster, a_pod("both").metadata(annotations=expected).spec(activeDeadlineSeconds=500)
    )

    assert Ends(cluster).of(soft, NOW_S) is None
    assert believing(cluster).of(soft, NOW_S) == ExpectedEnd(BEGAN_S + 60, is_hard=False)
    assert believing(cluster).of(both, NOW_S) == ExpectedEnd(BEGAN_S + 500 + GRACE_S, is_hard=True)


@pytest.mark.parametrize("text", ["", "soon", "-5", "1e9", "9" * 12, "٣"])
def test_what_is_no_number_of_seconds_is_not_known(text: str) -> None:
    cluster = Cluster()
    info = running(cluster, a_pod().metadata(annotations={DURATION: text}))

    assert Ends(cluster).of(info, NOW_S) is None


def test_a_late_pod_ends_a_step_later_for_a_while_and_a_soft_end_is_believed_once() -> None:
    cluster = Cluster()
    ends = believing(cluster)
    hard = running(cluster, a_pod("hard").spec(activeDeadlineSeconds=10))
    soft = running(cluster, a_pod("soft").metadata(annotations={DURATION: "400"}))
    over_s = BEGAN_S + 10 + GRACE_S

    assert ends.of(hard, over_s + 1) == ExpectedEnd(over_s + OVERDUE_S, is_hard=True)
    assert ends.of(hard, over_s + OVERDUE_S + 1) == ExpectedEnd(
        over_s + 2 * OVERDUE_S, is_hard=True
    )
    assert ends.of(hard, over_s + LATE_S + 1) is None
    assert ends.of(soft, BEGAN_S + 400) == ExpectedEnd(BEGAN_S + 400, is_hard=False)
    assert ends.of(soft, BEGAN_S + 401) is None


def test_an_end_that_its_owner_moves_back_is_the_first_one_still() -> None:
    cluster = Cluster()
    ends = believing(cluster)
    for seconds in ("60", "600", "6000"):
        pod = running(cluster, a_pod("p").metadata(annotations={DURATION: seconds}))
        assert ends.of(pod, NOW_S) == ExpectedEnd(BEGAN_S + 60, is_hard=False)
    assert ends.of(pod, BEGAN_S + 61) is None
    for seconds in (60, 600):
        cluster.apply(Seen(JOB, a_job(seconds, BEGAN_S)))
        assert ends.of(running(cluster, owned("q")), NOW_S) == ExpectedEnd(
            BEGAN_S + 60 + GRACE_S, is_hard=True
        )


def test_jobs_of_other_controllers_and_jobs_without_a_start_end_no_pod() -> None:
    cluster = Cluster()
    job = a_job(60, BEGAN_S)
    cluster.apply(Seen(JOB, replace(job, spec=replace(job.spec, managed_by="example.com/own"))))
    assert Ends(cluster).of(running(cluster, owned("one")), NOW_S) is None
    cluster.apply(Seen(JOB, a_job(60, None)))
    assert Ends(cluster).of(running(cluster, owned("two")), NOW_S) is None


def test_what_like_pods_took_is_learnt_where_a_profile_says_so() -> None:
    cluster = Cluster()
    ends = believing(cluster)
    for number in range(SAMPLES_MIN):
        gone = running(cluster, a_pod(f"gone-{number}").requests(cpu="2"))
        ends.ended(gone, BEGAN_S + 100 + number)
    like = running(cluster, a_pod("like").requests(cpu="2"))
    assert ends.of(like, NOW_S) is None

    ends.learns = True
    for number in range(SAMPLES_MIN):
        gone = running(cluster, a_pod(f"gone-{number}").requests(cpu="2"))
        ends.ended(gone, BEGAN_S + 100 + number)

    assert ends.of(like, NOW_S) == ExpectedEnd(BEGAN_S + 104, is_hard=False)
    assert ends.of(running(cluster, a_pod("other").requests(cpu="1")), NOW_S) is None
    ends.learns = False
    assert ends.of(like, NOW_S) is None, "no profile asks for it any more"
