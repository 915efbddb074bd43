"""Volumes as claims look for them, kept up to date by the log of changes."""

from asched.core.model.kinds import PERSISTENT_VOLUME
from asched.core.plugins.volumes.candidates import needs_of
from asched.core.plugins.volumes.store import SHELVES_MAX, VolumeStore, is_made_for
from asched.core.state.cluster import Cluster
from tests.volume_builders import a_claim, a_cluster, a_volume, lose, see

CLAIM = a_claim("c", cls="s")


def free(store: VolumeStore) -> list[str]:
    candidates = store.candidates(needs_of(CLAIM))
    return sorted(name for name in ("a", "b", "c") if candidates.rank_of(name) >= 0)


def test_a_shelf_follows_the_volumes() -> None:
    cluster = a_cluster(a_volume("a", cls="s"), a_volume("b", cls="t"))
    store = cluster.singleton(VolumeStore)
    assert free(store) == ["a"]

    see(cluster, a_volume("c", cls="s"), a_volume("b", cls="s"))
    assert free(store) == ["a", "b", "c"]
    lose(cluster, a_volume("a"))
    assert free(store) == ["b", "c"]
    see(cluster, a_volume("c", cls="s", phase="Bound"))
    assert free(store) == ["b"]


def test_assumed_volumes_are_taken_until_they_are_given_back() -> None:
    cluster = a_cluster(a_volume("a", cls="s"))
    store = VolumeStore(cluster)
    assert free(store) == ["a"]

    cluster.assume_object(PERSISTENT_VOLUME, a_volume("a", cls="s", claim=("x", "")))
    assert free(store) == []
    cluster.restore_object(PERSISTENT_VOLUME, "a")
    assert free(store) == ["a"]


def test_a_store_that_missed_the_log_starts_afresh() -> None:
    cluster = Cluster()
    store = VolumeStore(cluster)
    assert free(store) == []
    for i in range(70_000):
        cluster.object_log.add("others", str(i))
    see(cluster, a_volume("a", cls="s"))

    assert free(store) == ["a"]


def test_what_went_while_the_log_was_missed_is_gone_from_every_list() -> None:
    gone, named = a_volume("a", cls="s"), a_volume("b", cls="s", claim=("c", ""))
    cluster = a_cluster(gone, named, a_volume("c", cls="s"))
    store = VolumeStore(cluster)
    assert free(store) == ["a", "c"]
    assert [v.metadata.name for v in store.made_for(CLAIM)] == ["b"]

    lose(cluster, gone, named)
    cluster.object_log.forget()

    assert free(store) == ["c"]
    assert not list(store.made_for(CLAIM))
    assert store.candidates(needs_of(a_claim("d", cls="s", size="1Mi"))).count == 1


def test_volumes_that_name_a_claim_are_found_by_it() -> None:
    cluster = a_cluster(
        a_volume("a", claim=("c", "uid-c")),
        a_volume("b", claim=("c", "other")),
        a_volume("c", claim=("c", "")),
        a_volume("d", claim=("e", "")),
    )
    store = VolumeStore(cluster)

    assert sorted(v.metadata.name for v in store.made_for(CLAIM)) == ["a", "c"]
    see(cluster, a_volume("a"))
    assert [v.metadata.name for v in store.made_for(CLAIM)] == ["c"]


def test_a_volume_names_a_claim_by_namespace_name_and_uid() -> None:
    volume = a_volume("a", claim=("c", ""))

    assert is_made_for(volume, CLAIM)
    assert not is_made_for(volume, a_claim("c", namespace="other"))
    assert not is_made_for(a_volume("a", claim=("d", "")), CLAIM)
    assert not is_made_for(a_volume("a", claim=("c", "other")), CLAIM)
    assert not is_made_for(a_volume("a"), CLAIM)


def test_the_shelf_that_was_unused_for_longest_goes() -> None:
    store = VolumeStore(a_cluster())
    needs = [needs_of(a_claim("c", size=f"{i + 1}Gi")) for i in range(SHELVES_MAX + 1)]
    shelves = [store.candidates(each) for each in needs[:SHELVES_MAX]]
    assert store.candidates(needs[0]) is shelves[0]
    store.candidates(needs[SHELVES_MAX])

    assert store.candidates(needs[0]) is shelves[0]
    assert store.candidates(needs[2]) is shelves[2]
    assert store.candidates(needs[1]) is not shelves[1]
