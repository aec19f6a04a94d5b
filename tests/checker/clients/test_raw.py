"""What a read_committed consumer keeps of a Fetch answer."""

from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from tests.checker.clients.raw import committed_records

P, Q = 7, 8


def data(producer_id: int, offset: int, *values: str, transactional: bool = True) -> bytes:
    return bytes(
        build_batch(
            [(None, value.encode(), (), 1) for value in values],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=transactional,
        )
    )


def marker(producer_id: int, offset: int, *, commit: bool) -> bytes:
    batch = build_end_transaction_marker(
        producer_id=producer_id,
        producer_epoch=0,
        commit=commit,
        coordinator_epoch=0,
        timestamp_ms=1,
    )
    batch[0:8] = offset.to_bytes(8, "big")
    return bytes(batch)


LOG = [
    data(P, 0, "aborted"),
    data(Q, 1, "committed", "too"),
    data(-1, 3, "plain", transactional=False),
    marker(P, 4, commit=False),
    data(P, 5, "next"),
    marker(Q, 6, commit=True),
    marker(P, 7, commit=True),
    data(P, 8, "aborted again"),
    marker(P, 9, commit=False),
]


def test_aborted_transactions_and_markers_are_left_out() -> None:
    found, end = committed_records(memoryview(b"".join(LOG)), [(P, 0), (P, 8)], 0)
    assert found == [(1, "committed"), (2, "too"), (3, "plain"), (5, "next")]
    assert end == 10


def test_reading_from_within_a_batch() -> None:
    found, end = committed_records(memoryview(b"".join(LOG[1:3])), [], 2)
    assert found == [(2, "too"), (3, "plain")]
    assert end == 4


def test_transaction_that_began_before_what_was_read() -> None:
    found, _ = committed_records(memoryview(b"".join([data(P, 5, "late"), *LOG[3:4]])), [(P, 0)], 5)
    assert found == []


def test_last_batch_may_be_cut_off() -> None:
    found, end = committed_records(memoryview(LOG[2] + LOG[4][:30]), [], 3)
    assert found == [(3, "plain")]
    assert end == 4


def test_nothing() -> None:
    assert committed_records(memoryview(b""), [], 9) == ([], 9)
