"""What is asked of etcd is what the contract says, under the prefix and nowhere else."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.controller.store.etcd import rpc_pb2 as rpc
from broker.controller.store.etcd.messages import Messages
from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    Event,
    EventKind,
    Get,
    KeyValue,
    Put,
    Relation,
    Target,
)

MESSAGES = Messages("/varve/")


def in_span(key: bytes, first: bytes, end: bytes) -> bool:
    """The rule of etcd: from `first` on, before `end`; an end of one zero byte is no end."""
    return key >= first and (end == b"\0" or key < end)


@given(st.sampled_from(["", "/varve/", "\x7f", "ÿ"]), st.text(max_size=4), st.text(max_size=6))
def test_a_span_has_the_keys_with_its_prefix_and_no_other(
    store_prefix: str, prefix: str, key: str
) -> None:
    assume(store_prefix or prefix or key)
    messages = Messages(store_prefix)
    first, end = messages.span(prefix)
    assert in_span(messages.key(prefix + key), first, end)
    if not key.startswith(prefix) and key:
        assert not in_span(messages.key(key), first, end)


def test_a_span_behind_a_key_leaves_it_out() -> None:
    """Also where that key lies before the prefix."""
    first, end = MESSAGES.span("t/", after="t/a")
    assert not in_span(MESSAGES.key("t/a"), first, end)
    assert in_span(MESSAGES.key("t/a\0"), first, end)
    assert in_span(MESSAGES.key("t/a/b"), first, end)
    assert MESSAGES.span("t/", after="s") == MESSAGES.span("t/")


def test_all_keys_of_a_store_without_a_prefix() -> None:
    """An empty key is refused; a zero byte stands for the first of all."""
    assert Messages("").span("") == (b"\0", b"\0")


def test_a_transaction_is_written_out() -> None:
    request = MESSAGES.txn(
        [
            Compare("a", Target.VALUE, Relation.LESS, b"v"),
            Compare("b", Target.MOD_REVISION, Relation.EQUAL, 7),
            Compare("c", Target.CREATE_REVISION, Relation.GREATER, 8),
            Compare("d", Target.VERSION, Relation.NOT_EQUAL, 9),
        ],
        [Put("p", b"v", 5), Delete("d/", prefix=True), Delete("d")],
        [Get("g"), Get("g/", prefix=True)],
    )
    first, second, third, fourth = request.compare
    assert (first.key, first.target, first.result) == (b"/varve/a", rpc.Compare.VALUE, 2)
    assert (first.value, second.mod_revision) == (b"v", 7)
    assert (third.create_revision, fourth.version) == (8, 9)
    put, ranged, single = request.success
    assert (put.request_put.key, put.request_put.lease) == (b"/varve/p", 5)
    assert put.request_put.prev_kv
    assert ranged.request_delete_range.range_end == b"/varve/d0"
    assert single.request_delete_range.range_end == b""
    assert [op.request_range.range_end for op in request.failure] == [b"", b"/varve/g0"]


@pytest.mark.parametrize(
    "condition",
    [
        Compare("a", Target.VALUE, Relation.EQUAL, 1),
        Compare("a", Target.VERSION, Relation.EQUAL, b"1"),
    ],
)
def test_values_are_not_compared_with_numbers(condition: Compare) -> None:
    with pytest.raises(TypeError):
        MESSAGES.txn([condition], [], [])


def test_events_are_read() -> None:
    current = rpc.KeyValue(
        key=b"/varve/a", value=b"2", create_revision=3, mod_revision=9, version=2, lease=4
    )
    previous = rpc.KeyValue(
        key=b"/varve/a", value=b"1", create_revision=3, mod_revision=3, version=1
    )
    put = rpc.Event(type=rpc.Event.PUT, kv=current, prev_kv=previous)
    now, before = KeyValue("a", b"2", 3, 9, 2, 4), KeyValue("a", b"1", 3, 3, 1)
    assert MESSAGES.event(put) == Event(EventKind.PUT, "a", 9, now, before)
    gone = rpc.Event(
        type=rpc.Event.DELETE,
        kv=rpc.KeyValue(key=b"/varve/a", mod_revision=10),
        prev_kv=current,
    )
    assert MESSAGES.event(gone) == Event(EventKind.DELETE, "a", 10, None, now)
