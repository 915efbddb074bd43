"""Bookings slot by slot: held, open while a pod is tried, taken, left, homeless, ended."""

from typing import Any

from asched.core.cycle.request_book import Booking, Bookings, Slot, free, settle
from asched.core.model.kinds import NODE, POD
from asched.core.state.cluster import Cluster
from asched.core.state.facts import Gone, Seen
from asched.core.state.pods import PodInfo
from tests.builders import a_cluster, a_node, a_pod, pending
from tests.core.cycle.playbook import Play
from tests.core.cycle.test_request_plays import consumer, room

KEY = "default/job"


class Book:
    """A request with slots on nodes; `likes`: by pod set, what its pods ask for."""

    def __init__(self, cluster: Cluster, *nodes: str, cpu: str = "1") -> None:
        self.cluster = cluster
        self.bookings = cluster.singleton(Bookings)
        self.booking = self.bookings.begin(KEY, "u1", until_s=100.0)
        self.slots = [self.slot(node, cpu=cpu) for node in nodes]
        self.bookings.moved.clear()

    def slot(self, node: str, pod_set: int = 0, cpu: str = "1") -> Slot:
        number = len(self.booking.slots)
        what = pending(self.cluster, a_pod(f"job-{pod_set}-{number}").requests(cpu=cpu))
        slot = self.bookings.add(self.booking, pod_set, what, node)
        self.bookings.house(self.booking, slot, node)
        return slot

    def place(self, name: str, node: str, cpu: str = "1") -> PodInfo:
        """A consuming pod gets its place."""
        self.cluster.apply(Seen(POD, consumer(name, cpu).on(node).build()))
        self.bookings.settle()
        return self.cluster.placed[f"uid-{name}"]

    def lose(self, name: str, node: str) -> None:
        self.cluster.apply(Gone(POD, consumer(name).on(node).build()))
        self.bookings.settle()

    def held(self) -> list[str]:
        """Nodes of slots that count."""
        holds = [h for h in self.cluster.holds if not h.is_lifted]
        return sorted(place.node_name for hold in holds for place in hold.places)

    @property
    def used(self) -> dict[str, int]:
        """Milli-CPU counted by node."""
        nodes = self.cluster.nodes
        row = nodes.columns.read("requested")[0]
        return {name: int(row[at]) for name, at in nodes.row_of.items() if row[at]}


def a_book(*nodes: str, cpu: int = 4) -> Book:
    return Book(a_cluster(room("n1", cpu), room("n2", cpu)), *nodes)


def test_a_slot_counts_as_its_pod_would() -> None:
    book = a_book("n1", "n1", "n2")
    assert book.used == {"n1": 2000, "n2": 1000}
    assert [slot.owner for slot in book.slots] == [
        f"ProvisioningRequest:{KEY}#{number}" for number in range(3)
    ]
    assert len(book.bookings) == 1
    assert book.bookings.get(KEY) is book.booking
    assert book.bookings.get("default/other") is None


def test_a_slot_without_room_is_homeless_and_its_request_has_to_look() -> None:
    book = a_book("n1", cpu=1)
    late = book.slot("n1")
    assert (late.node, list(book.booking.homeless)) == ("", [late.owner])
    assert late.owner not in book.booking.free[0]
    assert book.used == {"n1": 1000}
    assert list(book.bookings.moved) == [KEY]
    assert book.bookings.house(book.booking, late, "n2")
    assert (late.node, book.booking.homeless) == ("n2", {})
    assert late.owner in book.booking.free[0]
    assert not book.bookings.house(book.booking, late, "gone")


def test_a_pod_takes_a_slot_of_its_node_and_leaves_it() -> None:
    book = a_book("n1", "n2")
    book.place("a", "n2")
    assert book.slots[1].taken_by == "uid-a"
    assert book.used == {"n1": 1000, "n2": 1000}
    assert book.bookings.has_slot("uid-a")
    assert list(book.bookings.moved) == [KEY]
    book.lose("a", "n2")
    assert book.slots[1].taken_by == ""
    assert book.held() == ["n1", "n2"]
    assert not book.bookings.has_slot("uid-a")
    assert not book.cluster.consumers.moved


def test_a_pod_elsewhere_leaves_the_slots_as_they_are() -> None:
    book = a_book("n1")
    book.place("a", "n2")
    assert book.held() == ["n1"]
    assert list(book.booking.elsewhere) == ["uid-a"]
    book.lose("a", "n2")
    assert not book.booking.elsewhere
    assert not book.bookings.has_slot("uid-a")


