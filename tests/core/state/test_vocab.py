"""Vocabularies: ids live as long as somebody holds them, and are told when they are born again."""

import random

from asched.core.state.vocab import Vocab


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


def test_births_are_remembered_of_as_many_as_live() -> None:
    vocab: Vocab[int] = Vocab(0)
    for value in range(1, 1_001):
        vocab.take(value)
    before = vocab.end
    for value in range(2_000, 2_900):
        vocab.release(vocab.find(value - 1_999))
        vocab.take(value)
    assert len(list(vocab.births(before))) == 900, "and not all"
