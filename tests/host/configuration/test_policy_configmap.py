"""A Policy in a ConfigMap: where it is looked for, and what is said of one that is not there."""

from typing import Any

import pytest

from asched.host.configuration.policy_configmap import fetch_policy
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions
from tests.kube.scripted import Seen, Wire, reply, scripted, status

TEXT = '{"kind": "Policy"}'


async def fetched(code: int, body: Any) -> tuple[str, list[str]]:
    """The Policy, and which paths were asked for beside the handshake's."""
    asked = []

    async def answer(seen: Seen, _wire: Wire) -> bytes:
        if "configmaps" not in seen.path:
            return reply(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.2"})
        asked.append(f"{seen.method} {seen.path}")
        return reply(code, body)

    async with scripted(answer) as server:
        connection = ConnectionOptions(master=server.url)
        return await fetch_policy(connection, "kube-system", "old policy"), asked


async def test_it_is_the_text_under_kube_schedulers_key() -> None:
    asked = ["GET /api/v1/namespaces/kube-system/configmaps/old%20policy"]

    assert await fetched(200, {"data": {"policy.cfg": TEXT, "other": "x"}}) == (TEXT, asked)
    assert await fetched(200, {"data": {"policy.cfg": ""}}) == ("", asked)


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": {}}, {"data": {"policy.json": "x"}}])
async def test_one_without_that_key_says_where_it_belongs(body: dict[str, Any]) -> None:
    with pytest.raises(ConnectError) as error:
        await fetched(200, body)
    assert str(error.value) == (
        'configmap kube-system/old policy has no key "policy.cfg"; put the Policy there'
    )


async def test_one_that_cannot_be_fetched_says_what_to_look_at() -> None:
    with pytest.raises(ConnectError) as error:
        await fetched(404, status(404, "NotFound", "it is not there"))
    assert str(error.value) == (
        "couldn't get policy config map kube-system/old policy: it is not there;"
        " check --policy-configmap and --policy-configmap-namespace, and the right to get it"
    )
