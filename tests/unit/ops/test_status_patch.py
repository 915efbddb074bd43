"""One write of a status controller: what is sent, and whether it has to be tried again."""

import logging

import pytest

from asched.core.model.kinds import COSCHEDULING_GROUP
from asched.kube.errors import ConnectionLost, NotFound
from asched.ops.status_patch import StatusController


@pytest.mark.parametrize(
    ("error", "is_over", "said"),
    [
        (None, True, []),
        (NotFound(404, "m"), True, [(logging.DEBUG, "PodGroup a/g is gone")]),
        (
            ConnectionLost("torn"),
            False,
            [(logging.WARNING, "The status of PodGroup a/g cannot be written: torn")],
        ),
    ],
)
async def test_what_failed_is_told_and_tried_again_unless_its_object_is_gone(
    caplog, error, is_over, said
):
    async def write():
        if error is not None:
            raise error

    told = []
    caplog.set_level(logging.DEBUG, "asched.host")
    controller = StatusController(None, COSCHEDULING_GROUP, dict, bool, told.append)
    assert await controller.is_done(write(), "a/g") is is_over
    assert told == ([] if is_over else ["error"])
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == said
