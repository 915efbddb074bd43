"""The search for what costs most costs no more than it may itself."""

import copy
from random import Random
from typing import Any

import msgspec

from tests.poison.search import BYTES_MAX, lengthened


def test_offspring_of_a_large_object_stays_near_what_is_judged() -> None:
    """Long lists in a list: thousands of copies of them would be gigabytes."""
    ports = [{"name": f"port-{number}", "hostPort": number} for number in range(4_000)]
    parent = {"spec": {"containers": [{"name": "c", "ports": ports[:]} for _ in range(2)]}}
    each = len(msgspec.json.encode(parent)) // 2
    random = Random(0)
    grown = 0
    for _ in range(20):
        child: Any = lengthened(random, copy.deepcopy(parent))
        size = len(msgspec.json.encode(child))
        assert size <= BYTES_MAX + 1.2 * each
        grown += size > 2 * each + 1_000
    assert grown, "some do grow"
