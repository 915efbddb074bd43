"""Exceptions that change the course of a watch: raised where found, handled by the reflector."""


class Relist(Exception):  # noqa: N818 - control flow, not an error
    """List again; `version` is the oldest version accepted, "" for the newest."""

    def __init__(self, version: str, why: str) -> None:
        super().__init__(why)
        self.version = version


class NoStreaming(Exception):  # noqa: N818 - control flow, not an error
    """The server does not support streaming lists, or not at the moment."""
