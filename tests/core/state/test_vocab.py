"""Vocabularies: ids live as long as somebody holds them, and are told when they are born again."""

import random

import numpy as np

from asched.core.state.vocab import BIRTHS_MIN, Vocab, with_room
from tests.weigh import growth, weigh


def test_an_id_lasts_until_its_last_holder_gives_it_back() -> None:
    vocab: Vocab[str] = Vocab("")
    red = vocab.take("red")
    assert vocab.take("red") == red
    assert not vocab.release(red)
    assert vocab.find("red") == red

    assert vocab.release(red)
    assert vocab.find("red") == 0
    assert vocab.values == [""]
    assert not vocab.release(0)
    assert vocab.held(0) == 0


def test_the_smallest_free_id_is_given_first_and_the_free_end_is_cut_off() -> None:
    vocab: Vocab[int] = Vocab(0)
    ids = {value: vocab.take(value) for value in range(1, 9)}
    for value in (2, 5, 8, 7):
        vocab.release(ids[value])
    assert len(vocab) == ids[6] + 1
    assert [vocab.values[ids[value]] for value in (1, 2, 5)] == [1, 0, 0], "nobody holds two"
    assert [vocab.take(value) for value in (20, 21, 22, 23)] == [ids[2], ids[5], 7, 8]


def test_readers_that_follow_births_know_every_value() -> None:
    rng = random.Random(7)
    vocab: Vocab[int] = Vocab(-1)
    held: list[int] = []
    seen, read, lived = -1, {}, 0
    for step in range(5_000):
        if held and rng.random() < 0.5:
            vocab.release(vocab.find(held.pop(rng.randrange(len(held)))))
        else:
            held.append(rng.randrange(400))
            vocab.take(held[-1])
        lived = max(lived, len(set(held)))
        if rng.random() < (0.3 if step % 2_000 < 1_000 else 0.005):  # at times too rarely
            read |= {id_: vocab.values[id_] for id_ in vocab.births(seen)}
            seen = vocab.end
            assert all(read[vocab.find(value)] == value for value in held)
        assert vocab.holders() == {value: held.count(value) for value in held}
    assert len(vocab) <= lived + 1


def test_however_many_values_come_and_go_as_few_are_kept_as_live() -> None:
    vocab: Vocab[str] = Vocab("")
    for number in range(10_000):
        vocab.take(f"v{number}")
        if number >= 3:
            vocab.release(vocab.find(f"v{number - 3}"))
    assert len(vocab) <= 5


def test_many_values_that_went_leave_nothing() -> None:
    vocab: Vocab[int] = Vocab(0)
    vocab.release(vocab.take(1))
    before = weigh(vocab)
    many = [vocab.take(value) for value in range(1, BIRTHS_MIN // 2)]
    for id_ in many:
        vocab.release(id_)
    assert growth(before, weigh(vocab)).keys() <= {"entries of list", "int"}
    assert growth(before, weigh(vocab))["entries of list"] == len(many), "births"
    assert len(vocab._births) <= BIRTHS_MIN
    assert len(vocab._free) <= 2


def test_nothing_is_kept_of_values_that_nobody_holds() -> None:
    vocab: Vocab[int] = Vocab(0)
    for kept in ([], [-1]):
        ids = [vocab.take(value) for value in (*kept, *range(1, 1_000))]
        for id_ in ids[len(kept) :]:
            vocab.release(id_)
        assert (vocab.values, len(vocab._holders)) == ([0, *kept], len(kept) + 1)
        vocab.release(vocab.take(-2))
        assert len(vocab._free) <= 1


def test_births_are_remembered_of_as_many_as_live() -> None:
    vocab: Vocab[int] = Vocab(0)
    for value in range(1, 1_001):
        vocab.take(value)
    before = vocab.end
    for value in range(2_000, 2_900):
        vocab.release(vocab.find(value - 1_999))
        vocab.take(value)
    assert len(list(vocab.births(before))) == 900, "and not all"


def test_several_are_taken_at_once_and_nothing_is_held_of_none() -> None:
    vocab: Vocab[str] = Vocab("")
    red = vocab.take("red")
    ids = vocab.take_all(["red", None, "blue", "red"])
    assert ids == [red, 0, vocab.find("blue"), red]
    assert [vocab.held(id_) for id_ in (0, red, vocab.find("blue"))] == [0, 3, 1]
    assert vocab.held(99) == 0, "nobody was ever that"
    blue = vocab.find("blue")
    assert vocab.release(blue)
    assert vocab.held(blue) == 0


def test_who_follows_births_hears_of_those_since_and_of_none_that_was_cut_off() -> None:
    vocab: Vocab[int] = Vocab(0)
    before = vocab.end
    ids = [vocab.take(value) for value in (7, 8, 9)]
    assert list(vocab.births(before)) == ids
    assert vocab.end == before + 3
    middle = vocab.end - 1
    assert list(vocab.births(middle)) == ids[2:]
    vocab.take(7)
    assert vocab.end == before + 3, "it was born already"
    vocab.release(ids[2])
    assert list(vocab.births(middle)) == []


def test_births_are_remembered_for_a_while_however_few_values_live() -> None:
    vocab: Vocab[int] = Vocab(0)
    vocab.take(-1)
    before = vocab.end
    for value in range(1, BIRTHS_MIN // 2):
        vocab.release(vocab.take(value))
    assert list(vocab.births(before)) == [], "of all that came none is left"


def test_births_are_all_of_them_once_too_many_have_come_to_know() -> None:
    vocab: Vocab[int] = Vocab(0)
    stays = vocab.take(-1)
    for value in range(1, 4 * BIRTHS_MIN):
        vocab.release(vocab.take(value))
    assert stays in vocab.births(0)
    assert vocab.end == 4 * BIRTHS_MIN


def test_an_array_by_id_grows_in_great_steps_and_keeps_what_it_held() -> None:
    kept = np.array([1, 2, 3], dtype=np.int16)
    assert with_room(kept, 3) is kept
    grown = with_room(kept, 4)
    assert (len(grown), grown.dtype) == (6, np.int16)
    assert grown.tolist() == [1, 2, 3, 0, 0, 0]
    assert len(with_room(kept, 50)) == 50
