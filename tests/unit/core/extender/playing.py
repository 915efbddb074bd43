"""A Play with extenders: questions are answered by hand, or by a function."""

from collections.abc import Callable
from typing import Any

from asched.core.cluster.changes import Answer, Bound, Refused, Replied
from asched.core.framework.effects import AskExtender, Effect
from asched.core.model.pod import Pod
from tests.builders import NodeBuilder, PodBuilder
from tests.plays.playbook import Play

#: (verb, body) -> JSON of the answer, or an exception's message to refuse
Script = Callable[[str, dict[str, Any]], Any]


def an_extender(**fields: Any) -> dict[str, Any]:
    return {"urlPrefix": "http://x", "nodeCacheCapable": True, **fields}


class ExtendedPlay(Play):
    """`asked` are all questions so far."""

    def __init__(self, *nodes: NodeBuilder, extenders: list[dict[str, Any]], **config: Any) -> None:
        self.asked: list[AskExtender] = []
        super().__init__(*nodes, extenders=extenders, **config)

    def question(self) -> AskExtender:
        """The only question of the last turn."""
        return self.the(AskExtender)

    def reply(self, value: Any) -> list[Effect]:
        return self.answer(Replied(self.question().id, value))

    def refuse(self, message: str, code: int = 500) -> list[Effect]:
        return self.answer(Refused(self.question().id, code, message))

    def see_all(self, pod: PodBuilder | Pod, script: Script) -> None:
        """See a pod and answer every question that comes of it, bindings too."""
        self.see(pod)
        for _ in range(20):
            questions = self.of(AskExtender)
            if not questions:
                return
            self.asked += questions
            answers: list[Answer] = [Replied(q.id, script(q.verb, dict(q.body))) for q in questions]
            self.turn(*answers)
        raise AssertionError("questions do not end")

    def bind_all(self) -> None:
        from asched.core.framework.effects import Bind

        self.turn(*(Bound(bind.id) for bind in self.of(Bind)))
