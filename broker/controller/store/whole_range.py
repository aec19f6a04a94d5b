"""All keys under a prefix at one revision, read in pages."""

from typing import Final

from broker.controller.store.metadata_store import (
    CompactedError,
    KeyValue,
    MetadataStore,
    RangeResult,
)

PAGE_KEYS: Final = 1_000
"""Keys of one question: 12 kB each, where a chunk of partitions is large, are 12 MB."""

ATTEMPTS: Final = 10
"""How often a read begins anew when its revision is compacted meanwhile."""


async def whole_range(store: MetadataStore, prefix: str) -> RangeResult:
    """The keys that start with `prefix`, in order, as they stand at the result's revision.

    Raises:
        CompactedError: The store forgets faster than it can be read.
        StoreError: It cannot be read.
    """
    for attempt in range(ATTEMPTS):
        try:
            return await _pages(store, prefix)
        except CompactedError:
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError("the last attempt raises")


async def _pages(store: MetadataStore, prefix: str) -> RangeResult:
    page = await store.range(prefix, limit=PAGE_KEYS)
    revision = page.revision
    items: list[KeyValue] = list(page.items)
    while page.more:
        page = await store.range(prefix, revision=revision, after=items[-1].key, limit=PAGE_KEYS)
        items.extend(page.items)
    return RangeResult(revision, tuple(items))
