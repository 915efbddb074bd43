"""registrations.json: what each plugin of the default profile listens to.

`load` turns the recording into registrations, one per action: a recorded hint knows its action.
`compare` tells where the registrations of real plugins differ from it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from asched.core.cluster.changes import ACTION_TEXT, Action, Trigger
from asched.core.framework.registrations import HintFunction, Registration

BY_TEXT = {text: action for action, text in ACTION_TEXT.items()}

MakeHint = Callable[[str, Trigger], HintFunction]
Wanted = tuple[str, Action, bool]  # resource, actions, whether there is a hint function


def load(path: Path, make_hint: MakeHint) -> dict[str, list[Registration]]:
    """Plugin -> registrations with hints of the caller's making."""
    registrations: dict[str, list[Registration]] = {}
    for plugin, resource, texts, _ in _entries(path):
        for text in texts:
            trigger = Trigger(resource, BY_TEXT[text])
            registration = Registration(trigger, make_hint(plugin, trigger))
            registrations.setdefault(plugin, []).append(registration)
    return registrations


def compare(path: Path, registrations: Mapping[str, Sequence[Registration]]) -> list[str]:
    """One line per difference; `registrations` include what `profile.with_implicit` adds."""
    wanted: dict[str, set[Wanted]] = {}
    for plugin, resource, texts, has_hint in _entries(path):
        wanted.setdefault(plugin, set()).update((resource, BY_TEXT[t], has_hint) for t in texts)
    differences = []
    for plugin in sorted(wanted.keys() | registrations.keys()):
        ours = {
            (trigger.resource, action, hint is not None)
            for trigger, hint, _ in registrations.get(plugin, ())
            for action in split(trigger.action)
        }
        recorded = wanted.get(plugin, set())
        for sign, entries in (("missing", recorded - ours), ("too many", ours - recorded)):
            for resource, action, has_hint in sorted(entries):
                hint = "with" if has_hint else "without"
                differences.append(
                    f"{plugin}: {sign}: {resource}/{ACTION_TEXT[action]} {hint} hint"
                )
    return differences


def _entries(path: Path) -> Iterator[tuple[str, str, list[str], bool]]:
    for entry in json.loads(path.read_text())["plugins"]:
        for event in entry["events"]:
            yield entry["plugin"], event["resource"], event["actions"], event["hint"]


def split(action: Action) -> list[Action]:
    """Single actions, except that all updates together stay one, as the recording writes them."""
    single = [Action(bit) for bit in Action(action & ~Action.UPDATE)]
    updates = action & Action.UPDATE
    return single + ([Action.UPDATE] if updates == Action.UPDATE else list(updates))
