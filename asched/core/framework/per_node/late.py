"""Run late points of plugins and check what they yield.

A late point may yield effects only; anything else must not reach the machine. Effects for the
machine itself, or in the name of the scheduler, are not for plugins.
"""

from collections.abc import Callable, Generator
from math import isnan
from types import GeneratorType
from typing import Any, Final

from msgspec.structs import replace

from asched.core.cluster.facts import Answer
from asched.core.framework.effects import Bind, DeletePod, Effect, EmitEvent, PodRef, WaitFor
from asched.core.framework.status import MISTAKES, PluginError, raise_plugin_error
from asched.core.model.meta import ObjectReference

#: Unexpected values are shown up to this length.
SHOWN_MAX: Final = 60


def checked_effects(steps: Any, plugin: str, point: str) -> Generator[Effect, Answer, Any]:
    """Run the steps of a user's plugin, and pass its effects on. Raises PluginError for their
    exception, and for the first value that is not an effect, or not an effect for plugins.
    """
    if type(steps) is not GeneratorType and not isinstance(steps, Generator):
        raise nonsense(plugin, point, steps, "a generator of effects")
    answer: Any = None
    try:
        while True:
            effect = steps.send(answer)
            if not isinstance(effect, Effect):
                steps.close()
                raise nonsense(plugin, point, effect, "an effect")
            if not _is_sound(effect):
                steps.close()
                raise nonsense(plugin, point, effect, "an effect that makes sense")
            if not isinstance(effect, WaitFor):
                answer = yield effect
                continue
            ready = _Ready(effect.ready)
            answer = yield replace(effect, ready=ready)
            if ready.error is not None:
                steps.close()
                raise_plugin_error(plugin, point, ready.error)
    except StopIteration as done:
        return done.value
    except MISTAKES as raised:
        raise_plugin_error(plugin, point, raised)


class _Ready:
    """A plugin's condition for the end of its wait. It is called while other work runs: an
    exception ends the wait and is raised where the plugin continues.
    """

    __slots__ = ("_ask", "error")

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self.error: BaseException | None = None

    def __call__(self) -> bool:
        try:
            return bool(self._ask())
        except MISTAKES as error:  # of the user's code
            self.error = error
            return True


def _is_sound(effect: Effect) -> bool:
    """Check the fields that this process uses before sending: effects are not validated."""
    match effect:
        case WaitFor():
            seconds, on = effect.timeout_s, effect.on
            is_time = isinstance(seconds, int | float) and not isnan(seconds)
            return is_time and isinstance(on, tuple) and all(map(_is_topic, on))
        case Bind() | DeletePod():
            return isinstance(effect.pod, PodRef)
        case EmitEvent():
            return isinstance(effect.regarding, ObjectReference) and isinstance(
                effect.related, ObjectReference | None
            )
    return True


def _is_topic(topic: Any) -> bool:
    return isinstance(topic, tuple) and all(isinstance(word, str) for word in topic)


def nonsense(plugin: str, point: str, answer: object, wanted: str) -> PluginError:
    """The error for an invalid result of a plugin at its point."""
    shown = repr(answer)
    shown = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"
    text = f"answered {shown} ({type(answer).__name__}) where {wanted} is expected"
    return PluginError(f'running {point} plugin "{plugin}": {text}', plugin, point)
