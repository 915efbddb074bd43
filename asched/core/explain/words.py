"""Amounts and taints as the API and kubectl write them."""

from typing import Final

from asched.core.model.requests import CPU
from asched.core.model.taint import Taint

_UNITS: Final = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def written(resource: str, amount: int) -> str:
    """An exact amount: milli-CPU, else whole units."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for suffix, size in _UNITS:
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount)


def spelt(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}{taint.value and '=' + taint.value}:{taint.effect}"
