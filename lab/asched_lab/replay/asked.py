"""Effects of a recording: in words, and with a key that identifies equal ones."""

from typing import Any, Final, NamedTuple

import msgspec

from asched_lab.replay.lines import read_part

#: Fields about the time of an effect.
_WHEN: Final = ("id", "turn")
_any: Final = msgspec.json.Decoder()


class RequestedEffect(NamedTuple):
    """One effect. `key` is equal for effects of one kind on the same object; `what` has all fields
    but those of time. `effect_id` is 0 for effects without an answer.
    """

    name: str
    effect_id: int
    subject: str  # namespace/name of the pod or object it is about
    uid: str
    key: tuple[str, ...]
    what: Any

    @property
    def node(self) -> str:
        """The node of a binding."""
        return str(self.what["node"]) if self.name == "Bind" else ""

    def words(self) -> str:
        """For people."""
        what = self.what
        match self.name:
            case "Bind":
                return f"bind {self.subject} to {self.node}"
            case "EmitEvent":
                return f"event on {self.subject}: {what.get('reason')}: {what.get('note')}"
            case "PatchPodStatus" | "MarkVictim":
                return f"write status of {self.subject}: {_status(what)}"
            case "DeletePod":
                return f"evict {self.subject}"
            case "AskExtender":
                return f"ask {what.get('extender')} to {what.get('verb')}"
            case "CallPlugin":
                return f"call plugin {what.get('plugin')}"
        return f"{self.name} {self.subject}".rstrip()


def asked_for(encoded: bytes) -> list[RequestedEffect]:
    """The effects of a turn's line. Raises UnreadableLineError."""
    return read_part(lambda effects: [_asked(effect) for effect in _any.decode(effects)], encoded)


def _asked(effect: list[Any]) -> RequestedEffect:
    name = effect[0]
    if name == "Bind":
        _, effect_id, _, pod, node = effect
        fields: dict[str, Any] = {"pod": pod, "node": node}
    else:
        fields = dict(effect[1])
        effect_id = fields.get("id", 0)
        for field in _WHEN:
            fields.pop(field, None)
    about = fields.get("pod") or fields.get("regarding") or fields
    subject, uid = _name_of(about, fields), about.get("uid", "")
    key = (name, uid or subject, str(fields.get("reason") or fields.get("verb") or ""))
    return RequestedEffect(name, effect_id, subject, uid, key, fields)


def _name_of(about: dict[str, Any], fields: dict[str, Any]) -> str:
    name, namespace = about.get("name", ""), about.get("namespace", "")
    body = fields.get("body")
    if not name and isinstance(body, dict):
        pod = body.get("Pod")
        if isinstance(pod, list):  # a reference to the whole pod
            return str(pod[-1])
        metadata = body.get("metadata") or {}
        name = metadata.get("name") or metadata.get("generateName") or ""
    if not name:
        return str(fields.get("plugin", ""))
    return f"{namespace}/{name}" if namespace else str(name)


def _status(what: dict[str, Any]) -> str:
    condition, node = what.get("condition"), what.get("nominated_node_name")
    parts = []
    if condition:
        parts.append(f"{condition.get('reason')}: {condition.get('message')}")
    if node is not None:
        parts.append(f"nominated to {node}" if node else "no longer nominated")
    return "; ".join(parts) or "nothing"
