"""GroupScaleUp: all new nodes that a gang lacks are requested at once, and withdrawn in time."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from asched.cli.main import main
from asched.core.cluster.facts import Answer, Gone, Refused, Seen, Unknown
from asched.core.framework.effects import Bind
from asched.core.model.decode import decode
from asched.core.model.kinds import (
    COSCHEDULING_GROUP,
    NODE,
    POD,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
)
from asched.core.model.pod import PodSpec
from asched_lab.apiserver.server import ApiServer
from tests.builders import a_pod, room
from tests.playbook import (
    BACKOFF_S,
    HELPS,
    LIMIT_S,
    REQUESTED,
    SCALE_UP_CLASS,
    USUAL_SHAPE,
    ScaleUpPlay,
    a_label_group,
    a_label_member,
    scale_up_profile,
)


def test_a_gang_on_a_full_cluster_gets_its_nodes_by_one_request() -> None:
    """64 pods of one CPU, of which two fit: 16 nodes of four CPUs."""
    play = ScaleUpPlay(room("n1", 2))
    play.crew(64)
    request = play.request
    assert request.spec.provisioning_class_name == SCALE_UP_CLASS
    assert (play.counts, play.new_nodes) == ([64], "16 of shape usual")
    assert [o.uid for o in request.metadata.owner_references or ()] == ["uid-crew"]
    assert play.reasons == {REQUESTED}
    message = play.conditions["crew-0"]["message"]
    assert message.endswith(
        f"new nodes are requested for the gang: 16 of shape usual"
        f" (ProvisioningRequest {request.metadata.name})"
    )
    play.say("Provisioned")
    for number in range(15):
        play.turn(Seen(NODE, room(f"new-{number}", 4).build()))
        play.settle(1)
    assert play.requests, "it waits for the last node"
    play.turn(Seen(NODE, room("new-15", 4).build()))
    play.settle(12)
    assert len(play.parts.cluster.placed) == 64
    assert play.is_clean
    assert len(play.made) == 1


SMALL = {"name": "small", "allocatable": {"cpu": "500m"}}
TAINTED = {**USUAL_SHAPE, "name": "tainted", "taints": [{"key": "gpu", "effect": "NoSchedule"}]}
FEW = {**USUAL_SHAPE, "name": "few", "maxNodes": 1}


@pytest.mark.parametrize(
    "shapes",
    [(SMALL, USUAL_SHAPE), (TAINTED, USUAL_SHAPE), (FEW, USUAL_SHAPE)],
    ids=["small", "tainted", "few"],
)
def test_the_first_shape_that_takes_all_pods_is_requested(
    shapes: tuple[dict[str, Any], ...],
) -> None:
    play = ScaleUpPlay(room("n1", 1), shapes=shapes)
    play.crew(8)
    assert play.new_nodes == "2 of shape usual"
    assert play.reasons == {REQUESTED}
    play.audited()


def test_autoscalers_add_no_nodes_for_a_gang_that_no_shape_helps() -> None:
    play = ScaleUpPlay(room("n1", 1), shapes=(SMALL, TAINTED, FEW))
    play.crew(8)
    assert not play.requests
    assert play.reasons == {REQUESTED}
    why = (
        "1 with small (Insufficient cpu),"
        " 1 with tainted (node(s) had untolerated taint(s)), 5 with few (maxNodes 1)"
    )
    text = f"; no shape of new nodes helps the gang: of 8 pods fit {why}"
    assert play.conditions["crew-0"]["message"].endswith(text)
    play.turn(Seen(NODE, room("n2", 3).build()))
    while not play.requests and play.now_s < 3000:
        play.settle(10)  # the next attempt comes with a sweep, every five minutes
    assert play.new_nodes == "1 of shape few"
    play.audited()


def test_nodes_are_counted_by_all_rules_of_the_profile() -> None:
    """Four pods that keep apart need a node each, and the pods of another shape fit beside them."""
    play = ScaleUpPlay(room("n1", 0))
    keep = {
        "labelSelector": {"matchLabels": {"role": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [keep]}}
    label = {"scheduling.x-k8s.io/pod-group": "crew", "role": "db"}
    members = [a_label_member(f"db-{n}").labels(label).spec(affinity=affinity) for n in range(4)]
    play.gang(*members, *(a_label_member(f"web-{n}", cpu="500m") for n in range(4)))
    assert play.new_nodes == "4 of shape usual"
    assert sorted(play.counts) == [4, 4]
    specs = [template["template"]["spec"] for template in play.templates.values()]
    assert affinity in [spec.get("affinity") for spec in specs]


def test_no_other_pod_is_placed_on_a_supposed_node() -> None:
    play = ScaleUpPlay(room("n1", 0))
    group = a_label_group("crew", 400)
    play.turn(Seen(COSCHEDULING_GROUP, group))
    play.turn(*(Seen(POD, a_label_member(f"m{n}").build()) for n in range(400)))
    for number in range(40):
        play.see(a_pod(f"plain-{number}").requests(cpu="1"))
        assert not play.of(Bind)
        play.turn(after_s=0.01)
    play.settle(5)
    assert play.new_nodes == "100 of shape usual"
    assert play.conditions["plain-1"]["reason"] == HELPS
    assert not play.of(Bind)
    assert list(play.parts.cluster.nodes.row_of) == ["n1"]


@pytest.mark.parametrize("end", ["time", "Failed", "BookingExpired", "deleted"])
def test_a_request_that_is_over_is_not_made_again_before_its_backoff(end: str) -> None:
    play = ScaleUpPlay(room("n1", 1))
    play.crew()
    assert play.reasons == {REQUESTED}
    if end == "time":
        play.settle(LIMIT_S - 10)
        assert play.requests
        play.settle(15)
    elif end == "deleted":
        play.turn(Gone(PROVISIONING_REQUEST, play.requests.popitem()[1]))
    else:
        play.say(end)
    play.settle(15)
    assert play.is_clean
    # An autoscaler that has ended the request would buy nodes that do not help all of the gang.
    is_answered = end in ("Failed", "BookingExpired")
    assert play.reasons == {REQUESTED if is_answered else HELPS}
    assert ("requested without success" in play.conditions["crew-0"]["message"]) is is_answered
    play.settle(BACKOFF_S - 100)
    assert len(play.made) == 1
    while len(play.made) == 1 and play.now_s < 3000:
        play.settle(10)  # the next attempt comes with a sweep, every five minutes
    assert play.reasons == {REQUESTED}
    assert "new nodes are requested" in play.conditions["crew-0"]["message"]


@pytest.mark.parametrize("end", ["group", "pods", "incomplete"])
def test_a_request_is_withdrawn_when_its_gang_cannot_start(end: str) -> None:
    play = ScaleUpPlay(room("n1", 1))
    play.crew()
    if end == "group":
        play.turn(Gone(COSCHEDULING_GROUP, a_label_group("crew", 8)))
    for number in range({"group": 0, "pods": 8, "incomplete": 1}[end]):
        play.lose(a_label_member(f"crew-{number}"))
    play.settle(60)
    assert play.is_clean
    assert len(play.made) == 1


def again(play: ScaleUpPlay, *facts: Seen) -> ScaleUpPlay:
    """A process that begins after the one of `play`, and lists the requests and more."""
    other = ScaleUpPlay(room("n1", 1))
    other.now_s, other.requests, other.templates = play.now_s, play.requests, play.templates
    templates = (Seen(POD_TEMPLATE, play.template(name)) for name in play.templates)
    other.turn(*(Seen(PROVISIONING_REQUEST, r) for r in play.requests.values()), *templates, *facts)
    return other


def test_the_next_process_follows_a_request_of_a_gang_that_waits() -> None:
    first = ScaleUpPlay(room("n1", 1))
    first.crew()
    first.settle(LIMIT_S / 2)
    kept = first.request
    members = [Seen(POD, a_label_member(f"crew-{n}").build()) for n in range(8)]
    other = again(first, Seen(COSCHEDULING_GROUP, a_label_group("crew", 8)), *members)
    other.settle(5)
    assert (other.request, other.made, other.reasons) == (kept, [], {REQUESTED})
    other.settle(LIMIT_S / 2 + 10)
    assert other.is_clean
    assert other.reasons == {HELPS}


def test_the_next_process_deletes_requests_whose_gang_is_gone_and_no_others() -> None:
    first = ScaleUpPlay(room("n1", 1))
    first.crew()
    ours = first.request
    labels = ours.metadata.labels
    foreign = replace(ours.metadata, name="kueue", labels=None)
    other_profile = replace(
        ours.metadata, name="theirs", labels=labels, annotations={"asched.dev/scheduler-name": "x"}
    )
    spec = replace(ours.spec, provisioning_class_name="check-capacity.autoscaling.x-k8s.io")
    first.requests |= {
        "kueue": replace(ours, metadata=foreign),
        "theirs": replace(ours, metadata=other_profile),
        "check": replace(ours, metadata=replace(ours.metadata, name="check"), spec=spec),
    }
    other = again(first).settle(5)
    assert set(other.requests) == {"kueue", "theirs", "check"}
    assert not other.templates


def test_a_namespace_has_few_requests_open() -> None:
    play = ScaleUpPlay(room("n1", 0), maxRequestsPerNamespace=2)
    for name in ("a", "b", "c"):
        play.crew(name=name)
    assert len(play.requests) == 2
    assert play.conditions["c-0"]["reason"] == HELPS


@pytest.mark.parametrize("answer", [(Unknown, 0), (Refused, 500), (Refused, 429), (Refused, 409)])
def test_a_write_without_a_clear_answer_is_repeated(answer: tuple[type[Answer], int]) -> None:
    play = ScaleUpPlay(room("n1", 1))
    play.answers = [answer]
    play.crew()
    play.settle(10)
    assert play.counts == [8]
    play.answers = [answer]
    play.lose(a_label_member("crew-0"))
    play.settle(60)
    assert not play.requests


def test_without_the_right_gangs_are_as_without_the_plugin() -> None:
    play = ScaleUpPlay(room("n1", 1))
    play.answers = [(Refused, 403)] * 10
    play.crew()
    play.settle(15)
    assert play.is_clean
    assert play.reasons == {HELPS}


def squatted(play: ScaleUpPlay, change: str) -> str:
    """Objects of the names that asched will use: a template of another client, before its gang's
    pods come. Returns its name.
    """
    first = ScaleUpPlay(room("n1", 1))
    first.crew()
    (name,) = first.templates
    stored = orjson.loads(orjson.dumps(first.templates[name]))
    if change == "content":
        container = stored["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "190", "nvidia.com/gpu": "8"}}
        stored["template"]["spec"]["nodeSelector"] = {"pool": "h100"}
    elif change == "owner":
        stored["metadata"]["ownerReferences"] = []
    stored["metadata"]["uid"] = "uid-squatter"
    play.templates[name] = stored
    return name


@pytest.mark.parametrize("is_seen", [False, True])
@pytest.mark.parametrize("change", ["content", "owner", ""])
def test_a_template_of_the_name_is_used_only_if_it_is_what_was_to_be_created(
    change: str, *, is_seen: bool
) -> None:
    play = ScaleUpPlay(room("n1", 1))
    name = squatted(play, change)
    if is_seen:
        play.turn(Seen(POD_TEMPLATE, play.template(name)))
    play.crew()
    if not is_seen:
        play.turn(Seen(POD_TEMPLATE, play.template(name)))
    play.settle(15)
    assert bool(play.requests) is (change == "")
    if change:
        assert play.reasons == {HELPS}
        play.settle(LIMIT_S)
        assert play.template(name).metadata.uid == "uid-squatter", "it is left alone"


def test_a_request_of_the_name_is_used_only_if_it_is_what_was_to_be_created() -> None:
    first = ScaleUpPlay(room("n1", 1))
    first.crew()
    request = first.request
    metadata = replace(request.metadata, labels=None, uid="uid-squatter")
    pod_sets = tuple(replace(pod_set, count=800) for pod_set in request.spec.pod_sets)
    foreign = replace(request, metadata=metadata, spec=replace(request.spec, pod_sets=pod_sets))
    play = ScaleUpPlay(room("n1", 1))
    play.show(foreign)
    play.crew()
    play.settle(LIMIT_S)
    assert play.request == foreign
    assert play.reasons == {HELPS}
    assert not play.templates


def test_a_request_whose_template_is_changed_is_withdrawn() -> None:
    play = ScaleUpPlay(room("n1", 1))
    play.crew()
    (name,) = play.templates
    play.templates[name]["template"]["spec"]["nodeSelector"] = {"pool": "h100"}
    play.turn(Seen(POD_TEMPLATE, play.template(name)))
    play.settle(15)
    assert play.is_clean


def test_the_quota_of_a_namespace_hides_no_other_complaint() -> None:
    play = ScaleUpPlay(room("n1", 0))
    play.answers = [(Refused, 403)]
    play.crew(name="a")
    play.settle(10)
    members = [a_pod(f"m{n}", "team").requests(cpu="1") for n in range(4)]
    play.answers = [(Refused, 403)]
    group = {"scheduling.x-k8s.io/pod-group": "crew"}
    play.gang(*(member.labels(group) for member in members), namespace="team")
    play.settle(10)
    assert [text.partition(":")[0] for text in play.complaints] == [
        "cannot request nodes for gangs in namespace default",
        "cannot request nodes for gangs in namespace team",
    ]


def test_the_api_server_accepts_the_templates() -> None:
    """A spec as the API server returns it, with keys that it merged into selectors."""
    keys = {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
    selector = {"matchLabels": {"app": "x"}, **keys}
    term = {"labelSelector": selector, "matchLabelKeys": ["rev"], "topologyKey": "zone"}
    member = {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": term}
                ]
            }
        },
        "topologySpreadConstraints": [
            {**term, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {"pool": "usual"},
        "initContainers": [{"name": "side", "image": "s", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "token", "projected": {"sources": []}},
        ],
        "priority": 7,
        "terminationGracePeriodSeconds": 30,
    }
    play = ScaleUpPlay(room("n1", 1))
    members = [
        a_pod(f"crew-{n}")
        .labels({"scheduling.x-k8s.io/pod-group": "crew", "index": str(n)})
        .requests(cpu="1")
        .spec(**member)
        for n in range(4)
    ]
    play.gang(*members)
    (template,) = play.templates.values()
    assert template["template"]["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": "crew"}
    server = ApiServer()
    server.create("namespaces", {"metadata": {"name": "default"}})
    stored = server.create("podtemplates", orjson.loads(orjson.dumps(template)))
    spec = decode(PodSpec, stored["template"]["spec"])
    assert spec == play.template(stored["metadata"]["name"]).template.spec
    assert spec.node_selector == {"pool": "usual"}
    assert spec.priority == 7
    assert spec.tolerations == members[0].build().spec.tolerations


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (None, "nodeShapes: Required value: name the shapes of node"),
        ({"nodeShapes": []}, "nodeShapes: Required value: name the shapes of node"),
        (
            {"nodeShapes": [USUAL_SHAPE, USUAL_SHAPE]},
            'nodeShapes[1].name: Duplicate value: "usual"',
        ),
        ({"nodeShapes": [{"name": "x"}]}, "nodeShapes[0].allocatable: Required value"),
        (
            {"nodeShapes": [{"name": "x", "allocatable": {"cpu": "many"}}]},
            "nodeShapes[0].allocatable.cpu: Invalid value",
        ),
        (
            {"nodeShapes": [{**USUAL_SHAPE, "taints": [{"key": "a", "effect": "No"}]}]},
            "nodeShapes[0].taints[0].effect: Unsupported value",
        ),
        ({"nodeShapes": [{**USUAL_SHAPE, "maxNodes": 0}]}, "nodeShapes[0].maxNodes: Invalid value"),
        ({"nodeShapes": [USUAL_SHAPE], "timeLimitSeconds": 0}, "timeLimitSeconds: Invalid value"),
    ],
)
def test_unusable_arguments_are_refused_by_name(
    args: dict[str, Any] | None,
    fault: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = scale_up_profile()
    own["pluginConfig"] = [{"name": "GroupScaleUp", "args": args}] if args is not None else []
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file = tmp_path / "config.json"
    file.write_bytes(orjson.dumps({**kind, "profiles": [own]}))
    assert main(["config", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert fault in said
    assert "1 error" in said
