"""Vocabularies: ids live as long as somebody holds them, and are told when they are born again."""

from asched.core.cluster.vocab import Vocab


def test_however_many_values_come_and_go_as_few_are_kept_as_live() -> None:
    vocab: Vocab[str] = Vocab("")
    for number in range(10_000):
        vocab.take(f"v{number}")
        if number >= 3:
            vocab.release(vocab.find(f"v{number - 3}"))
    assert len(vocab) <= 5
