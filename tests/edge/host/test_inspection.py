"""What the pages see of the inside."""

from types import SimpleNamespace
from typing import Any, cast

import orjson

from asched.core.config.defaults import configuration
from asched.edge.host.inspection import Inspection


def test_the_configuration_is_shown_without_private_keys() -> None:
    tls = {"certData": "Y2VydA==", "keyData": "c2VjcmV0"}
    made = configuration({"extenders": [{"urlPrefix": "https://e/", "tlsConfig": tls}]})
    scheduler = SimpleNamespace(machine=SimpleNamespace(context=None))
    shown = Inspection(cast("Any", scheduler), made, lambda: True).configuration()
    assert shown["extenders"][0]["tlsConfig"]["certData"] == "Y2VydA=="
    assert b"c2VjcmV0" not in orjson.dumps(shown)
