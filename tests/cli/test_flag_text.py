"""Flags as Go's flag libraries print them; expected words by String() of each kind upstream."""

import pytest

from asched.cli.flag_text import flag_texts
from asched.cli.flags import parse


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("leader-elect-lease-duration", ["1m30s"], "1m30s"),
        ("log-flush-frequency", ["1500ms"], "1.5s"),
        ("leader-elect", ["F"], "false"),
        ("kube-api-qps", ["1.5"], "1.5"),
        ("feature-gates", ["GenericWorkload=true"], ":GenericWorkload=true"),
        (
            "feature-gates",
            ["kube:OpportunisticBatching=false", "kube: GenericWorkload=true,"],
            "kube:OpportunisticBatching=false,kube:GenericWorkload=true",
        ),
        ("vmodule", ["a=1, b*=2"], "a=1,b*=2"),
        ("allow-metric-labels", ["b,l=x,y"], '["b,l=x,y"]'),
        ("allow-metric-labels", ['"b,l=x","a,l=y"'], '["a,l=y","b,l=x"]'),
        ("requestheader-allowed-names", ["b", "a"], "[b,a]"),
        ("requestheader-allowed-names", ['"a,b","say ""c""", d'], '["a,b","say ""c"""," d"]'),
        ("tls-sni-cert-key", ["a.crt,a.key"], "[a.crt,a.key]"),
        (
            "tls-sni-cert-key",
            ["a.crt,a.key:one,two", "b.crt,b.key", "c.crt,c.key:three"],
            "[a.crt,a.key:one,two;b.crt,b.key;c.crt,c.key:three]",
        ),
    ],
)
def test_a_value_is_shown_as_go_shows_it(name: str, given: list[str], shown: str) -> None:
    options = parse([f"--{name}={text}" for text in given])
    assert flag_texts(options.given)[name] == shown
