"""Bodies of requests: read as they were written, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.store.metadata_store import (
    REQUEST_SIZE_MAX,
    Compare,
    Put,
    Relation,
    RequestTooLargeError,
    Target,
    check_limits,
)
from broker.controller.store.unix.fields import FrameError
from broker.controller.store.unix.frames import REQUEST_BYTES_MAX
from broker.controller.store.unix.requests import (
    RangeRequest,
    TxnRequest,
    WatchRequest,
    decode_number,
    decode_range,
    decode_text,
    decode_txn,
    decode_watch,
    encode_number,
    encode_range,
    encode_text,
    encode_txn,
    encode_watch,
)
from tests.unit.broker.controller.store.unix.strategies import (
    COMPARES,
    KEYS,
    NUMBERS,
    OPERATIONS,
)

TXNS = st.builds(
    TxnRequest,
    st.lists(COMPARES, max_size=4).map(tuple),
    st.lists(OPERATIONS, max_size=4).map(tuple),
    st.lists(OPERATIONS, max_size=4).map(tuple),
)


@given(TXNS)
def test_a_transaction_is_read_as_it_was_written(request: TxnRequest) -> None:
    assert decode_txn(encode_txn(request)) == request


@given(KEYS, NUMBERS, KEYS, st.integers(0, 2**32 - 1))
def test_reads_and_watches_are_read_as_they_were_written(
    prefix: str, revision: int, after: str, limit: int
) -> None:
    ranged = RangeRequest(prefix, revision, after, limit)
    assert decode_range(encode_range(ranged)) == ranged
    assert decode_text(encode_text(prefix)) == prefix
    assert decode_number(encode_number(revision)) == revision
    watched = WatchRequest(prefix, max(revision, 1))
    assert decode_watch(encode_watch(watched)) == watched


@given(TXNS, st.data())
def test_a_damaged_transaction_is_read_as_another_or_refused(
    request: TxnRequest, data: st.DataObject
) -> None:
    """Never anything else: no other error, and none that depends on what a length claims."""
    body = bytearray(encode_txn(request))
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(body), bytes(body[: data.draw(st.integers(0, len(body)))])):
        try:
            decode_txn(damaged)
        except FrameError:
            continue


def test_the_largest_transaction_fits_a_frame() -> None:
    """What the store would take is never refused by the frame."""
    keys = [f"k{number}" for number in range(128)]
    compare = [Compare(key, Target.VALUE, Relation.EQUAL, b"") for key in keys]
    then = [Put(key, b"") for key in keys]
    room = REQUEST_SIZE_MAX - sum(64 + len(key) for key in keys) * 3
    then[0] = Put(keys[0], bytes(room))
    check_limits(compare, then, then[1:])
    with pytest.raises(RequestTooLargeError):
        check_limits(compare, [*then[:-1], Put(keys[0] + "x", bytes(room))], then)
    body = encode_txn(TxnRequest(tuple(compare), tuple(then), tuple(then[1:])))
    assert len(body) < REQUEST_BYTES_MAX - 16


@pytest.mark.parametrize(
    ("target", "operand"), [(Target.VALUE, 1), (Target.VERSION, b"1"), (Target.MOD_REVISION, b"")]
)
def test_values_are_compared_with_bytes_and_numbers_with_numbers(
    target: Target, operand: bytes | int
) -> None:
    with pytest.raises(TypeError):
        encode_txn(TxnRequest((Compare("a", target, Relation.EQUAL, operand),), (), ()))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x00\x01\x00\x00\x00\x00\x04", "target 4"),
        (b"\x00\x01\x00\x00\x00\x00\x00\x04", "relation 4"),
        (b"\x00\x00\x00\x01\x03", "operation 3"),
        (b"\x00\x00\x00\x00\x00\x00\x00", "1 bytes behind the last field"),
    ],
)
def test_what_there_is_not_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decode_txn(body)


def test_a_watch_begins_at_a_revision() -> None:
    with pytest.raises(FrameError, match="revision 0"):
        decode_watch(encode_watch(WatchRequest("a", 0)))
