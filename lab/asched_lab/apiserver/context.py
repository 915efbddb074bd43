"""State that every handler uses: the store, the clock, the generator of names, the options.

The clock and the seed are parameters, so that a simulation can run the whole server in its own
time.
"""

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asched_lab.apiserver.resources import Resource, resources_of
from asched_lab.apiserver.store import Record, Store

if TYPE_CHECKING:
    from asched_lab.apiserver.auth import Authenticator

JsonObject = dict[str, Any]

#: The letters of generated names; no vowels, so that no words appear.
NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
#: The base of a generated name is cut so that the whole fits a subdomain.
BASE_LENGTH_MAX: Final = 253 - SUFFIX_LENGTH
#: The first addresses of services; the network does not exist.
SERVICE_NETWORK: Final = "10.96"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the server; the defaults suit a cluster without controllers.

    service_accounts  pods must have an account, and get its token volume (ServiceAccount admission)
    node_taints       new nodes start with the not-ready taint (TaintNodesByCondition admission)
    alpha             group versions of resources.ALPHA_TABLE that are served
    minor             minor version of Kubernetes that the server plays, of resources.RELEASES
    managed_fields    plain writes are recorded in metadata.managedFields; applied ones always are
    """

    service_accounts: bool = False
    node_taints: bool = False
    managed_fields: bool = False
    alpha: frozenset[str] = frozenset()
    minor: str = "1.36"


class Context:
    """The state of one server."""

    def __init__(
        self,
        *,
        auth: "Authenticator",
        options: Options | None = None,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        self.store = Store()
        self.auth = auth
        self.options = options or Options()
        #: may change while the server runs, as after an upgrade
        self.alpha = set(self.options.alpha)
        self.resources = resources_of(self.options.minor)
        self.clock = clock
        self.random = random.Random(seed)
        #: Kinds without a controller; creating one gives a warning.
        self.unattended: frozenset[str] = frozenset()
        self._second = -1
        self._second_text = ""
        self._services = 0

    def now(self) -> str:
        """The present in whole seconds, in the format of objects."""
        second = int(self.clock())
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        return self._second_text

    def later(self, seconds: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(self.clock()) + seconds))

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def new_suffix(self) -> str:
        return "".join(self.random.choices(NAME_LETTERS, k=SUFFIX_LENGTH))

    def generated_name(self, base: str) -> str:
        return base[:BASE_LENGTH_MAX] + self.new_suffix()

    def new_address(self) -> str:
        """An address for a service. Addresses are counted up and not used again."""
        self._services += 1
        return f"{SERVICE_NETWORK}.{self._services >> 8}.{self._services & 255}"

    def get(self, res: Resource, namespace: str, name: str) -> Record | None:
        return self.store.get(res.storage, (namespace, name))

    def put(self, res: Resource, obj: JsonObject) -> Record:
        metadata = obj["metadata"]
        return self.store.put(res.storage, (metadata.get("namespace", ""), metadata["name"]), obj)
