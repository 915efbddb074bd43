"""What a user's `__init__` does costs nobody else anything."""

import asyncio
import threading
from typing import Any

import pytest

from asched.core.cluster.cluster import Cluster
from asched.core.config.defaults import configuration as a_configuration
from asched.core.framework.profile import CannotBuildError
from asched.core.framework.runner import Runner
from asched.host.assemble import Parts, build_runners
from asched.host.user_plugins import instances
from asched.host.user_plugins.catalogue import Catalogue, of_class
from asched.host.user_plugins.instances import factories


class Plain:
    def __init__(self, args: dict[str, Any]) -> None:
        self.args, self.thread = args, threading.current_thread()

    def filter(self, pod: Any, node: Any) -> None:
        return None


def user_of(runner: Runner, name: str) -> Any:
    served: Any = runner.profile.plugins[name]
    return served.user


async def runners(*classes: type[Any], args: dict[str, Any] | None = None) -> dict[str, Runner]:
    catalogue = Catalogue([of_class(cls, "the test") for cls in classes])
    names = [{"name": cls.__name__} for cls in classes]
    given = [{"name": cls.__name__, "args": args} for cls in classes if args]
    profile = {"plugins": {"filter": {"enabled": names}}, "pluginConfig": given}
    profiles = [{**profile, "schedulerName": name} for name in ("one", "two")]
    configuration = a_configuration({"profiles": profiles})
    parts = Parts.fresh()
    ready = await factories(catalogue, configuration, parts.cluster)
    return build_runners(configuration, parts, factories=ready, known=catalogue.known)


async def test_each_profile_has_its_own_made_in_a_thread() -> None:
    made = await runners(Plain, args={"a": 1})
    one, two = (user_of(made[name], "Plain") for name in ("one", "two"))
    assert one is not two
    assert one.args == two.args == {"a": 1}
    assert threading.main_thread() not in (one.thread, two.thread)


async def test_who_takes_the_cluster_is_made_where_the_cluster_is_changed() -> None:
    class Reads(Plain):
        def __init__(self, cluster: Cluster) -> None:
            self.cluster, self.thread = cluster, threading.current_thread()

    one = user_of((await runners(Reads))["one"], "Reads")
    assert one.thread is threading.main_thread()
    assert isinstance(one.cluster, Cluster)


async def test_one_that_waits_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waits(Plain):
        def __init__(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(instances, "MAKE_S", 0.05)
    turns: list[int] = []
    counting = asyncio.ensure_future(_count(turns))
    with pytest.raises(CannotBuildError) as told:
        await runners(Waits)
    assert '"Waits": __init__ did not end within 0.05 s' in str(told.value)
    counting.cancel()
    assert len(turns) > 1


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyError("x")])
async def test_what_it_raises_is_one_line(error: BaseException) -> None:
    class Raises(Plain):
        def __init__(self) -> None:
            raise error

    with pytest.raises(CannotBuildError) as told:
        await runners(Raises)
    assert f'initializing plugin "Raises": {type(error).__name__}' in str(told.value)


async def _count(turns: list[int]) -> None:
    while True:
        turns.append(1)
        await asyncio.sleep(0)
