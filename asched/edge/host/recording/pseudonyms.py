"""Other names for everything that a recording names, so that decisions stay the same.

Objects are walked as JSON. What is not listed here is replaced: a field that a later version adds
says nothing until somebody decides that it may. Equal strings get equal pseudonyms wherever they
stand (a zone in a label, a volume's affinity and a selector; a node's name in its own label), and
pseudonyms sort as what they stand for, since names decide where all else is equal.

Kept     enumerations, amounts, times, resources, drivers, schedulers, what CEL expressions and
         device attributes say; label and taint keys under kubernetes.io and k8s.io; numbers of
         labels that somebody compares as numbers; WORDS
Composed names that are made of others: claims of ephemeral volumes, lists of zones

Bounds   memory: each string once with its pseudonym
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

#: Fields that are kept with all that is in them: they name nothing that somebody chose.
KEPT: Final = frozenset(
    (
        *("accessModes", "action", "allocatable", "allocatedResources", "allocationMode"),
        *("allocationTimestamp", "apiGroup", "apiVersion", "attributes", "capacity"),
        *("consumedCapacity", "consumesCounters", "counters", "cpu", "creationTimestamp"),
        *("declaredFeatures", "default", "deletionTimestamp", "disruptionMode"),
        *("distinctAttribute", "effect", "expression", "extendedResourceName", "kind"),
        *("lastProbeTime", "lastTransitionTime", "limits", "matchAttribute", "max"),
        *("maximumVolumeSize", "min", "minResources", "nodeAffinityPolicy", "nodeTaintsPolicy"),
        *("operator", "overhead", "phase", "preemptionPolicy", "protocol", "reason"),
        *("resource", "resourceVersion", "restartPolicy", "scheduleStartTime", "sharedCounters"),
        *("source", "startTime", "step", "type", "validValues", "volumeBindingMode", "volumeMode"),
        *("whenUnsatisfiable",),
    )
)
#: The same, and whatever they say is kept wherever else it stands, be it an object's name.
KEPT_EVERYWHERE: Final = frozenset(
    ("attacher", "device", "driver", "provisioner", "request", "requests", "schedulerName")
)
#: Lists of what has a name that the fields above refer to.
KEPT_NAMES: Final = frozenset(("devices", "drivers", "firstAvailable", "requests"))
#: Content for others than schedulers.
EMPTIED: Final = frozenset(("data", "networkData", "parameters"))
#: Strings, or lists of them, that are keys of labels or taints.
LABEL_KEYS: Final = frozenset(("key", "matchLabelKeys", "mismatchLabelKeys", "topologyKey"))
#: Objects whose keys are keys of labels, unless they are structures of the same name.
LABELED: Final = frozenset(("annotations", "labels", "matchLabels", "nodeSelector", "selector"))
#: Objects whose keys are names.
BY_NAME: Final = frozenset(("disruptedPods",))
IMAGES: Final = frozenset(("image", "names", "reference"))
NUMERIC: Final = ("Gt", "Lt")
#: Values that mean the same in every cluster.
WORDS: Final = frozenset(
    (
        *("", "true", "false", "yes", "no", "True", "False", "Unknown", "linux", "windows"),
        *("amd64", "arm64", "0.0.0.0", "::", "127.0.0.1", "default", "kube-system"),  # noqa: S104
        *("metadata.name", "metadata.namespace"),
    )
)
#: By which a scheduler knows that a pod was bound before it asked.
ASSIGNED: Final = re.compile(r'already assigned to node "([^"]*)"')
#: Several zones in one value of a volume's label are written so.
ZONES_JOINT: Final = "__"


def is_well_known(key: str) -> bool:
    """Whether a key of a label or taint is Kubernetes' own, or of a project of its."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and domain.endswith(("kubernetes.io", "k8s.io"))


def is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


