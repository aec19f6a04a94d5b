"""What counts as lost, doubled and out of order."""

import pytest

from bench.cluster.numbered import Found, NumberedProducer, number_of


@pytest.mark.parametrize(
    ("acknowledged", "numbers", "kinds"),
    [
        ({0: 0, 2: 1, 5: 2}, [0, 2, 5], []),
        ({0: 0}, [0, 2, 5], []),
        ({0: None, 5: None}, [0, 2, 5], []),
        ({0: 0, 2: 1}, [0], ["lost"]),
        ({0: None, 2: None}, [0], ["lost"]),
        ({0: 0, 2: 2}, [0, 1, 1, 2], ["lost", "duplicated"]),
        ({}, [0, 2, 1], ["reordered"]),
        ({1: 1}, [2, 1], ["reordered"]),
    ],
)
def test_what_is_found_is_judged(
    acknowledged: dict[int, int | None], numbers: list[int], kinds: list[str]
) -> None:
    """What was sent and not acknowledged may be there or not, once and in its place."""
    found = Found()
    found.judge("t-0", acknowledged, numbers)
    assert found.records == len(numbers)
    names = ("lost", "duplicated", "reordered")
    assert [name for name in names if getattr(found, name)] == kinds
    assert bool(found.problems) is bool(kinds)


def test_longest_gap_counts_from_the_fault_to_the_end() -> None:
    producer = NumberedProducer("127.0.0.1:1", "t")
    producer.acks = [(1.0, 0), (2.0, 1), (2.5, 2), (4.0, 3), (4.5, 4)]
    assert producer.longest_gap_s(2.0, 5.0) == 1.5
    assert producer.longest_gap_s(2.0, 7.0) == 2.5
    assert producer.longest_gap_s(2.1, 2.2) == pytest.approx(0.1)


def test_number_stands_before_the_padding() -> None:
    assert number_of(b"17 .....") == 17
    assert number_of(b"18") == 18