def test_an_open_slot_does_not_count_and_is_the_pod_s_if_it_gets_it() -> None:
    book = a_book("n1", "n1")
    second = book.slots[1]
    assert book.bookings.open("uid-a", book.booking, second)
    assert book.used == {"n1": 1000}
    assert "uid-a" in book.cluster.consumers.moved, "it is looked at before the next decision"
    info = pending(book.cluster, consumer("a"))
    book.cluster.assume(info, "n1")
    book.bookings.settle()
    assert (book.slots[0].taken_by, second.taken_by) == ("", "uid-a")
    assert book.used == {"n1": 2000}


def test_a_slot_that_its_pod_did_not_get_counts_again() -> None:
    book = a_book("n1", "n2")
    for end in (lambda: book.bookings.close("uid-a"), book.bookings.settle):
        assert book.bookings.open("uid-a", book.booking, book.slots[0])
        assert book.held() == ["n2"]
        end()
        assert book.held() == ["n1", "n2"]
    # It was tried for one, and went to another.
    book.bookings.open("uid-b", book.booking, book.slots[0])
    book.place("b", "n2")
    assert book.held() == ["n1"]
    assert book.slots[1].taken_by == "uid-b"


def test_only_a_free_slot_of_a_booking_that_lasts_is_opened() -> None:
    book = a_book("n1", "n2")
    book.place("a", "n1")
    taken, left = book.slots
    assert not book.bookings.open("uid-b", book.booking, taken)
    assert book.bookings.open("uid-b", book.booking, left)
    assert not book.bookings.open("uid-c", book.booking, left)  # it is lifted already
    book.bookings.end(KEY)
    book.bookings.settle()
    assert not book.bookings.open("uid-d", book.booking, left)
    assert not book.cluster.consumers.moved
    assert not book.bookings.has_slot(left.owner)
    full = a_book("n1", cpu=1)
    assert not full.bookings.open("uid-e", full.booking, full.slot("n1")), "it is homeless"


def test_who_has_a_slot_is_given_no_other_one() -> None:
    book = a_book("n1", "n1")
    book.place("a", "n1")
    book.bookings.match(book.booking)
    assert [slot.taken_by for slot in book.slots] == ["uid-a", ""]


def test_the_end_gives_back_what_is_still_held() -> None:
    book = a_book("n1", "n2")
    book.place("a", "n1")
    book.place("b", "n2")
    book.place("c", "n1")  # elsewhere: its node's slot is taken
    book.lose("b", "n2")
    freed = book.bookings.end(KEY)
    assert [place.node_name for place in freed] == ["n2"]
    assert book.used == {"n1": 2000}
    assert not any(map(book.bookings.has_slot, ("uid-a", "uid-b", "uid-c")))
    assert (len(book.bookings), book.bookings.moved) == (0, {})
    assert book.bookings.end(KEY) == []


def test_the_end_forgets_what_is_open() -> None:
    book = a_book("n1")
    book.bookings.open("uid-a", book.booking, book.slots[0])
    book.bookings.end(KEY)
    again = Book(book.cluster, "n1")
    again.bookings.open("uid-b", again.booking, again.slots[0])
    book.bookings.close("uid-a")
    assert again.held() == [], "it is open for another pod"
    again.bookings.close("uid-b")
    assert book.used == {"n1": 1000}


def test_what_is_open_for_one_booking_stays_open_when_another_ends() -> None:
    book = a_book("n1")
    book.bookings.begin("default/other", "u2", 100.0)
    book.bookings.open("uid-a", book.booking, book.slots[0])
    book.bookings.end("default/other")
    book.bookings.close("uid-a")
    assert book.held() == ["n1"]


def test_it_is_held_until_its_hour_on_the_clock_that_turns_are_told() -> None:
    cluster = a_cluster(room("n1", 4))
    cluster.wall_ahead_s = 60.0
    book = Book(cluster, "n1")
    (hold,) = cluster.holds.all()
    assert (hold.owner, hold.until_s) == (book.slots[0].owner, 40.0)


def test_a_booking_that_comes_after_its_pods_holds_the_rest() -> None:
    cluster = a_cluster(room("n1", 4))
    cluster.apply(Seen(POD, consumer("a").on("n1").build()))
    bookings = cluster.singleton(Bookings)
    booking = bookings.begin(KEY, "u1", 100.0)
    for number in range(2):
        what = pending(cluster, a_pod(f"job-0-{number}").requests(cpu="1"))
        bookings.add(booking, 0, what, "n1")
    list(bookings.adopt(booking))
    assert [slot.taken_by for slot in booking.slots.values()] == ["uid-a", ""]
    assert [hold.owner for hold in cluster.holds] == [f"ProvisioningRequest:{KEY}#1"]


