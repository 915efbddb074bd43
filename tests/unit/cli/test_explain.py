"""What `asched explain` and `asched healthcheck` print, asked of a port with a made-up inside."""

import json
from copy import deepcopy

import pytest

from asched.cli.explain import explanation
from tests.unit.cli.programs import TOLD, asched
from tests.unit.kube.scripted import reply, scripted
from tests.unit.serve.world import a_port


def test_a_pod_that_fits_nowhere_gets_its_funnel():
    assert list(explanation(TOLD)) == [
        "pod default/web: unschedulable",
        "  3 attempts, rejected by NodeResourcesFit, TaintToleration, profile asched, priority 7",
        "",
        "last rejection, 1970-01-01 00:00:02.500Z",
        "       17 nodes  NodeResourcesFit: no cpu",
        "        3 nodes  TaintToleration: tainted",
        "",
        "now: 0 of 20 nodes fit",
        "  TaintToleration   rejects      3, leaves     17",
        "  NodeResourcesFit  rejects     17, leaves      0",
        "nearest misses",
        "  n7: NodeResourcesFit: no cpu",
        "",
        "history",
        "  1970-01-01 00:00:01.000Z  #4  node chosen: n1, 300, 2",
        "  1970-01-01 00:00:02.500Z  #9  no node: 20 nodes rejected the pod",
    ]


def test_a_bound_pod_is_told_in_two_lines():
    told = {"pod": "a/b", "place": "bound", "node": "n1", "story": [], "schedulerName": "x"}

    assert list(explanation(told)) == ["pod a/b: bound on n1", "  profile x"]


def test_what_is_missing_and_what_would_help_stands_below_the_funnel():
    told = {
        **deepcopy(TOLD),
        "alike": 340,
        "wokenBy": "NodeAdd",
        "missing": [{"resource": "cpu", "asked": "64", "mostFree": "1300m", "node": "n2"}],
        "taints": [{"taint": "team=a:NoSchedule", "nodes": 3}],
        "changes": [
            {"kind": "node", "text": "one more node like n2", "nodes": 1, "node": "n2"},
            {"kind": "toleration", "text": "tolerate team=a:NoSchedule", "nodes": 3, "node": "n1"},
        ],
    }
    told["now"]["nearestMisses"][0] |= {
        "missing": {"cpu": {"asked": "64", "free": "1300m"}},
        "taints": ["team=a:NoSchedule"],
    }
    lines = list(explanation(told))
    assert "priority 7, last requeued by NodeAdd" in lines[1]
    assert lines[2] == "  340 equal pods wait for the same reason"
    start = lines.index(
        "  n7: NodeResourcesFit: no cpu (cpu: 1300m free, 64 requested; team=a:NoSchedule)"
    )
    assert lines[start + 1 : start + 7] == [
        "requests 64 cpu; the largest free amount is 1300m on n2",
        "taint team=a:NoSchedule on 3 nodes is not tolerated",
        "",
        "any one of these changes makes the pod fit",
        "  node        one more node like n2",
        "  toleration  tolerate team=a:NoSchedule  (on 3 nodes)",
    ]


def scores(points):
    return [
        {"plugin": "Fit", "raw": points, "normalized": points, "weight": 2, "weighted": 2 * points}
    ]


def test_a_choice_is_told_plugin_by_plugin_beside_the_node_asked_about():
    best = [
        {"node": "n1", "score": 80, "scores": scores(40)},
        {"node": "n2", "score": 60, "scores": scores(30)},
    ]
    line = {"at": 1.0, "attempt": 9, "what": "node chosen", "node": "n1", "score": 80}
    line |= {"feasible": 12, "scores": scores(40), "best": best, "bestAsOf": 7}
    told = {"pod": "a/b", "place": "bound", "node": "n1", "story": [line]}
    about = {"node": "n2", "scored": best[1]}
    assert list(explanation({**told, "against": about}))[2:9] == [
        "n1 was chosen with 80 points of the 12 nodes that fit",
        "                                    raw, normalized, weighted",
        "  Fit                               40, 40, 80",
        "",
        "n2 fits now",
        "  it had 60 points at attempt #7",
        "  Fit                               30, 30, 60",
    ]
    drawn = {**line, "best": [*best, {**best[0], "node": "n5"}]}
    for as_of, lot in ((7, ""), (9, ", at random among nodes with equal points")):
        story = [{**drawn, "bestAsOf": as_of}]
        said = list(explanation({**told, "story": story, "against": about}))[2]
        assert said == f"n1 was chosen with 80 points of the 12 nodes that fit{lot}"
    about = {"node": "n3", "refused": "Fit: no cpu", "scored": None, "below": 60}
    assert list(explanation({**told, "against": about}))[6:8] == [
        "n3 rejects the pod now: Fit: no cpu",
        "  it was not among the best nodes, which had at least 60 points",
    ]
    assert list(explanation({**told, "against": {"node": "n1"}}))[6:8] == [
        "n1 is the chosen node; name another node with --against to compare",
        "",
    ]
    wide = "\n".join(explanation(told, is_wide=True))
    assert "n2 had 60 points at attempt #7" in wide
    assert "was chosen with" not in "\n".join(explanation(told))


