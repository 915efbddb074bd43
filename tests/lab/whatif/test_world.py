"""The production machine in a supposed cluster."""

import asyncio

import pytest

from asched.plugin import Node, Pod, Status, unschedulable
from asched_lab.whatif.api import differences, simulate
from tests.lab.whatif.clusters import a_deployment, a_node, a_pod, a_snapshot, places, supposed
from tests.lab.whatif.requests import a_request


class OnlyEven:
    """A plugin of a user."""

    name = "OnlyEven"

    def filter(self, pod: Pod, node: Node) -> Status | None:
        return None if int(node.name[1:]) % 2 == 0 else unschedulable("odd")


class Ready:
    """One whose answer is a coroutine."""

    name = "Ready"

    async def pre_bind(self, pod: Pod, node: str) -> None:
        await asyncio.sleep(0)


def test_pods_are_placed_and_the_rest_is_told_in_kube_schedulers_words() -> None:
    result = supposed(a_node("n1"), a_node("n2"), workloads=(a_deployment("web", 9),))
    assert len(result.placed) == 8
    (why,) = result.reasons()
    assert why == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption:"
        " 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )


def test_the_same_cluster_gives_the_same_places_and_another_seed_others() -> None:
    snapshot = a_snapshot(*(a_node(f"n{number}") for number in range(40)))
    web = a_deployment("web", 20)
    first, second = (simulate(snapshot, [web], seed=seed) for seed in (1, 1))
    assert places(first) == places(second)
    assert places(simulate(snapshot, [web], seed=2)) != places(first)


def test_plugins_of_users_take_part() -> None:
    snapshot = a_snapshot(*(a_node(f"n{number}", "1") for number in range(6)))
    web = a_deployment("web", 6)
    result = simulate(snapshot, [web], plugins=[OnlyEven, Ready])
    assert sorted(place.node for place in result.placed) == ["n0", "n2", "n4"]
    assert "3 odd" in result.pending[0].why
    assert len(differences(result, simulate(snapshot, [web]))) == 3


def test_a_permit_that_is_never_given_ends() -> None:
    class Patient:
        name = "Patient"

        permit_timeout_s = 0.05

        async def permit(self, pod: Pod, node: str) -> None:
            await asyncio.sleep(60)

    snapshot = a_snapshot(a_node("n1"))
    result = simulate(snapshot, [a_pod("web")], plugins=[Patient])
    ((_, why),) = places(result).items()
    assert "rejected due to timeout" in why


@pytest.mark.parametrize("text", ["extenders"])
def test_extenders_are_refused_unless_they_are_left_out(text: str, tmp_path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}]\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    )
    snapshot = a_snapshot(a_node("n1"), a_pod("web"))
    with pytest.raises(ValueError, match=f"{text}, which are not called"):
        simulate(snapshot, config=file)
    found = places(simulate(snapshot, config=file, without_extenders=True))
    assert found == {"default/web": "n1"}


HELD_UNTIL, TAKEN = "2026-01-01T00:10:00.000000Z", "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("request_", "placed", "note"),
    [
        (a_request(HELD_UNTIL), 1, "places are held for ProvisioningRequests: default/job"),
        (a_request(HELD_UNTIL, "BookingExpired"), 4, ""),
        (a_request("2025-12-31T00:00:00.000000Z"), 4, "Capacity reservation time is expired"),
        (a_request(HELD_UNTIL)[1:], 4, "its places are not known any more"),
    ],
    ids=["held", "ended", "expired", "no template"],
)
def test_places_that_are_held_for_a_request_are_taken(
    request_: tuple[dict, ...], placed: int, note: str
) -> None:
    """Four pods of a core, and four cores: three of them are held. The clock is the snapshot's."""
    snapshot = a_snapshot(a_node("n1"), *request_)
    snapshot.taken = TAKEN
    result = simulate(snapshot, [a_deployment("web", 4)])
    assert len(result.placed) == placed
    assert any(note in one for one in result.notes) is bool(note)
