"""Whom a page believes: the cluster's ConfigMap, and what flags say instead."""

import json

import pytest

from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions
from asched.serve.auth import CONFIG_MAP, Access, RequestHeaders
from asched.serve.options import (
    AccessOptions,
    AuthenticationOptions,
    AuthorizationOptions,
    CannotServeError,
)
from asched.serve.telemetry.metrics import Metrics
from tests.unit.kube.scripted import reply, scripted, status

WORDS = {
    "requestheader-allowed-names": ["front", "Back"],
    "requestheader-username-headers": ["X-User"],
    "requestheader-group-headers": ["X-Group", "x-more"],
    "requestheader-uid-headers": ["X-Uid"],
    "requestheader-extra-headers-prefix": ["X-Extra-"],
}
TOLD = {
    "client-ca-file": "clients",
    "requestheader-client-ca-file": "proxies",
    **{key: json.dumps(words) for key, words in WORDS.items()},
}
RULES = RequestHeaders(
    "proxies", ("front", "Back"), ("x-user",), ("x-group", "x-more"), ("x-uid",), ("x-extra-",)
)


@pytest.fixture
async def server():
    async with scripted(None) as made:
        made.data, made.code = dict(TOLD), 200

        async def answer(seen, _wire):
            assert (seen.method, seen.path) == ("GET", CONFIG_MAP)
            if made.code != 200:
                return reply(made.code, status(made.code, "Forbidden", "no"))
            return reply(200, {"data": made.data})

        made.handler = answer
        yield made


@pytest.fixture
def opened(server, tmp_path):
    """Makes judges that look up what the server holds, or what flags say."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: k}}],"
        f" clusters: [{{name: k, cluster: {{server: '{server.url}'}}}}]}}"
    )

    async def make(*, named=True, **flags):
        path = str(kubeconfig) if named else ""
        options = AccessOptions(
            authentication=AuthenticationOptions(authentication_kubeconfig=path, **flags),
            authorization=AuthorizationOptions(),
        )
        return await Access.open(options, Metrics().access, ConnectionOptions(master=server.url))

    return make


async def test_what_the_cluster_says_is_believed(opened, server):
    made = await opened()
    assert made.authenticator.client_authorities == "clients"
    assert made.authenticator.proxy == RULES
    assert made.authorities() == "clientsproxies"
    await made.close()
    assert len(server.seen) == 1


async def test_what_flags_say_comes_before_what_the_cluster_says(opened, tmp_path):
    for name in ("c", "p"):
        (tmp_path / name).write_text(f"of the file {name}")
    own = await opened(
        client_ca_file=str(tmp_path / "c"),
        requestheader_client_ca_file=str(tmp_path / "p"),
        requestheader_allowed_names=("N",),
        requestheader_username_headers=("U",),
        requestheader_group_headers=("G",),
        requestheader_uid_headers=("I",),
        requestheader_extra_headers_prefix=("E",),
    )
    assert own.authenticator.client_authorities == "of the file c"
    assert own.authenticator.proxy == RequestHeaders(
        "of the file p", ("N",), ("u",), ("g",), ("i",), ("e",)
    )
    await own.close()
    with pytest.raises(CannotServeError, match="cannot read the CA file /nonexistent: No such"):
        await opened(client_ca_file="/nonexistent")


@pytest.mark.parametrize("how", [{"named": False}, {"authentication_skip_lookup": True}])
async def test_who_is_not_to_look_it_up_believes_no_certificate(opened, server, how):
    made = await opened(**how)
    assert (made.authorities(), made.authenticator.proxy) == ("", RequestHeaders())
    assert server.seen == []
    await made.close()


@pytest.mark.parametrize(
    "data", [{}, {"client-ca-file": "clients"}, {"requestheader-client-ca-file": "proxies"}]
)
async def test_what_the_cluster_does_not_say_is_not_believed(opened, server, data):
    server.data = data
    made = await opened()
    assert made.authenticator.client_authorities == data.get("client-ca-file", "")
    assert made.authenticator.proxy == RequestHeaders(data.get("requestheader-client-ca-file", ""))
    await made.close()


@pytest.mark.parametrize("tolerates", [True, False])
@pytest.mark.parametrize("broken", ["refused", "no list", "numbers"])
async def test_who_cannot_read_it_begins_without_it_if_that_is_tolerated(
    opened, server, caplog, tolerates, broken
):
    if broken == "refused":
        server.code = 403
    else:
        server.data["requestheader-allowed-names"] = '["front"' if broken == "no list" else "[7]"
    asked = opened(authentication_tolerate_lookup_failure=tolerates)
    if not tolerates:
        with pytest.raises(ConnectError, match=r"the authentication ConfigMap cannot be read: "):
            await asked
        return
    made = await asked
    assert made.authenticator.proxy == RequestHeaders(), "no names would mean any name"
    assert "Unable to get configmap/extension-apiserver-authentication" in caplog.text
    await made.close()
