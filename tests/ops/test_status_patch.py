"""One write of a status controller: what is sent, and whether it has to be tried again."""

import logging

import pytest

from asched.core.model.kinds import POD_GROUP
from asched.core.model.meta import ObjectMeta
from asched.kube.errors import Conflict, ConnectionLost, NotFound
from asched.kube.session import ConnectionOptions, connect
from asched.ops.status_patch import is_done, patch_status
from tests.kube.scripted import reply, scripted, status

ABOUT = ObjectMeta(name="a/b", namespace="t", uid="u")


@pytest.fixture
async def server():
    async with scripted(None) as made:
        yield made


@pytest.fixture
async def session(server):
    made = await connect(ConnectionOptions(master=server.url), handshake=False)
    yield made
    await made.close()


async def test_fields_are_merged_into_the_status_of_that_very_object(server, session):
    async def written(_seen, _wire):
        return reply(200, {"metadata": {"resourceVersion": "8"}})

    server.handler = written
    assert await patch_status(session, POD_GROUP, ABOUT, {"ready": 3}) == "8"
    (seen,) = server.seen
    assert (seen.method, seen.target) == ("PATCH", POD_GROUP.object_path("t", "a%2Fb") + "/status")
    assert seen.headers["content-type"] == "application/merge-patch+json"
    assert seen.json == {"metadata": {"uid": "u"}, "status": {"ready": 3}}


@pytest.mark.parametrize(("code", "error"), [(404, NotFound), (409, Conflict)])
async def test_a_refusal_is_raised(server, session, code, error):
    async def refused(_seen, _wire):
        return reply(code, status(code, error.__name__, "m"))

    server.handler = refused
    with pytest.raises(error):
        await patch_status(session, POD_GROUP, ABOUT, {})


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
