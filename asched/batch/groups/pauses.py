"""Groups for which work is not repeated for a time."""

from typing import Final

PAUSED_MAX: Final = 4_096


class GroupPauses:
    """By key of a group: uid, end, text. Of more than PAUSED_MAX the oldest is dropped."""

    def __init__(self, *_: object) -> None:
        self._until: dict[str, tuple[str, float, str]] = {}

    def text(self, key: str, uid: str, now_s: float) -> str | None:
        """The text of a pause; None without one."""
        paused, until_s, text = self._until.get(key, ("", 0.0, ""))
        return text if paused == uid and now_s < until_s else None

    def note(self, key: str, uid: str, until_s: float, text: str = "") -> None:
        self._until.pop(key, None)
        self._until[key] = uid, until_s, text
        if len(self._until) > PAUSED_MAX:
            self._until.pop(next(iter(self._until)))
