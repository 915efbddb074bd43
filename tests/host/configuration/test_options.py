"""Flags of the log: which of two counts depends on the format."""

import pytest

from asched.host.configuration.options import LogOptions


@pytest.mark.parametrize(
    ("chosen", "json", "text", "splits"),
    [
        ("json", True, False, True),
        ("json", False, True, False),
        ("text", True, False, False),
        ("text", False, True, True),
    ],
)
def test_streams_are_split_by_the_flag_of_the_format(
    chosen: str, json: bool, text: bool, splits: bool
) -> None:
    """`--log-json-split-stream` and `--log-text-split-stream` of component-base/logs."""
    options = LogOptions(chosen, 0, (), log_json_split_stream=json, log_text_split_stream=text)
    assert options.splits is splits
