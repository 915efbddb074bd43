"""The machine of a recording, rebuilt: with the same facts at the same times it decides the same.

It has no clock, connection or thread. Coroutines of user plugins are not run again, since they
communicate with other systems: their recorded results are facts. All other code of a plugin runs,
so the plugin has to be available.
"""

import json
from typing import Any

from asched.core.cluster.facts import Fact
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.cycle.machine import Machine
from asched.core.cycle.orders import PoolsHeld, Reconfigured
from asched.core.framework.effects import Effect
from asched.core.model.decode import MalformedError, parse
from asched.host.assemble import BUILD_ERRORS, Parts, build_machine, build_runners, reconfigured
from asched.host.configuration.file import ConfigError, load_config
from asched.host.user_plugins.catalogue import Catalogue
from asched.ops.recording.lines import RecordingHead
from asched_lab.replay.counted import CountedLimit
from asched_lab.replay.held_pools import HeldPools
from asched_lab.replay.lines import (
    FactReader,
    RecordedTurn,
    Reload,
    UnreadableLineError,
    UnusableRecordingError,
)


class Rebuilt:
    """`instead`: a configuration that replaces all recorded ones."""

    def __init__(
        self,
        head: RecordingHead,
        catalogue: Catalogue,
        instead: SchedulerConfiguration | None = None,
    ) -> None:
        """Raises UnusableRecordingError if plugins are missing, or the configuration is not valid
        in this version.
        """
        self._head = head
        self._catalogue = catalogue
        self._instead = instead
        self.parts = Parts.fresh()
        configuration = instead or self._loaded(head.configuration)
        try:
            runners = self._runners(configuration)
        except BUILD_ERRORS as error:
            raise UnusableRecordingError(str(error)) from error
        self.limit = CountedLimit()
        self.machine: Machine = build_machine(
            configuration,
            self.parts,
            runners,
            monotonic_s=lambda: 0.0,
            max_in_unschedulable_s=head.max_in_unschedulable_s,
            seed=head.seed,
            bindings_max=head.bindings_max,
        )
        self.machine.limit = self.limit
        self.machine.context.advises = head.advises
        self.held_pools = HeldPools()
        #: Whether it has the recorded pools, so that it decides for those that were held; else for
        #: all.
        self.has_recorded_pools = instead is None or _has_pools_of(instead, head)
        self._began_s: float | None = None
        self._reader = FactReader()
        self._reader.learn(self.machine.context.kinds)

    def turn(self, turn: RecordedTurn) -> list[Effect]:
        """Replay the recorded turn; return its effects."""
        return self.handle(turn, self.facts(turn))

    def handle(self, turn: RecordedTurn, facts: list[Fact]) -> list[Effect]:
        """The same with other facts."""
        self.limit.granted, self.limit.resumed = turn.went_on, turn.resumed
        self.machine.is_active = turn.is_active
        return self.machine.handle(facts, turn.at_s)

    def facts(self, turn: RecordedTurn) -> list[Fact]:
        """The recorded facts. Kinds that this machine does not watch are left out.

        Raises UnusableRecordingError.
        """
        found = []
        self._began_s = turn.at_s if self._began_s is None else self._began_s
        for raw in turn.facts:
            try:
                fact = self._reader.fact(raw, turn.lists)
            except UnreadableLineError as error:
                text = f"turn {turn.number} has a fact that is not valid here: {error}"
                raise UnusableRecordingError(text) from error
            if isinstance(fact, Reload):
                fact = self._reconfigured(fact)
                for runner in fact.runners.values():
                    self._reader.learn(runner.profile.kinds)
            if isinstance(fact, PoolsHeld):
                self.held_pools.note(turn.number, turn.at_s - self._began_s, fact)
                if not self.has_recorded_pools:
                    continue
            if fact is not None:
                found.append(fact)
        return found

    def _reconfigured(self, fact: Reload) -> Reconfigured:
        configuration = self._instead or self._loaded(fact.document)
        observer = self.machine.context.observer
        try:
            runners = self._runners(configuration)
        except BUILD_ERRORS as error:
            raise UnusableRecordingError(str(error)) from error
        return reconfigured(configuration, runners, fact.edition, observer)

    def _runners(self, configuration: SchedulerConfiguration) -> Any:
        plugins = self._catalogue
        return build_runners(
            configuration, self.parts, factories=plugins.factories, known=plugins.known
        )

    def _loaded(self, document: dict[str, Any]) -> SchedulerConfiguration:
        try:
            text = parse(json.dumps, document)
            loaded = load_config(text=text, gates=self._head.gates, known=self._catalogue.known)
        except MalformedError as error:
            raise UnusableRecordingError(f"its configuration cannot be read: {error}") from error
        except ConfigError as error:
            missing = [name for name, *_ in self._head.plugins if not self._has(name)]
            if missing:
                raise UnusableRecordingError(_asking_for(missing, self._head)) from error
            why = str(error).partition("\n")[0]
            raise UnusableRecordingError(
                f"its configuration, of asched {self._head.version}, is refused here: {why}"
            ) from error
        return loaded.configuration

    def _has(self, name: str) -> bool:
        return name in self._catalogue.plugins


def _has_pools_of(configuration: SchedulerConfiguration, head: RecordingHead) -> bool:
    written = head.configuration.get("pools") or ()
    return {pool.name for pool in configuration.pools} == {pool.get("name") for pool in written}


def _asking_for(missing: list[str], head: RecordingHead) -> str:
    origins = [f"{name} (of {origin})" for name, origin, _ in head.plugins if name in missing]
    return f"it was recorded with plugins that are not here: {', '.join(origins)}; give --plugin"
