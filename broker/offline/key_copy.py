"""Copying of keys into a store: in bounded transactions, until nothing differs.

    read the target ──> differs ──> transactions of at most 100 keys and 1 MiB, each under a guard
          ^                └── guard refused: another writer is there, nothing more is written
          └── written, or the outcome is unknown: read again
    nothing differs ──> done

What was begun and broken off is finished by the same call: only what differs is written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from broker.controller.store.metadata_store import (
    OPERATION_OVERHEAD,
    Compare,
    Delete,
    MetadataStore,
    OutcomeUnknownError,
    Put,
    StoreError,
)
from broker.controller.store.whole_range import whole_range

KEYS_MAX: Final = 100
"""Keys of one transaction."""

BYTES_MAX: Final = 1 << 20
"""Bytes of one transaction, unless one key alone has more."""

ROUNDS_MAX: Final = 20
"""Readings of the target before it is given up: each is behind an unknown outcome or a change."""


class TargetChangedError(StoreError):
    """Another writer has changed the target meanwhile."""


async def make_equal(
    target: MetadataStore,
    wanted: Mapping[str, bytes],
    *,
    guard: Sequence[Compare],
    is_ours: Callable[[str], bool],
) -> int:
    """Have the target hold `wanted` and nothing else; return how many keys were changed.

    Args:
        target: Where to.
        wanted: All keys and values.
        guard: Of every transaction.
        is_ours: Whether a key takes part: others stay as they are.

    Raises:
        TargetChangedError: The guard does not hold, or the target does not come to rest.
        StoreError: The target refuses.
    """
    changed = 0
    for _ in range(ROUNDS_MAX):
        content = await whole_range(target, "")
        there = {item.key: item.value for item in content.items if is_ours(item.key)}
        operations: list[Put | Delete] = [
            Put(key, value) for key, value in wanted.items() if there.get(key) != value
        ]
        operations += [Delete(key) for key in there if key not in wanted]
        if not operations:
            return changed
        for pack in packs(operations):
            try:
                result = await target.txn(guard, pack)
            except OutcomeUnknownError:
                # Reading shows what became of it.
                break
            if not result.succeeded:
                raise TargetChangedError(
                    "the metadata store was changed by another program meanwhile: nothing more "
                    "is written to it"
                )
            changed += len(pack)
    raise TargetChangedError("the metadata store does not keep what is written to it")


def packs(operations: Sequence[Put | Delete]) -> Iterator[list[Put | Delete]]:
    """The operations in order, as many at once as a transaction may have."""
    pack: list[Put | Delete] = []
    size = 0
    for operation in operations:
        bytes_of = OPERATION_OVERHEAD + len(operation.key.encode())
        bytes_of += len(operation.value) if isinstance(operation, Put) else 0
        if pack and (len(pack) == KEYS_MAX or size + bytes_of > BYTES_MAX):
            yield pack
            pack, size = [], 0
        pack.append(operation)
        size += bytes_of
    if pack:
        yield pack