def test_who_has_which_slot_is_found_without_a_look_at_the_slots_of_other_nodes() -> None:
    """A thousand pods that are there when a new process adopts the booking: each is on the last
    node of those that are left.
    """
    names = [f"n{number}" for number in range(40)]
    cluster = a_cluster(*(room(name, 2) for name in names))
    for name in reversed(names):
        cluster.apply(Seen(POD, consumer(f"on-{name}").on(name).build()))
    bookings = cluster.singleton(Bookings)
    booking = bookings.begin(KEY, "u1", 100.0)
    for name in (*names, *names):
        what = pending(cluster, a_pod(f"job-{len(booking.slots)}").requests(cpu="1"))
        bookings.add(booking, 0, what, name)
    looked_at = [len(booking.free_on[0, name]) for name in names]
    assert looked_at == [2] * len(names)
    list(bookings.adopt(booking))
    taken = [slot.taken_by for slot in booking.slots.values()]
    assert taken == [f"uid-on-{name}" for name in names] + [""] * len(names)
    check_index(booking)
    cluster.apply(Gone(NODE, room("n7", 2).build()))
    for owner in tuple(cluster.holds.touched):
        bookings.disturbed(owner)
    assert [slot.owner for slot in booking.homeless.values()] == [f"ProvisioningRequest:{KEY}#47"]
    check_index(booking)


def check_index(booking: Booking) -> None:
    by_node = {
        (slot.pod_set, slot.node, owner)
        for slots in booking.free.values()
        for owner, slot in slots.items()
    }
    assert by_node == {(*at, owner) for at, slots in booking.free_on.items() for owner in slots}
    assert all(booking.free_on.values())


def test_it_is_consumed_when_as_many_pods_have_places_as_there_are_slots() -> None:
    book = a_book("n1", "n1")
    assert not book.booking.is_consumed
    book.place("a", "n1")
    assert not book.booking.is_consumed
    book.place("b", "n2")  # elsewhere
    assert book.booking.is_consumed


def test_a_homeless_slot_is_one_that_somebody_has_to_come_for() -> None:
    book = a_book("n1", cpu=1)
    book.slot("n1")
    book.place("a", "n1")
    assert not book.booking.is_consumed
    book.place("b", "n2")
    assert book.booking.is_consumed


def test_of_slots_that_are_all_homeless_as_many_pods_elsewhere_consume_it() -> None:
    book = a_book(cpu=1)
    book.booking.likes[0] = book.slot("gone").what
    book.slot("gone")
    book.place("a", "n1")
    assert not book.booking.is_consumed
    book.place("b", "n2")
    assert book.booking.is_consumed


def test_a_pod_that_asks_for_what_no_slot_has_gets_none() -> None:
    book = a_book("n1")
    greedy = consumer("a").requests(**{"cpu": "1", "example.com/part": "1"})
    assert book.booking.sets_for(pending(book.cluster, greedy)) == []
    assert book.booking.sets_for(pending(book.cluster, consumer("b"))) == [0]


def test_a_pod_elsewhere_stands_for_a_set_of_its_size() -> None:
    book = a_book("n1")
    book.slot("n1", pod_set=1, cpu="2")
    book.place("large", "n2", cpu="2")
    book.place("huge", "n2", cpu="3")
    assert not book.booking.is_consumed  # nobody stands for the small one
    book.place("small", "n2", cpu="1")
    assert book.booking.is_consumed


def test_pods_have_slots_of_those_who_ask_for_as_much_else_of_those_who_ask_for_more() -> None:
    book = a_book("n1")
    book.slot("n1", pod_set=1, cpu="2")
    book.slot("n1", pod_set=2, cpu="2")

    def sets(**asked: str) -> list[int]:
        return book.booking.sets_for(pending(book.cluster, a_pod("x").requests(**asked)))

    assert sets(cpu="1") == [0]
    assert sets(cpu="2") == [1, 2]
    assert sets(cpu="500m") == [0, 1, 2]
    assert sets(cpu="1500m") == [1, 2]
    assert sets(cpu="3") == []
    assert sets(cpu="1", memory="1Gi") == []


