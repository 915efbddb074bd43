"""What a configuration with extenders needs beside the machine: their client, and whole objects."""

from asched.core.config.construct import in_order_of_use
from asched.core.config.v1 import SchedulerConfiguration
from asched.core.extender.consult import wants_victims, whole_kinds
from asched.edge.client.extenders import ExtenderObserver, Extenders, observe_nothing
from asched.edge.client.originals import Originals


def originals_for(configuration: SchedulerConfiguration) -> Originals | None:
    """Where whole nodes and pods are kept, if some extender wants to see them."""
    kinds = whole_kinds(configuration.extenders)
    if not kinds:
        return None
    return Originals(kinds, with_placed_pods=wants_victims(configuration.extenders))


def client_for(
    configuration: SchedulerConfiguration,
    originals: Originals | None,
    observe: ExtenderObserver = observe_nothing,
) -> Extenders | None:
    """The connections to the extenders, None without any. To be made inside the loop, and closed.

    Raises ConnectError if TLS files of one cannot be used.
    """
    if not configuration.extenders:
        return None
    return Extenders(in_order_of_use(configuration.extenders), originals, observe=observe)
