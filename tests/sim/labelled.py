"""Simulated pods that are equal but for their labels."""

from asched.core.model.kinds import POD
from tests.sim.changing import Changing
from tests.sim.making import Json

#: Pods of one kind that come at once.
HERD = 6


class Herds(Changing):
    """Pods come in herds of equals, some of which need others to go."""

    def add_pod(self) -> None:
        pod = self.make.pod()
        for number in range(HERD):
            name = f"{pod['metadata']['name']}-{number}"
            self.put(POD, self.of_herd({**pod, "metadata": {**pod["metadata"], "name": name}}))

    def of_herd(self, pod: Json) -> Json:
        return pod


class Labelled(Herds):
    """As an Indexed Job makes them: each has a label of its own."""

    def of_herd(self, pod: Json) -> Json:
        name = pod["metadata"]["name"]
        labels = {**pod["metadata"]["labels"], "index": name}
        return {**pod, "metadata": {**pod["metadata"], "labels": labels}}
