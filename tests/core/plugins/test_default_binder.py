"""DefaultBinder: one effect, and what its answer means."""

import pytest

from asched.core.framework.effects import Bind
from asched.core.framework.status import SUCCESS, Code, Status
from asched.core.plugins.default_binder import DefaultBinder
from asched.core.state.facts import Answer, Bound, Done, Refused, Unknown
from tests.builders import a_cluster, a_pod, pending


def outcome(answer: Answer) -> Status:
    late = DefaultBinder().bind(pending(a_cluster(), a_pod("web", "team")), "n1")
    effect = next(late)
    assert isinstance(effect, Bind)
    assert (effect.pod.key, effect.pod.uid, effect.node) == ("team/web", "uid-web", "n1")
    with pytest.raises(StopIteration) as stopped:
        late.send(answer)
    status = stopped.value.value
    assert isinstance(status, Status)
    return status


def test_bound_is_success() -> None:
    assert outcome(Bound(1)) == SUCCESS


def test_a_refusal_is_an_error_in_the_api_servers_words() -> None:
    status = outcome(Refused(1, 409, 'pod "web" is already assigned'))

    assert status.code is Code.ERROR
    assert status.message == 'pod "web" is already assigned'


def test_what_could_not_be_settled_is_an_error() -> None:
    assert outcome(Unknown(1, "connection lost")).code is Code.ERROR


def test_no_other_answer_makes_sense() -> None:
    late = DefaultBinder().bind(pending(a_cluster(), a_pod()), "n1")
    next(late)

    with pytest.raises(TypeError, match="answered with Done"):
        late.send(Done(1))
