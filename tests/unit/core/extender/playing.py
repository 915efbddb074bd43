"""A Play with extenders: questions are answered by hand, or by a function."""

from typing import Any

from asched.core.cluster.facts import Bound, Refused, Replied
from asched.core.framework.effects import AskExtender, Effect
from tests.builders import NodeBuilder
from tests.playbook import Play

#: (verb, body) -> JSON of the answer, or an exception's message to refuse


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

    def bind_all(self) -> None:
        from asched.core.framework.effects import Bind

        self.turn(*(Bound(bind.id) for bind in self.of(Bind)))
