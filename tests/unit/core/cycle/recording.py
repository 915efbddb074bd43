"""An observer that writes down what it hears."""

from collections.abc import Callable
from typing import Any

from asched.core.cycle.observer import Observer


class Recorder(Observer):
    """`heard`: (method, arguments) of each call, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, tuple[Any, ...]]] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or name in ("of", "points"):
            return found
        return self._noting(name)

    def _noting(self, name: str) -> Callable[..., None]:
        return lambda *given, **named: self.heard.append((name, (*given, *named.values())))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of all calls of one method."""
        return [given for called, given in self.heard if called == name]

    def points(self, *names: str) -> list[tuple[str, str]]:
        """(extension point, status) in the order in which they ran; of these alone if given. Those
        at which nobody had anything to do come at the end of their turn, as often as it was so.
        """
        ran = ("point_ran", "points_passed")
        heard = [(name, given) for name, given in self.heard if name in ran]
        told = [
            (given[0], given[2])
            for name, given in heard
            for _ in range(given[3] if name == "points_passed" else 1)
        ]
        return [one for one in told if not names or one[0] in names]
