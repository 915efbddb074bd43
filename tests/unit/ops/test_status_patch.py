"""One write of a status controller: what is sent, and whether it has to be tried again."""

import logging

import pytest

from asched.kube.errors import ConnectionLost, NotFound
from asched.kube.session import ConnectionOptions, connect
from asched.ops.status_patch import is_done
from tests.unit.kube.scripted import scripted


@pytest.fixture
async def server():
    async with scripted(None) as made:
        yield made


@pytest.fixture
async def session(server):
    made = await connect(ConnectionOptions(master=server.url), handshake=False)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("error", "is_over", "said"),
    [
        (None, True, []),
        (NotFound(404, "m"), True, [(logging.DEBUG, "the group is gone")]),
        (
            ConnectionLost("torn"),
            False,
            [(logging.WARNING, "The status of the group cannot be written: torn")],
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
    assert await is_done(write(), "the group", told.append) is is_over
    assert told == ([] if is_over else ["error"])
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == said
