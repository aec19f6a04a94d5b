"""Marks in a cluster's store: they come back as they were written, and half a copy is refused."""

from uuid import UUID

import pytest

from broker.controller.images.metadata_records import MetadataFormatError
from broker.controller.images.store_marks import (
    ORIGIN_KEY,
    RECOVERY_KEY,
    Origin,
    OriginState,
    RecoveredBroker,
    Recovery,
    RecoveryState,
    UnfinishedStoreError,
    check_whole,
    decode_origin,
    decode_recovery,
    recovery_of,
)
from broker.controller.store.metadata_store import Put
from tests.fakes.broker.metadata_store import MemoryStore

ONE, TWO, THREE = (UUID(int=n << 64) for n in (1, 2, 3))
BROKERS = {1: RecoveredBroker(7, frozenset({TWO})), 12: RecoveredBroker(9, frozenset())}
RECOVERED = Recovery(RecoveryState.RECOVERED, (ONE,), BROKERS)


def test_marks_come_back_as_they_were_written() -> None:
    origin = Origin(OriginState.COPIED, ONE, 3)
    assert decode_origin(origin.encode()) == origin
    assert decode_recovery(RECOVERED.encode()) == RECOVERED


@pytest.mark.parametrize("value", [b"x", b'{"v":1}', b'{"v":1,"state":"new","store":"","node":1}'])
def test_a_damaged_mark_is_an_error(value: bytes) -> None:
    with pytest.raises(MetadataFormatError):
        decode_origin(value)
    with pytest.raises(MetadataFormatError):
        decode_recovery(value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (ORIGIN_KEY, Origin(OriginState.COPYING, ONE, 1).encode(), "metadata copy` again"),
        (ORIGIN_KEY, Origin(OriginState.LEFT, ONE, 1).encode(), "was copied to node 1"),
        (RECOVERY_KEY, Recovery(RecoveryState.RECOVERING).encode(), "recover-metadata` again"),
    ],
)
async def test_half_of_a_state_is_refused(key: str, value: bytes, says: str) -> None:
    store = MemoryStore()
    await store.txn(then=[Put(key, value)])
    with pytest.raises(UnfinishedStoreError, match=says):
        await check_whole(store)


async def test_what_is_whole_is_not_refused() -> None:
    store = MemoryStore()
    await check_whole(store)
    assert await recovery_of(store) is None
    await store.txn(
        then=[
            Put(ORIGIN_KEY, Origin(OriginState.COPIED, ONE, 1).encode()),
            Put(RECOVERY_KEY, RECOVERED.encode()),
        ]
    )
    await check_whole(store)
    assert await recovery_of(store) == RECOVERED


def test_a_recovery_accounts_for_what_it_has_read_and_for_nothing_else() -> None:
    """Another directory may have been written to in later leader epochs than were seen."""
    assert RECOVERED.accounts_for(1, TWO, ONE)
    assert not RECOVERED.accounts_for(2, TWO, ONE)
    assert not RECOVERED.accounts_for(1, THREE, ONE)
    assert not RECOVERED.accounts_for(1, TWO, THREE)
    assert not Recovery(RecoveryState.RECOVERING, (ONE,), BROKERS).accounts_for(1, TWO, ONE)
