"""Volumes and capacities: an amount that is none makes the object malformed."""

from typing import Any

import pytest

from asched.core.model.decode import MalformedObjectError, decode
from asched.core.model.volume import CsiStorageCapacity, PersistentVolume


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (PersistentVolume, {"spec": {"capacity": {"storage": "big"}}}),
        (CsiStorageCapacity, {"capacity": "big"}),
        (CsiStorageCapacity, {"maximumVolumeSize": "big"}),
    ],
)
def test_an_amount_that_is_none_is_found_while_decoding(record: Any, fields: Any) -> None:
    with pytest.raises(MalformedObjectError, match="'big' is not a number"):
        decode(record, {"metadata": {"name": "v"}, **fields})