@pytest.fixture
async def port():
    async with a_port() as opened:
        opened.inspector.told["default/web"] = TOLD
        yield opened


BLIND = "--insecure-skip-tls-verify"


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("web",), 1, "denies access to the explanation"),
        (("web", "--token=wrong"), 1, "denies access to the explanation"),
        (("other", "--token=admin"), 1, "does not know pod default/other"),
        (("pod/other", "--token=admin"), 1, "does not know pod default/other"),
        (("po/ns/other", "--token=admin"), 1, "does not know pod ns/other"),
        (("a/b/c", "--token=admin"), 2, "'a/b/c' is not a pod"),
    ],
)
async def test_what_goes_wrong_is_told_in_one_line(port, words, status, text):
    server = f"--server=https://127.0.0.1:{port.server.port}"

    ended, _, err = await asched("explain", *words, server, BLIND)

    assert ended == status
    assert text in err
    assert len(err.splitlines()) == 1


async def test_the_health_check_follows_the_checks(port):
    server = f"--server=https://127.0.0.1:{port.server.port}"
    assert (await asched("healthcheck", server))[:2] == (0, "ok\n")

    port.troubles["leaderElection"] = "too long without a lease"

    status, out, _ = await asched("healthcheck", server)
    assert status == 1
    assert "[-]leaderElection failed" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--server=https://[::1",), "is not an address"),
        (("--server=https://127.0.0.1:1", "--token=a\nsecret", BLIND), "contains unprintable"),
        (("--server=https://127.0.0.1:1", "--against=\udcff"), "cannot reach"),
    ],
)
async def test_words_that_make_no_sense_are_told_in_one_line(words, said):
    ended, out, err = await asched("explain", "web", *words)
    assert (ended, out, len(err.splitlines())) == (1, "", 1)
    assert said in err
    assert "secret" not in err


async def test_a_token_is_sent_only_to_whom_its_owner_trusts(port, tmp_path):
    server = f"--server=https://127.0.0.1:{port.server.port}"
    token = tmp_path / "token"
    token.write_text("admin\n")

    for words in (("--token=admin",), (f"--token-file={token}",)):
        ended, _, err = await asched("explain", "web", server, *words)
        assert ended == 1
        assert "cannot verify the certificate" in err
        assert len(err.splitlines()) == 1

    ended, _, err = await asched("explain", "web", server)  # entrusts nothing, and is refused
    assert (ended, "denies access to the explanation" in err) == (1, True)


async def test_a_token_is_not_sent_in_the_clear_nor_to_where_a_redirect_points():
    async def elsewhere(_seen, _wire):
        return reply(302, b"", "Location: /other")

    async with scripted(elsewhere) as server:
        ended, _, err = await asched("explain", "web", f"--server={server.url}", "--token=t")
        assert (ended, server.seen) == (1, [])
        assert "refusing to send a token to" in err
        ended, _, err = await asched("explain", "web", f"--server={server.url}", "--token=t", BLIND)
        assert (ended, len(server.seen)) == (1, 1)
        assert "answered 302" in err


async def test_a_health_check_entrusts_nothing():
    async def well(_seen, _wire):
        return reply(200, b"ok")

    async with scripted(well) as server:
        assert (await asched("healthcheck", f"--server={server.url}"))[:2] == (0, "ok\n")
    assert "authorization" not in server.seen[0].headers
    assert (await asched("healthcheck", "--token=t"))[0] == 2


GANG = {
    "group": "scheduling.x-k8s.io:spark/pi",
    "api": "scheduling.x-k8s.io",
    "unplaced": 2,
    "placed": 1,
    "held": 0,
    "minCount": 3,
    "lacks": "",
    "said": "2 of 3 pods found no place",
    "rejected": "spark/b",
    "minResources": {"cpu": "3"},
    "pods": [
        {"pod": "spark/b", "place": "unschedulable", "node": ""},
        {"pod": "spark/c", "place": "unschedulable", "node": ""},
        {"pod": "spark/a", "place": "placed", "node": "n1"},
    ],
}


async def test_a_gang_is_told_with_the_pod_that_stops_it(port):
    port.inspector.told |= {"spark/pi": GANG, "spark/b": {**TOLD, "pod": "spark/b"}}
    server = f"--server=https://127.0.0.1:{port.server.port}"

    words = ("explain", "podgroup/spark/pi", server, "--token=admin", BLIND)
    status, out, _ = await asched(*words)

    assert status == 0
    lines = out.splitlines()
    assert lines[:3] == [
        "podgroup spark/pi of scheduling.x-k8s.io: 1 of its 3 pods are placed",
        "  3 start together",
        "  minResources cpu 3",
    ]
    assert lines[3:13] == [
        *("", "2 of 3 pods found no place", "", "2 unschedulable", "  spark/b", "  spark/c"),
        *("1 placed", "  spark/a on n1", "", "pod spark/b: unschedulable"),
    ]
    assert "  n7: NodeResourcesFit: no cpu" in lines
    status, out, _ = await asched(*words, "-o", "json")
    assert json.loads(out)["rejectedPod"]["pod"] == "spark/b"
    status, _, err = await asched("explain", "pg/nobody", *words[2:])
    assert (status, "does not know podgroup default/nobody" in err) == (1, True)
