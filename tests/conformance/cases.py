"""Replays single cases: one pending pod in one cluster, every verdict, score and word compared.

A case that needs a plugin which does not exist yet is not covered; it never counts as passed.
A case that kube-scheduler decides by a fault which asched does not copy is tagged in the
recordings; where it differs, that is a declared difference, with a row in docs/parity.md.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from asched import names
from asched.core.cluster.facts import Seen
from asched.core.cluster.pods import PodInfo
from asched.core.config.gates import GATES, HONOURED, default_gates
from asched.core.config.versions import BASE, rules_of
from asched.core.framework.points import PostFilterResult
from asched.core.framework.rejection import NO_NODES, Rejection
from asched.core.framework.results.class_state import ClassState
from asched.core.framework.runner import NoNodesError, Runner, run_alone
from asched.core.framework.status import Status
from asched.core.framework.waiting import WaitingPods
from asched.core.model.decode import decode
from asched.core.model.kinds import POD
from asched.core.model.pod import Pod
from asched.core.plugins.default_preemption import FOUND, DefaultPreemption
from tests.conformance.world import World, build

#: Attempts with other seeds: a choice among equals must stay inside what was recorded.
SEEDS = range(4)


#: Tags of cases in which kube-scheduler is at fault and asched decides as the rule is meant.
NEGATIVE_SELECTOR = "quirk:negative-namespace-selector"
DECLARED = frozenset({NEGATIVE_SELECTOR, "quirk:rule-without-selector"})


@dataclass
class Result:
    """`missing` names plugins that the case needs and that do not exist: then it is not covered.

    `declared` are differences that docs/parity.md declares. `plugins` are those whose word the case
    records; `wakes_more`: ours wakes a pod that fits and that kube-scheduler lets sleep.
    """

    name: str
    family: str
    differences: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    missing: frozenset[str] = frozenset()
    plugins: frozenset[str] = frozenset()
    wakes_more: bool = False

    @property
    def agrees(self) -> bool:
        return not (self.differences or self.declared or self.missing)

    def compare(self, what: str, ours: Any, theirs: Any) -> None:
        if ours != theirs:
            self.differences.append(f"{what}: ours {ours!r}, kube-scheduler {theirs!r}")

    def declare(self, tags: Collection[str]) -> None:
        """Move the differences of a case with these tags to those that are declared."""
        if not DECLARED.isdisjoint(tags):
            self.declared += self.differences
            self.differences.clear()


@dataclass
class Evaluation:
    """What the runner says of a pod, in the shape of the recordings."""

    runner: Runner
    info: PodInfo
    state: ClassState
    feasible: list[str]
    on_nominated: bool
    scores: dict[str, dict[str, int]]
    total: dict[str, int]
    rejection: Rejection | None
    chosen: set[str]


#: Families whose verdicts are those of another minor version than 1.36.
FAMILY_VERSIONS = {"rules137": "1.37"}
#: Cases of such a family that were judged before the other rules were merged: end of the name ->
#: the rules.
EARLIER = {"-All-elsewhere": {"pools-of-other-nodes-are-ignored": True}}


def rules_for(case: Mapping[str, Any], minor: str) -> Mapping[str, bool]:
    """The rules that decide a case: those of a minor version; of the one that its family is of, if
    none is given.
    """
    if not minor:
        for end, rules in EARLIER.items():
            if case["name"].endswith(end):
                return rules
        minor = FAMILY_VERSIONS.get(case["family"], BASE)
    newer = {gate: default_gates(minor)[gate] for gate in HONOURED - GATES.keys()}
    return {**rules_of(minor), **newer}


def replay(case: Mapping[str, Any], minor: str = "") -> Result:
    """Run one case by the rules of a minor version (that of its family, if none is given) and
    compare everything the corpus recorded.
    """
    result = Result(case["name"], case["family"])
    _replay(case, result, rules_for(case, minor))
    result.declare(case.get("tags", ()))
    return result


def _replay(case: Mapping[str, Any], result: Result, rules: Mapping[str, bool]) -> None:
    world = build(case["config"], case["objects"], case.get("gates"), rules)
    pod = decode(Pod, case["pod"])
    expect = case["expect"]
    result.missing = missing_for(case, world)
    if result.missing:
        return
    runner = world.runner_for(pod)
    world.cluster.apply(Seen(POD, pod))
    info = world.cluster.classes.info_of(pod)
    if expect.get("error"):
        _compare_error(result, runner, info, expect)
        return
    evaluation = evaluate(world, runner, info)
    _compare_filters(result, world, evaluation, expect)
    result.compare("feasible", evaluation.feasible, expect["feasible"])
    for plugin in sorted((evaluation.scores.keys() | expect["scores"].keys()) - world.missing):
        ours, theirs = evaluation.scores.get(plugin), expect["scores"].get(plugin)
        result.compare(f"scores of {plugin}", ours, theirs)
    result.compare("total", evaluation.total, expect["total"])
    result.compare("best", best_of(evaluation.total), expect["best"])
    if not evaluation.chosen <= set(expect["best"]):
        result.compare("chosen", sorted(evaluation.chosen), expect["best"])
    _compare_rejection(result, world, runner, info, evaluation, expect)


def missing_for(case: Mapping[str, Any], world: World) -> frozenset[str]:
    """Plugins that the case needs although they do not exist."""
    if not world.missing:
        return frozenset()
    expect = case["expect"]
    named = set(expect.get("unschedulable_plugins") or ())
    named |= {status["plugin"] for status in (expect.get("filter") or {}).values()}
    named |= {p for p, by_node in (expect.get("scores") or {}).items() if any(by_node.values())}
    if expect.get("prefilter"):
        named.add(expect["prefilter"]["plugin"])
    return frozenset(named & world.missing)


def evaluate(world: World, runner: Runner, info: PodInfo) -> Evaluation:
    """Filter and score once in full, and schedule with several seeds."""
    state = runner.cache.state_of(info)
    chosen = set()
    rejection = None
    feasible: list[str] = []
    on_nominated = False
    for seed in SEEDS:
        found = run_alone(runner.schedule(info, seed))
        if isinstance(found, Rejection):
            rejection = found
            break
        chosen.add(found.node)
    scores: dict[str, dict[str, int]] = {}
    total: dict[str, int] = {}
    if rejection is None:
        mask = feasible_mask(world, runner, info, state)
        nominated = info.pod.status.nominated_node_name
        on_nominated = bool(nominated) and chosen == {nominated}
        if on_nominated:
            mask[:] = False
            mask[world.cluster.nodes.row_of[nominated]] = True
        rows = np.flatnonzero(mask)
        names = [_name(world, row) for row in rows]
        feasible = sorted(names)
        ranking = state.rank(info, mask)
        total = {name: int(ranking[row]) for name, row in zip(names, rows, strict=True)}
        for name, row in zip(names, rows, strict=True):
            scorers, points = state.ranking.points_of(int(row))
            for (scorer, _), weighted in zip(scorers, points[1::2], strict=True):
                scores.setdefault(scorer, {})[name] = weighted
        for scorer in state.ranking.zero_scorers:
            scores[scorer] = dict.fromkeys(names, 0)
    return Evaluation(runner, info, state, feasible, on_nominated, scores, total, rejection, chosen)


def feasible_mask(world: World, runner: Runner, info: PodInfo, state: ClassState) -> Any:
    """The rows an attempt would choose from."""
    mask = state.feasible.copy()
    mask[list(runner.nominated_pods.statuses(info, state))] = False
    return mask


def negative_selectors(world: World, pod: Pod) -> tuple[str, ...]:
    """The tag for pods with a namespaceSelector of requirements that a missing label meets; for
    recordings of many pods and of hints, which have no tag of their own.
    """
    terms = world.cluster.classes.info_of(pod).cls.terms
    selectors = [term.namespace_selector for group in terms for term in group]
    found = any(s is not None and not s.is_everything and s.matches({}) for s in selectors)
    return (NEGATIVE_SELECTOR,) if found else ()


def best_of(total: Mapping[str, int]) -> list[str]:
    top = max(total.values(), default=0)
    return sorted(name for name, points in total.items() if points == top)


def _name(world: World, row: Any) -> str:
    node = world.cluster.nodes.node_at[int(row)]
    assert node is not None
    return node.name


def _compare_error(
    result: Result, runner: Runner, info: PodInfo, expect: Mapping[str, Any]
) -> None:
    try:
        found = run_alone(runner.schedule(info, 0))
    except NoNodesError:
        result.compare("error", NO_NODES, expect["error"])
    else:
        result.compare("error", repr(found), expect["error"])


def _shown(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.text, "reasons": list(status.reasons)}


def _compare_filters(
    result: Result, world: World, evaluation: Evaluation, expect: Mapping[str, Any]
) -> None:
    outcome = evaluation.state.outcome
    ours = None if outcome.rejection is None else _shown(outcome.rejection)
    result.compare("prefilter", ours, expect["prefilter"])
    if outcome.rejection is not None:
        return
    if expect["prefilter_nodes"] is None:
        result.compare("prefilter_nodes", outcome.rows, None)
    else:
        known = [n for n in expect["prefilter_nodes"] if n in world.cluster.nodes.row_of]
        rows = sorted(_name(world, row) for row in outcome.rows or ())
        result.compare("prefilter_nodes", rows, known)
    if evaluation.rejection is not None:
        found = {
            name: evaluation.rejection.status_at(row)
            for name, row in world.cluster.nodes.row_of.items()
        }
    else:
        found = filter_statuses(world, evaluation)
    shown = {name: _shown(status) for name, status in found.items() if status is not None}
    theirs = expect["filter"]
    for name in sorted(shown.keys() | theirs.keys()):
        ours_here, theirs_here = shown.get(name), theirs.get(name)
        if ours_here is not None and theirs_here is not None:
            ours_here["reasons"].sort()
            theirs_here = {**theirs_here, "reasons": sorted(theirs_here["reasons"])}
        result.compare(f"filter of {name}", ours_here, theirs_here)


def filter_statuses(world: World, evaluation: Evaluation) -> dict[str, Status | None]:
    """The verdict on every node of a pod that fits somewhere."""
    if evaluation.on_nominated:
        return {}  # its nominated node was tried first, nobody else was looked at
    judged = evaluation.runner.rejection(evaluation.info, evaluation.state, {})
    return {
        name: None if name in evaluation.feasible else judged.status_at(row)
        for name, row in world.cluster.nodes.row_of.items()
    }


def _compare_rejection(
    result: Result,
    world: World,
    runner: Runner,
    info: PodInfo,
    evaluation: Evaluation,
    expect: Mapping[str, Any],
) -> None:
    rejection = evaluation.rejection
    result.compare("fits", rejection is None, expect["fit_error"] is None)
    if rejection is None or expect["fit_error"] is None:
        return
    result.compare("fit_error", rejection.message(), expect["fit_error"])
    blamed = sorted(rejection.unschedulable_plugins | rejection.pending_plugins)
    result.compare("unschedulable_plugins", blamed, expect.get("unschedulable_plugins") or [])
    if world.missing:
        return
    _compare_post_filter(result, world, runner, info, evaluation, expect)


def _compare_post_filter(
    result: Result,
    world: World,
    runner: Runner,
    info: PodInfo,
    evaluation: Evaluation,
    expect: Mapping[str, Any],
) -> None:
    rejection = evaluation.rejection
    assert rejection is not None
    expected = expect["preemption"]
    if not runner.profile.post_filters:
        result.compare("post filter", "NoPostFilterPlugins", expected["code"])
        return
    outcomes = []
    for seed in SEEDS:
        trial = runner.trial(evaluation.state, WaitingPods(), seed, 0.0)
        found = run_alone(runner.post_filter(info, rejection, trial))
        said, cut = event_message(rejection, found)
        result.compare("fit_error_with_postfilter", cut, expect["fit_error_with_postfilter"])
        result.compare("post filter code", found.status.code.text, expected["code"])
        result.compare("post filter message", said, expected["message"])
        clears = found.nomination.node == ""
        result.compare("clears_nomination", clears, expected.get("clears_nomination", False))
        if found.nomination.node:
            outcomes.append({"nominated": found.nomination.node, "victims": sorted(found.victims)})
    _compare_candidates(result, runner, info, evaluation, expected)
    for outcome in outcomes:
        if outcome not in expected["outcomes"]:
            result.compare("preemption outcome", outcome, expected["outcomes"])


def event_message(rejection: Rejection, found: PostFilterResult) -> tuple[str, str]:
    """What the PostFilter step reports, and the message of the event with it."""
    said = found.status.message
    if found.status.is_success:  # 1.36 reports nothing
        count = len(found.victims)
        said = said.removesuffix(
            f"preemption: {FOUND} {found.nomination.node}, preempting {count} victims"
        )
    message = rejection.message(said)
    return said, message if len(message) <= 1024 else message[:1020] + " ..."


def _compare_candidates(
    result: Result,
    runner: Runner,
    info: PodInfo,
    evaluation: Evaluation,
    expected: Mapping[str, Any],
) -> None:
    plugin = runner.profile.plugins.get(names.DEFAULT_PREEMPTION)
    if not isinstance(plugin, DefaultPreemption) or "candidates" not in expected:
        return
    theirs = sorted(expected["candidates"] or (), key=lambda candidate: candidate["node"])
    result.compare("candidates", candidates_of(runner, info, evaluation), theirs)


def candidates_of(runner: Runner, info: PodInfo, evaluation: Evaluation) -> list[dict[str, Any]]:
    """Every node on which preemption would work, before the best one is picked, by name."""
    plugin = runner.profile.plugins[names.DEFAULT_PREEMPTION]
    assert isinstance(plugin, DefaultPreemption)
    assert evaluation.rejection is not None
    trial = runner.trial(evaluation.state, WaitingPods(), 0, 0.0)
    found = plugin.candidates(info, evaluation.rejection, trial)
    ours = [
        {
            "node": candidate.node,
            "victims": sorted(victim.pod.key for victim in candidate.victims),
            "pdb_violations": candidate.violations,
        }
        for candidate in found.values()
    ]
    return sorted(ours, key=lambda candidate: str(candidate["node"]))
