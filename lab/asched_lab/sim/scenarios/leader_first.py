"""Jobs whose other pods are created once the first one runs, with a minimum of all of them."""

from collections.abc import Iterator
from typing import ClassVar, Final

from asched import names
from asched.core.framework.effects import Effect, EmitEvent
from asched_lab.apiserver.resources import find
from asched_lab.sim.faults import BrokenWatches, LostAnswers, Restarts, StaleWatch
from asched_lab.sim.process import Process
from asched_lab.sim.scenario import Scenario
from asched_lab.sim.scenarios.coscheduled import CONFIG, GROUPS, coscheduled, labelled
from asched_lab.sim.scenarios.gangs import gang_of
from asched_lab.sim.steps import AddNodes, Json, Step, Wait
from asched_lab.sim.world import World

JOBS: Final = 8
FOLLOWERS_MAX: Final = 4
#: A job may wait so long for missing pods without an event; and the time between two steps.
REPORTED_S: Final = 60.0
STEP_S: Final = 5.0
#: Delay of streams and answers until a process knows all objects.
LATE_S: Final = 15.0


class LeaderFirst(Scenario):
    """A leader is created alone; its followers are created once it runs, and its PodGroup requires
    all of them at once, so that the job never starts. Each gets an event within a minute that says
    what it waits for. Some users then lower the minimum: their jobs run. Answers get lost, watches
    are late, and the scheduler dies.
    """

    faults = (
        LostAnswers(rate=0.1),
        StaleWatch(lag_s_max=3),
        BrokenWatches(every_s=40),
        Restarts(every_s=200),
    )
    config: ClassVar[Json] = CONFIG

    def __init__(self) -> None:
        self._followers: dict[str, int] = {}
        self._lowered: set[str] = set()
        self._reported: set[str] = set()  # by the acting process
        self._since_s: dict[str, float] = {}
        self._acting: Process | None = None

    def setup(self, world: World) -> None:
        nodes = JOBS * (1 + FOLLOWERS_MAX) // 8 + 1
        AddNodes(count=nodes, cpu=(4,), pods=(110,)).do(world)
        world.on_effect.append(self._note)
        world.run_for(2.0)

    def start(self, world: World) -> Iterator[Step]:
        for number in range(JOBS):
            self._submit(world, f"job{number}")
            for _ in range(world.rng.randint(1, 12)):
                yield Wait(wait_s=STEP_S)
                self._check_events(world)
        for _ in range(int(2 * REPORTED_S / STEP_S)):
            yield Wait(wait_s=STEP_S)
            self._check_events(world)

    def _submit(self, world: World, name: str) -> None:
        followers = self._followers[name] = world.rng.randint(1, FOLLOWERS_MAX)
        group = coscheduled(name, minMember=1 + followers)
        made = [(GROUPS, group), ("pods", labelled(name, "leader"))]
        for plural, manifest in world.shuffled(made):
            world.server.create(plural, manifest)
        self._since_s[name] = world.clock.now_s()

    def _check_events(self, world: World) -> None:
        """Act as operator and users, and check the time of events."""
        now_s = world.clock.now_s()
        if self._acting is not world.acting:
            self._acting = world.acting
            self._reported.clear()
            self._since_s = dict.fromkeys(self._since_s, now_s)
        led = self._make_followers(world)
        for name, followers in self._followers.items():
            if name in led or name in self._lowered:
                continue
            if name not in self._reported and now_s - self._since_s[name] > REPORTED_S + LATE_S:
                world.ledger.complain(f"{name} waits for {followers} pods and got no event")
            if name in self._reported and world.rng.random() < 0.05:
                self._lower(world, name)

    def _make_followers(self, world: World) -> set[str]:
        """Create followers of jobs whose leader has a node, and return the jobs that have them."""
        led = {gang_of(pod) for pod in world.placed()}
        pods = {pod["metadata"]["name"] for pod in world.pods()}
        for name in sorted(led):
            if f"{name}-follower-0" not in pods:
                for number in range(self._followers[name]):
                    world.server.create("pods", labelled(name, f"follower-{number}"))
        return led

    def _lower(self, world: World, name: str) -> None:
        self._lowered.add(name)
        group = world.server.get(GROUPS, "default", name)
        assert group is not None
        spec = {**group["spec"], "minMember": 1}
        world.server.ctx.put(find(GROUPS), {**group, "spec": spec})
        world.note(f"{name} needs only its leader")

    def _note(self, process: Process, effect: Effect) -> None:
        if isinstance(effect, EmitEvent) and effect.reason == names.EVENT_FAILED_SCHEDULING:
            name = effect.regarding.name.removesuffix("-leader")
            missing = f"1 of minMember {1 + self._followers.get(name, 0)} pods exist"
            if process is self._acting and missing in effect.note:
                self._reported.add(name)

    def is_plain(self, pod: Json) -> bool:
        return not gang_of(pod)

    def check(self, world: World) -> None:
        """Jobs that need only their leader run, the other jobs have not started."""
        self._make_followers(world)
        world.run_for(REPORTED_S)
        bound = [gang_of(pod) for pod in world.placed()]
        for name, followers in self._followers.items():
            wanted = 1 + followers if name in self._lowered else 0
            assert bound.count(name) == wanted, f"{bound.count(name)} of {name}, not {wanted}"
