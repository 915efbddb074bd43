"""The museum: published incidents of schedulers, each as a scenario.

`asched chaos --scenario Incident07`; docs/results/scenarios.md lists them with their results.
"""

from typing import Final

from asched_lab.sim.museum.api import (
    Incident08,
    Incident09,
    Incident10,
    Incident11,
    Incident12,
    Incident13,
    Incident17,
)
from asched_lab.sim.museum.batch import (
    Incident16,
    Incident18,
    Incident20,
    IncidentN4,
    IncidentN5,
)
from asched_lab.sim.museum.beside import IncidentN1, IncidentN2, IncidentN3
from asched_lab.sim.museum.incident import Incident
from asched_lab.sim.museum.load import (
    Incident04,
    Incident14,
    Incident20a,
    IncidentN6,
    IncidentN7,
    IncidentN8,
)
from asched_lab.sim.museum.pods import (
    Incident01,
    Incident02,
    Incident03,
    Incident05,
    Incident06,
    Incident07,
    Incident15,
    Incident19,
)

INCIDENTS: Final[dict[str, type[Incident]]] = {
    kind.__name__: kind
    for kind in (
        Incident01,
        Incident02,
        Incident03,
        Incident04,
        Incident05,
        Incident06,
        Incident07,
        Incident08,
        Incident09,
        Incident10,
        Incident11,
        Incident12,
        Incident13,
        Incident14,
        Incident15,
        Incident16,
        Incident17,
        Incident18,
        Incident19,
        Incident20,
        Incident20a,
        IncidentN1,
        IncidentN2,
        IncidentN3,
        IncidentN4,
        IncidentN5,
        IncidentN6,
        IncidentN7,
        IncidentN8,
    )
}
