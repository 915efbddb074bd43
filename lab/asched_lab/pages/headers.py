"""The docstring that introduces a plugin: `NAME: what it does.`, then lines such as `Rejects`."""

import sys
from importlib import import_module
from typing import Any


def header_of(cls: type[Any]) -> str:
    """The docstring of the plugin's module, or of its package where only that names the plugin."""
    if cls.__module__ == "abc":  # made by the catalogue from a user's class
        cls = cls.__mro__[1]
    module = sys.modules[cls.__module__]
    for text in (module.__doc__, import_module(module.__package__ or "").__doc__):
        if text and cls.name in text.partition(": ")[0].split(", "):
            return text
    raise LookupError(
        f"{cls.name} has no introduction: begin the docstring of {module.__file__} with"
        f" `{cls.name}: what it does.`"
    )


def purpose(cls: type[Any]) -> str:
    """The first sentence of the header, without the name."""
    sentence = header_of(cls).partition(": ")[2].partition("\n\n")[0]
    return " ".join(f"{sentence[:1].upper()}{sentence[1:]}".split()).rstrip(".")