def test_a_slot_that_others_lie_on_is_homeless() -> None:
    book = a_book("n1", cpu=1)
    (slot,) = book.slots
    foreign = a_pod("foreign").requests(cpu="1").on("n1").build()
    for fact in (Seen(POD, foreign), Gone(POD, foreign)):
        book.cluster.apply(fact)
    assert list(book.cluster.holds.touched) == [slot.owner]
    book.bookings.disturbed(slot.owner)
    assert book.held() == ["n1"], "there is room for it"
    assert not book.cluster.holds.touched
    book.cluster.apply(Seen(POD, foreign))
    book.bookings.disturbed(slot.owner)
    book.bookings.disturbed(slot.owner)  # it was told of twice
    assert (slot.node, list(book.booking.homeless)) == ("", [slot.owner])
    assert slot.owner not in book.booking.free[0]
    assert book.used == {"n1": 1000}
    assert list(book.bookings.moved) == [KEY]
    assert not book.cluster.holds.touched


def test_a_slot_whose_node_went_is_homeless() -> None:
    book = a_book("n1", "n2")
    book.cluster.apply(Gone(NODE, room("n1", 4).build()))
    book.bookings.disturbed(book.slots[0].owner)
    assert list(book.booking.homeless) == [book.slots[0].owner]
    book.cluster.apply(Gone(NODE, room("n2", 4).build()))
    book.cluster.apply(Seen(NODE, room("n2", 4).build()))
    book.bookings.disturbed(book.slots[1].owner)
    assert len(book.booking.homeless) == 2, "another node of that name promised nothing"


def test_an_open_slot_and_one_that_is_taken_stay_where_they_are() -> None:
    book = a_book("n1", "n1", cpu=2)
    book.bookings.open("uid-b", book.booking, book.slots[0])
    book.cluster.apply(Seen(POD, a_pod("foreign").requests(cpu="2").on("n1").build()))
    book.bookings.disturbed(book.slots[0].owner)
    assert not book.booking.homeless


def test_an_owner_that_nobody_knows_holds_nothing() -> None:
    book = a_book("n1")
    owner = book.slots[0].owner
    book.bookings._slot_of.clear()
    book.bookings.disturbed(owner)
    assert book.held() == []


def a_playing_book(wall_s: float) -> tuple[Play, Book]:
    play = Play(a_node("n1"))
    play.parts.cluster.wall_clock_s = wall_s
    return play, Book(play.parts.cluster, "n1")


def test_its_keeper_ends_it_in_time_and_not_before() -> None:
    play, book = a_playing_book(99.9)
    owner = book.slots[0].owner
    settle(play.machine.context, owner)
    assert book.bookings.get(KEY) is book.booking
    play.parts.cluster.wall_clock_s = 100.0
    settle(play.machine.context, owner)
    assert book.bookings.get(KEY) is None
    assert list(book.bookings.moved) == [KEY], "somebody has to say so"


def test_a_wall_clock_that_was_set_back_prolongs_the_hold() -> None:
    play, book = a_playing_book(50.0)
    play.parts.cluster.wall_ahead_s = -2000.0
    owner = book.slots[0].owner
    before = play.parts.cluster.holds.of(owner)
    assert before is not None
    play.machine.context.now_s = before.until_s
    settle(play.machine.context, owner)
    hold = play.parts.cluster.holds.of(owner)
    assert hold is not None
    assert hold.until_s == 100.0 + 2000.0


def test_its_keeper_leaves_alone_what_a_pod_has_or_is_tried_for() -> None:
    play, book = a_playing_book(50.0)
    play.machine.context.now_s, owner = 50.0, book.slots[0].owner
    assert book.bookings.open("uid-a", book.booking, book.slots[0])
    settle(play.machine.context, owner)
    assert book.held() == []
    book.place("a", "n1")
    settle(play.machine.context, owner)
    assert (book.held(), book.slots[0].taken_by) == ([], "uid-a")


def test_who_waits_hears_of_what_became_free() -> None:
    play = Play(room("n1", 1))
    cluster: Any = play.parts.cluster
    book = Book(cluster, "n1")
    play.see(a_pod("waiting").requests(cpu="1"))
    places = book.bookings.end(KEY)
    free(play.machine.context, places)
    play.turn(after_s=2.0)
    assert play.node_of("uid-waiting") == "n1"


def test_a_copy_for_other_threads_is_one() -> None:
    book = a_book("n1")
    copied = book.bookings.all()
    book.bookings.end(KEY)
    assert [one.key for one in copied] == [KEY]
    assert isinstance(copied[0], Booking)
