"""The store against a plain copy of every state it ever had."""

import random

import pytest

from asched_lab.apiserver.context import Store

KIND = ("", "things")


def thing(name: str, value: int) -> dict:
    return {"metadata": {"name": name}, "value": value}


@pytest.mark.parametrize("seed", range(5))
def test_any_past_version_can_be_listed(seed: int) -> None:
    rng = random.Random(seed)
    store = Store()
    state: dict[str, int] = {}
    past = {store.revision: dict(state)}
    for step in range(200):
        name = f"t{rng.randrange(8)}"
        if name in state and rng.random() < 0.4:
            record = store.get(KIND, ("", name))
            assert record is not None
            store.remove(KIND, ("", name), record.obj)
            del state[name]
        else:
            store.put(KIND, ("", name), thing(name, step))
            state[name] = step
        past[store.revision] = dict(state)

    for revision, expected in past.items():
        records = store.records_at(store.table(KIND), "", revision)
        assert records is not None
        assert {r.key[1]: r.obj["value"] for r in records} == expected
        assert [r.key for r in records] == sorted(r.key for r in records)


def test_a_stored_version_never_changes() -> None:
    store = Store()
    first = store.put(KIND, ("", "a"), thing("a", 1))
    body = first.body
    store.put(KIND, ("", "a"), {**first.obj, "value": 2})
    assert first.obj["value"] == 1
    assert first.body == body


def test_what_history_dropped_cannot_be_read() -> None:
    store = Store(history_max=3)
    start = store.revision
    for value in range(5):
        store.put(KIND, ("", "a"), thing("a", value))
    table = store.table(KIND)
    assert store.records_at(table, "", start) is None
    assert table.floor == start + 2
    assert store.records_at(table, "", table.floor) is not None
