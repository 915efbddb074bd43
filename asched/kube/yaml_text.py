"""YAML 1.1 by PyYAML, with the plain words that Kubernetes' programs read differently.

Rules   `y` and `1e2` are no texts, dates and 12:30 are (`core.config.scalars`); a text that this or
        any other reader of YAML 1.1 takes for something else is written in double quotes; keys are
        in alphabetical order, lists are not indented, several lines are a block.
"""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from asched.core.config.scalars import value_of

MERGE_TAG: Final = "tag:yaml.org,2002:merge"
TEXT_TAG: Final = "tag:yaml.org,2002:str"
#: Type of a plain word that is no text -> its tag.
WORD_TAGS: Final = {
    type(value): f"tag:yaml.org,2002:{name}"
    for value, name in ((None, "null"), (True, "bool"), (0, "int"), (0.5, "float"))
}
#: No line is folded.
_WIDTH: Final = 2**31 - 1


def _tag_of(word: str) -> str:
    return MERGE_TAG if word == "<<" else WORD_TAGS.get(type(value_of(word)), TEXT_TAG)


class Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """Gives each plain word the tag of its value. libyaml accepts tabs between words as Go does."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return _tag_of(value)
        return super().resolve(kind, value, implicit)


class _Dumper(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> Any:
        found = super().resolve(kind, value, implicit)
        is_text = kind is yaml.ScalarNode and implicit[0] and found == TEXT_TAG
        return _tag_of(value) if is_text else found

    def ignore_aliases(self, _: Any) -> bool:
        return True

    def text(self, value: str) -> Any:
        is_block = "\n" in value and value.strip() and value.replace("\n", "").isprintable()
        is_plain = self.resolve(yaml.ScalarNode, value, (True, False)) == TEXT_TAG
        style = "|" if is_block else None if is_plain and value.isprintable() else '"'
        return self.represent_scalar(TEXT_TAG, value, style)


_Dumper.add_representer(str, _Dumper.text)


def to_yaml(document: Mapping[str, Any]) -> str:
    return str(yaml.dump(document, Dumper=_Dumper, width=_WIDTH, allow_unicode=True))