class Pseudonyms:
    """Collects names first (`note` everything), then gives others (`settle`, `walked`)."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._namespaces: set[str] = set()
        self._kept: set[str] = set(WORDS)
        self._numeric_keys: set[str] = set()
        self._composed: dict[str, tuple[str, ...]] = {}
        self._new: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._new)

    # --- collecting ------------------------------------------------------------------------------

    def note(self, value: Any) -> None:
        """An object, or part of one."""
        self._walk(value, self._note_name)
        self._note_rules(value)

    def note_text(self, text: str) -> None:
        """Words of somebody else."""
        self._names.add(text)

    def _note_name(self, text: str) -> str:
        self._names.add(text)
        return text

    def _note_rules(self, value: Any) -> None:
        """What other values of these fields decide about names."""
        if isinstance(value, list):
            for one in value:
                self._note_rules(one)
        elif isinstance(value, dict):
            if value.get("operator") in NUMERIC and isinstance(value.get("key"), str):
                self._numeric_keys.add(value["key"])
            for field, one in value.items():
                if field in KEPT_EVERYWHERE:
                    self._kept.update(_strings(one))
                elif field in ("namespace", "namespaces"):
                    self._namespaces.update(_strings(one))
                else:
                    self._note_rules(one)
            self._note_composed(value)

    def _note_composed(self, value: dict[str, Any]) -> None:
        """Claims of ephemeral volumes are called POD-VOLUME."""
        spec, metadata = value.get("spec"), value.get("metadata")
        if not isinstance(spec, dict) or not isinstance(metadata, dict):
            return
        for volume in spec.get("volumes") or ():
            if "ephemeral" in volume:
                parts = metadata.get("name", ""), "-", volume.get("name", "")
                self._composed["".join(parts)] = parts

    # --- giving ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything was noted: names in their order get numbers in theirs.

        Namespaces are mostly compared with what follows them in `namespace/name`.
        """
        names = self._names - self._kept - self._composed.keys()
        order = sorted(names, key=lambda name: f"{name}/" if name in self._namespaces else name)
        digits, letter = len(str(len(order))), "x"
        taken = {name for name in names if is_number(name[1:])}
        while any(name.startswith(letter) for name in taken):
            letter = chr(ord(letter) + 1)
        self._new = {name: f"{letter}{number:0{digits}}" for number, name in enumerate(order)}

    def learn(self, then: Any, now: Any) -> None:
        """What a machine wrote when it was recorded, and what it writes under pseudonyms: words of
        its own, which come back with the objects.
        """
        if isinstance(then, str) and isinstance(now, str):
            if then not in self._kept:
                self._new[then] = now
        elif isinstance(then, dict) and isinstance(now, dict):
            for field in then.keys() & now.keys():
                self.learn(then[field], now[field])
        elif isinstance(then, list) and isinstance(now, list):
            for one, other in zip(then, now, strict=False):
                self.learn(one, other)

    def walked(self, value: Any) -> Any:
        """An object, or part of one, under pseudonyms."""
        return self._walk(value, self.of)

    def replied(self, value: Any) -> Any:
        """What an extender or a coroutine answered: keys may be names, too."""
        if isinstance(value, dict):
            return {self._new.get(key, key): self.replied(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.replied(one) for one in value]
        return self.of(value) if isinstance(value, str) else value

    def message(self, text: str) -> str:
        """Words of the API server, of which a scheduler reads one thing."""
        found = ASSIGNED.search(text)
        return f'already assigned to node "{self.of(found[1])}"' if found else self.of(text)

    def note_reply(self, value: Any) -> None:
        self._names.update(_strings(value))

    def of(self, name: str) -> str:
        """The pseudonym of a name; names that nobody noted have none and are told as such."""
        if name in self._kept:
            return name
        found = self._new.get(name)
        if found is not None:
            return found
        parts = self._composed.get(name)
        if parts is not None:
            return "".join(part if part == "-" else self.of(part) for part in parts)
        return "unknown"

    # --- rules -----------------------------------------------------------------------------------

    def _walk(self, value: Any, name: Callable[[str], str], *, keeps_names: bool = False) -> Any:
        if isinstance(value, dict):
            return {
                field: one
                if keeps_names and field == "name"
                else self._field(field, one, name, value, keeps_names=keeps_names)
                for field, one in value.items()
            }
        if isinstance(value, list):
            return [self._walk(one, name, keeps_names=keeps_names) for one in value]
        return name(value) if isinstance(value, str) else value

    def _field(
        self,
        field: str,
        value: Any,
        name: Callable[[str], str],
        within: dict[str, Any],
        *,
        keeps_names: bool,
    ) -> Any:
        is_text = isinstance(value, str)
        if field in KEPT or (field == "status" and is_text):
            return value
        if field in KEPT_EVERYWHERE and _is_plain(value):
            return value
        if field in EMPTIED:
            return None
        if field in LABEL_KEYS:
            return _each(value, lambda key: self._key(key, name))
        if field in LABELED and _is_flat(value):
            return {self._key(key, name): self._label(key, one, name) for key, one in value.items()}
        if field in BY_NAME and isinstance(value, dict):
            return {name(key): one for key, one in value.items()}
        if field in IMAGES and _is_plain(value):
            return _each(value, lambda image: _image(image, name))
        if field in ("value", "values") and _is_plain(value):
            return _each(value, lambda one: self._label(str(within.get("key", "")), one, name))
        return self._walk(value, name, keeps_names=keeps_names or field in KEPT_NAMES)

    def _key(self, key: str, name: Callable[[str], str]) -> str:
        return key if is_well_known(key) else name(key)

    def _label(self, key: str, value: str, name: Callable[[str], str]) -> str:
        if key in self._numeric_keys and is_number(value):
            return value
        if ZONES_JOINT in value and is_well_known(key):
            return ZONES_JOINT.join(name(zone) for zone in value.split(ZONES_JOINT))
        return name(value)


def _image(image: str, name: Callable[[str], str]) -> str:
    """A name and a tag: whoever looks for an image without one looks for `latest`."""
    if not image:
        return image
    has_tag = image.rfind(":") > image.rfind("/")
    return name(image if has_tag else f"{image}:latest") + ":1"


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [change(one) if isinstance(one, str) else one for one in value]
    return change(value) if isinstance(value, str) else value


def _is_plain(value: Any) -> bool:
    """A string, or strings."""
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    )


def _is_flat(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
