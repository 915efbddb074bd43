"""However many selectors a tenant writes, what devices remember of them has a bound in bytes."""

from asched.core.dra.selector_answers import SelectorAnswers


def test_an_account_begins_empty() -> None:
    assert SelectorAnswers().bytes == 0
