"""Units are packed, never split, and fail by themselves."""

from broker.controller.store.metadata_store import (
    REQUEST_SIZE_MAX,
    TXN_OPERATIONS_MAX,
    Delete,
    Put,
    RequestTooLargeError,
    StoreUnavailableError,
    key_absent,
)
from broker.controller.store.store_writer import ConflictError, StoreWriter, Unit
from broker.controller.store.write_sequence import WriteSequence
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer


def creation(name: str, *, keys: int = 1, size: int = 0) -> Unit:
    puts = tuple(Put(f"{name}/{i}", bytes(size)) for i in range(keys))
    return Unit((key_absent(f"{name}/0"),), puts)


async def test_units_share_transactions_up_to_the_limit() -> None:
    store = MemoryStore()
    outcome = await StoreWriter(store).commit([creation(f"u{i}", keys=3) for i in range(100)])
    assert outcome.errors == [None] * 100
    per_transaction = TXN_OPERATIONS_MAX // 3
    assert store.commits == -(-100 // per_transaction)
    assert outcome.revision == store.revision
    assert len((await store.range("")).items) == 300


async def test_bytes_are_a_limit_too() -> None:
    store = MemoryStore()
    units = [creation(f"u{i}", size=REQUEST_SIZE_MAX // 3) for i in range(4)]
    assert (await StoreWriter(store).commit(units)).errors == [None] * 4
    assert store.commits == 2


async def test_unit_in_the_way_fails_alone() -> None:
    """The others of its transaction are committed all the same."""
    store = MemoryStore()
    await store.txn(then=[Put("u2/0", b"taken")])
    outcome = await StoreWriter(store).commit([creation(f"u{i}") for i in range(5)])
    assert [type(error) for error in outcome.errors] == [
        type(None),
        type(None),
        ConflictError,
        type(None),
        type(None),
    ]
    keys = {item.key for item in (await store.range("")).items}
    assert keys == {"u0/0", "u1/0", "u2/0", "u3/0", "u4/0"}


async def test_unit_above_every_limit_is_refused() -> None:
    store = MemoryStore()
    outcome = await StoreWriter(store).commit(
        [creation("small"), creation("large", size=REQUEST_SIZE_MAX), creation("other")]
    )
    assert [type(error) for error in outcome.errors] == [
        type(None),
        RequestTooLargeError,
        type(None),
    ]


async def test_failed_transaction_fails_its_units_only() -> None:
    store = MemoryStore()
    store.faults = [None, Fault.REFUSED]
    outcome = await StoreWriter(store).commit([creation(f"u{i}", keys=100) for i in range(3)])
    assert outcome.errors[0] is None
    assert isinstance(outcome.errors[1], StoreUnavailableError)
    assert outcome.errors[2] is None
    keys = {item.key.split("/")[0] for item in (await store.range("")).items}
    assert keys == {"u0", "u2"}


async def test_units_may_delete() -> None:
    """Keys, and all keys under a prefix."""
    store = MemoryStore()
    await store.txn(then=[Put("t", b""), Put("p/1", b"")])
    unit = Unit((), (Delete("t"), Delete("p/", prefix=True)))
    outcome = await StoreWriter(store).commit([unit])
    assert outcome.revision == store.revision
    assert (await store.range("")).items == ()


async def test_units_are_committed_in_a_sequence() -> None:
    """Full transactions leave room for what the sequence adds; a lost answer is no error."""
    store = MemoryStore()
    sequence = WriteSequence(store, "sequence", "w1", ManualTimer())
    store.faults = [Fault.LOST_ANSWER]
    outcome = await StoreWriter(sequence).commit([creation(f"u{i}") for i in range(300)])
    assert outcome.errors == [None] * 300
    assert len((await store.range("u")).items) == 300


async def test_nothing_to_do_is_nothing_done() -> None:
    store = MemoryStore()
    outcome = await StoreWriter(store).commit([])
    assert (outcome.errors, outcome.revision, store.commits) == ([], 0, 0)
