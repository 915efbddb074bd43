"""Late points of plugins, driven with an eye on what they yield.

A late point may yield effects and nothing else; whatever it yields by mistake must not reach the
machine. Effects that never leave the machine or speak for the scheduler itself are not for plugins.
"""

from collections.abc import Generator
from typing import Any, Final

from asched.core.framework.effects import Effect
from asched.core.framework.status import PluginError
from asched.core.state.facts import Answer

#: So much of a strange answer is shown (characters).
SHOWN_MAX: Final = 60


def driven(steps: Any, plugin: str, point: str) -> Generator[Effect, Answer, Any]:
    """The same steps; raises PluginError at the first thing that is no effect."""
    if not isinstance(steps, Generator):
        raise nonsense(plugin, point, steps, "a generator of effects")
    answer: Any = None
    try:
        while True:
            effect = steps.send(answer)
            if not isinstance(effect, Effect):
                steps.close()
                raise nonsense(plugin, point, effect, "an effect")
            answer = yield effect
    except StopIteration as done:
        return done.value


def nonsense(plugin: str, point: str, answer: object, wanted: str) -> PluginError:
    """What to raise when a plugin answers what makes no sense at its point."""
    shown = repr(answer)
    shown = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"
    text = f"answered {shown} ({type(answer).__name__}) where {wanted} is expected"
    return PluginError(f'running {point} plugin "{plugin}": {text}', plugin, point)
