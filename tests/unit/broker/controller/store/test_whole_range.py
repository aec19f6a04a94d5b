"""All keys at one revision, however many there are and whatever changes meanwhile."""

import pytest
from typing_extensions import override

from broker.controller.store.metadata_store import (
    TXN_OPERATIONS_MAX,
    CompactedError,
    Put,
    RangeResult,
)
from broker.controller.store.whole_range import ATTEMPTS, PAGE_KEYS, whole_range
from tests.fakes.broker.metadata_store import MemoryStore


class _BusyStore(MemoryStore):
    """Changes, and as often as asked for forgets the past, before every page but the first."""

    compactions = 0
    pages = 0

    @override
    async def range(
        self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0
    ) -> RangeResult:
        self.pages += 1
        if revision:
            await self.txn(then=[Put("k/0000", b"changed"), Put("k/9999", b"new")])
            if self.compactions:
                self.compactions -= 1
                await self.compact(self.revision)
        return await super().range(prefix, revision=revision, after=after, limit=limit)


async def filled(keys: int) -> _BusyStore:
    store = _BusyStore()
    for first in range(0, keys, TXN_OPERATIONS_MAX):
        last = min(first + TXN_OPERATIONS_MAX, keys)
        await store.txn(then=[Put(f"k/{i:04}", b"old") for i in range(first, last)])
    return store


@pytest.mark.parametrize("keys", [0, 1, PAGE_KEYS, PAGE_KEYS + 1, 2 * PAGE_KEYS + 5])
async def test_all_pages_show_the_first_ones_revision(keys: int) -> None:
    store = await filled(keys)
    revision = store.revision
    found = await whole_range(store, "k/")
    assert found.revision == revision
    assert [item.key for item in found.items] == [f"k/{i:04}" for i in range(keys)]
    assert {item.value for item in found.items} <= {b"old"}
    assert store.pages == max(-(-keys // PAGE_KEYS), 1)


async def test_a_read_over_a_compaction_begins_anew() -> None:
    store = await filled(PAGE_KEYS + 1)
    store.compactions = 2
    found = await whole_range(store, "k/")
    assert len(found.items) == PAGE_KEYS + 2
    assert found.items[0].value == b"changed"


async def test_a_store_that_forgets_too_fast_is_an_error() -> None:
    store = await filled(PAGE_KEYS + 1)
    store.compactions = ATTEMPTS
    with pytest.raises(CompactedError):
        await whole_range(store, "k/")
