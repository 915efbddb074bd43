"""A kind is followed in the version that the server has, also on a server that sends no bookmarks.

An idle embedded server sends none, like an API server whose etcd reports no progress. The process
then has to ask whether its streams are complete, in the version that the server has.
"""

import pytest

from asched import names
from asched.core.cluster.facts import Listed
from asched.core.framework.effects import EmitEvent
from asched.core.model.kinds import (
    DEVICE_TAINT_RULE,
    LOCAL_QUEUE,
    POD_GROUP,
    POD_GROUP_V1BETA1,
    PROVISIONING_REQUEST,
    VERSIONS,
    Kind,
)
from asched_lab.apiserver.resources import RELEASES, resources_of
from asched_lab.sim.scenario import profile
from asched_lab.sim.world import World
from tests.playbook import a_group, a_member, gang_play, room_for

#: What makes a process follow each kind: a plugin or a feature gate.
PLUGINS = {PROVISIONING_REQUEST: names.CHECK_AND_HOLD}
GATES = {
    POD_GROUP: ("GenericWorkload", "GangScheduling"),
    DEVICE_TAINT_RULE: ("DRADeviceTaints", "DRADeviceTaintRules"),
}
FOLLOWED = (*PLUGINS, *GATES)
CASES = [(kind, version) for kind in FOLLOWED for version in VERSIONS[kind.resource]]


def serve(world: World, kind: Kind, version: Kind) -> None:
    """Let the server have a kind in this version only."""
    ctx = world.server.ctx
    others = {other.group_version for other in VERSIONS[kind.resource]}
    ctx.alpha.difference_update(others)
    ctx.alpha.add(version.group_version)
    for minor in RELEASES:  # the first release that has a version by default, or the last one
        ctx.resources = resources_of(minor)
        if any(
            (res.api_version, res.plural) == (version.group_version, kind.plural)
            for res in ctx.resources
        ):
            return
    ctx.resources = resources_of(next(iter(RELEASES)))


def test_every_kind_with_several_versions_is_tried() -> None:
    only_read_by_doctor = {LOCAL_QUEUE.resource}
    assert {kind.resource for kind in FOLLOWED} == set(VERSIONS) - only_read_by_doctor


@pytest.mark.parametrize(
    ("kind", "version"), CASES, ids=[f"{kind.name}-{v.group_version}" for kind, v in CASES]
)
def test_an_idle_kind_counts_as_received_in_each_version(kind: Kind, version: Kind) -> None:
    plugins = [PLUGINS[kind]] if kind in PLUGINS else []
    gates = dict.fromkeys(GATES.get(kind, ()), True)
    with World(1, config=profile(*plugins), gates=gates) as world:
        serve(world, kind, version)
        world.run_for(90.0)  # readiness fails after 30 s without news
        scheduler = world.acting.scheduler
        assert scheduler.reflectors[kind].served_kind == version
        assert scheduler.watchdog.readiness_problem() == ""


def test_an_event_about_a_group_names_the_version_that_the_server_has() -> None:
    play = gang_play(room_for(3))
    play.turn(Listed(POD_GROUP_V1BETA1, (a_group(min_count=3),)))
    play.see(a_member("a"))
    regarding = []
    for _ in range(60):
        play.turn(after_s=1.0)
        regarding += [event.regarding for event in play.of(EmitEvent)]
    versions = {each.api_version for each in regarding if each.kind == "PodGroup"}
    assert versions == {POD_GROUP_V1BETA1.group_version}
