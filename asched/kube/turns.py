"""Turns in the story of a watch stream: raised where they happen, taken where the story is told."""


class Relist(Exception):  # noqa: N818 - a turn of the history, not an error
    """Go back to the list; `version` is the least it must show, "" the newest."""

    def __init__(self, version: str, why: str) -> None:
        super().__init__(why)
        self.version = version


class NoStreaming(Exception):  # noqa: N818 - a turn of the history, not an error
    """The server does not stream lists, or not now."""
