"""Taints as kubectl writes them."""

from asched.core.model.taint import Taint


def spelt(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}{taint.value and '=' + taint.value}:{taint.effect}"
