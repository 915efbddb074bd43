"""The entry point of the command `asched`."""

from asched.cli.commands import main

__all__ = ["main"]
