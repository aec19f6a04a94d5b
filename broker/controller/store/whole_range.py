"""Keys under a prefix at one revision, read in pages."""

from collections.abc import Awaitable, Callable
from typing import Final

from broker.controller.store.metadata_store import (
    CompactedError,
    KeyValue,
    MetadataStore,
    RangeResult,
)

PAGE_KEYS: Final = 1_000
"""Keys of one question: 12 kB each, where a chunk of partitions is large, are 12 MB: a tenth of
what is taken of etcd's answers."""

ATTEMPTS: Final = 10
"""How often a read begins anew when its revision is compacted meanwhile."""


async def whole_range(store: MetadataStore, prefix: str) -> RangeResult:
    """The keys that start with `prefix`, in order, as they stand at the result's revision.

    Raises:
        CompactedError: The store forgets faster than it can be read.
        StoreError: It cannot be read.
    """

    async def ask(revision: int, after: str, limit: int) -> RangeResult:
        return await store.range(prefix, revision=revision, after=after, limit=limit)

    for attempt in range(ATTEMPTS):
        try:
            return await in_pages(ask, revision=0, after="", limit=0)
        except CompactedError:
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError("the last attempt raises")


AskPage = Callable[[int, str, int], Awaitable[RangeResult]]
"""Asks a server for at most so many keys: of a revision (0: the newest), after a key ("": all)."""


async def in_pages(ask: AskPage, *, revision: int, after: str, limit: int) -> RangeResult:
    """A range as `MetadataStore.range` gives it, from a server that is asked for PAGE_KEYS at once.

    All pages show one revision, the first one's; it is also what the result is of.
    """
    found: list[KeyValue] = []
    newest = 0
    while True:
        page = await ask(
            revision, after, min(PAGE_KEYS, limit - len(found)) if limit else PAGE_KEYS
        )
        newest = newest or page.revision
        revision = revision or newest
        found.extend(page.items)
        if not page.more or (limit and len(found) >= limit):
            return RangeResult(newest, tuple(found), page.more)
        after = found[-1].key
