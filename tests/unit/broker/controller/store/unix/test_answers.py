"""Bodies of answers, changes and failures: read as they were written, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.store.metadata_store import (
    Changes,
    CompactedError,
    DuplicateKeyError,
    FutureRevisionError,
    KeyValue,
    LeaseNotFoundError,
    OutcomeUnknownError,
    RangeResult,
    RequestTooLargeError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    TxnResult,
)
from broker.controller.store.unix.answers import (
    decode_changes,
    decode_failure,
    decode_item,
    decode_range_result,
    decode_txn_result,
    encode_changes,
    encode_failure,
    encode_item,
    encode_range_result,
    encode_txn_result,
)
from broker.controller.store.unix.fields import FrameError
from tests.unit.broker.controller.store.unix.strategies import (
    ITEM_LISTS,
    ITEMS,
    NUMBERS,
    RESPONSES,
    events,
)

RESULTS = st.builds(TxnResult, st.booleans(), NUMBERS, st.lists(RESPONSES, max_size=4).map(tuple))
CHANGES = NUMBERS.flatmap(
    lambda revision: st.builds(
        Changes, st.just(revision), st.lists(events(revision), max_size=4).map(tuple)
    )
)


@given(RESULTS)
def test_a_result_is_read_as_it_was_written(result: TxnResult) -> None:
    assert decode_txn_result(encode_txn_result(result)) == result


@given(CHANGES)
def test_changes_are_read_as_they_were_written(changes: Changes) -> None:
    assert decode_changes(encode_changes(changes)) == changes


@given(NUMBERS, st.none() | ITEMS, ITEM_LISTS, st.booleans())
def test_reads_are_read_as_they_were_written(
    revision: int, item: KeyValue | None, items: tuple[KeyValue, ...], more: bool
) -> None:
    assert decode_item(encode_item(revision, item)) == (revision, item)
    found = RangeResult(revision, items, more)
    assert decode_range_result(encode_range_result(found)) == found


@given(CHANGES, RESULTS, st.data())
def test_what_is_damaged_is_read_as_another_or_refused(
    changes: Changes, result: TxnResult, data: st.DataObject
) -> None:
    for whole, decode in (
        (encode_changes(changes), decode_changes),
        (encode_txn_result(result), decode_txn_result),
    ):
        body = bytearray(whole)
        body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
        try:
            decode(bytes(body))
        except FrameError:
            continue


@pytest.mark.parametrize(
    "error",
    [
        FutureRevisionError("a"),
        RequestTooLargeError("b"),
        DuplicateKeyError("c"),
        LeaseNotFoundError("d"),
        StoreUnavailableError("e"),
        OutcomeUnknownError("f"),
        StoreFullError("g"),
    ],
)
def test_a_failure_arrives_as_what_it_is(error: StoreError) -> None:
    found = decode_failure(encode_failure(error))
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_what_was_compacted_arrives_with_its_revision() -> None:
    found = decode_failure(encode_failure(CompactedError(17)))
    assert isinstance(found, CompactedError)
    assert found.compacted_revision == 17


def test_a_store_that_is_closed_there_is_one_that_does_not_answer_here() -> None:
    found = decode_failure(encode_failure(StoreClosedError("closed")))
    assert type(found) is StoreUnavailableError


def test_a_failure_that_there_is_not_is_refused() -> None:
    with pytest.raises(FrameError, match="failure 99"):
        decode_failure(b"\x63" + bytes(12))
