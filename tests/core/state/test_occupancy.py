"""Host ports and claims in use, by row: counted, and forgotten with the last user."""

from asched.core.state.occupancy import Occupancy
from asched.core.state.pods import PodInfo
from tests.builders import PodBuilder, a_cluster, a_pod, pending

TCP = ("TCP", 80)


def info(pod: PodBuilder) -> PodInfo:
    return pending(a_cluster(), pod)


def port(name: str, number: int = 80, ip: str = "") -> PodInfo:
    return info(a_pod(name).host_port(number, ip=ip))


def claim(name: str, *claims: str) -> PodInfo:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return info(a_pod(name, "team").spec(volumes=volumes))


def test_ports_are_counted_by_address_and_row() -> None:
    used = Occupancy()
    used.move(port("a"), 0, 1)
    used.move(port("b", ip="10.0.0.1"), 0, 1)
    used.move(port("c"), 3, 1)
    used.move(port("d", 81), 3, 1)
    assert used.ports == {
        TCP: {0: {"0.0.0.0": 1, "10.0.0.1": 1}, 3: {"0.0.0.0": 1}},
        ("TCP", 81): {3: {"0.0.0.0": 1}},
    }
    used.move(port("a"), 0, -1)
    assert used.ports[TCP] == {0: {"10.0.0.1": 1}, 3: {"0.0.0.0": 1}}
    for left, row in ((port("b", ip="10.0.0.1"), 0), (port("c"), 3), (port("d", 81), 3)):
        used.move(left, row, -1)
    assert used.ports == {}


def test_a_port_stays_used_while_one_of_its_users_is_there() -> None:
    used = Occupancy()
    used.move(port("a"), 0, 1)
    used.move(port("b"), 0, 1)
    used.move(port("a"), 0, -1)
    assert used.ports == {TCP: {0: {"0.0.0.0": 1}}}


def test_on_trial_it_is_free_with_the_first_and_that_is_undone() -> None:
    used = Occupancy()
    pods = [port("a"), port("b", 81)]
    for pod in (*pods, port("c")):
        used.move(pod, 0, 1)
    before = used.ports_of(pods, 0)
    assert before == {TCP: {"0.0.0.0": 2}, ("TCP", 81): {"0.0.0.0": 1}}
    used.move(pods[0], 0, -1, on_trial=True)
    assert TCP not in used.ports
    used.move(port("d", 82), 0, 1, on_trial=True)
    assert used.ports[("TCP", 82)] == {0: {"0.0.0.0": 1}}
    used.put_back(before, 0)
    assert used.ports[TCP] == {0: {"0.0.0.0": 2}}
    used.move(port("a"), 0, 1)
    assert used.ports[TCP] == {0: {"0.0.0.0": 3}}


def test_nobody_s_port_is_put_back_as_nobody_s() -> None:
    used = Occupancy()
    pod = port("a")
    before = used.ports_of([pod], 2)
    assert before == {TCP: {}}
    used.move(pod, 2, 1, on_trial=True)
    used.put_back(before, 2)
    assert used.ports == {}


def test_what_is_put_back_concerns_its_row_alone() -> None:
    used = Occupancy()
    used.move(port("a"), 1, 1)
    before = used.ports_of([port("b")], 2)
    used.move(port("b"), 2, 1, on_trial=True)
    used.put_back(before, 2)
    assert used.ports == {TCP: {1: {"0.0.0.0": 1}}}


def test_claims_are_counted_by_row_within_their_namespace() -> None:
    used = Occupancy()
    used.move(claim("a", "data", "logs"), 0, 1)
    used.move(claim("b", "data"), 0, 1)
    used.move(claim("c", "data"), 4, 1)
    assert used.claims == {"team/data": {0: 2, 4: 1}, "team/logs": {0: 1}}
    assert used.claims_version == 4
    used.move(claim("a", "data", "logs"), 0, -1)
    used.move(claim("b", "data"), 0, -1)
    assert used.claims == {"team/data": {4: 1}}
    used.move(claim("c", "data"), 4, -1)
    assert used.claims == {}
    assert used.claims_version == 8
    used.move(port("a"), 0, 1)
    assert used.claims_version == 8
