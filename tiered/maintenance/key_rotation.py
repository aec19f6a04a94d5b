"""Rotation of key pairs: every data key in the bucket is rewrapped, then the old pair can go.

    add the new pair, make it active          new segments use it from here on
    rewrap, page after page, to the end       manifests are written again, chunks stay as they are
    take the old pair away                    every segment still decrypts

What is wrapped by the active pair already is left alone, so stopping anywhere and beginning again
is always right; the continuation of a page only saves reading manifests again. A manifest that
fails is reported and skipped, and until there is none the old pair is still needed.

A segment may be deleted while its manifest is written again, and then a manifest would be there
without its log. So the log is checked after the write, and the manifest removed if there is none;
what slips through between two deletions of one segment is an orphaned object, and garbage
collection removes it. Brokers keep data keys, not wrapped ones, in memory, and ask the
bucket when the manifest on their disk is wrapped by a pair they do not have.
"""

import logging
from dataclasses import dataclass, replace
from typing import Final

from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError, RemoteStorageError
from tiered.format.key_ring import KeyRing
from tiered.format.manifest import MANIFEST_BYTES_MAX, SegmentManifest
from tiered.format.object_keys import ObjectKeys, ObjectSuffix, SegmentKey
from tiered.object_store.base import ObjectStore
from tiered.tier import Fault

_log = logging.getLogger(__name__)

PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class RewrapPage:
    """What was done with a page of a listing.

    Attributes:
        rewrapped: Manifests that were written again.
        active: Those that had the active pair already.
        plain: Those of segments that are not encrypted.
        faults: Those that could not be done, and why; at most a page.
        continuation: Where the next page begins; None: this was the last.
    """

    rewrapped: int
    active: int
    plain: int
    faults: tuple[Fault, ...]
    continuation: str | None


async def rewrap_page(
    store: ObjectStore, key_ring: KeyRing, prefix: str = "", continuation: str | None = None
) -> RewrapPage:
    """Go through one page of the bucket.

    Args:
        store: The bucket.
        key_ring: With the private half of every pair that is in use, and an active pair.
        prefix: Of the keys: `ObjectKeys.topic_prefix` or `.partition_prefix`, "" for all.
        continuation: Of the page before, None at the beginning.

    Raises:
        RemoteStorageError: The store cannot be asked, or there is no active pair.
    """
    if not key_ring.active_id:
        raise RemoteStorageError("no key pair is the active one")
    page = await store.list(prefix, continuation=continuation, limit=PAGE)
    keys = ObjectKeys()
    counts = {"rewrapped": 0, "active": 0, "plain": 0}
    faults = []
    for info in page.objects:
        parsed = keys.parse(info.key)
        if parsed is None or parsed.suffix is not ObjectSuffix.MANIFEST:
            continue
        try:
            counts[await _rewrap(store, key_ring, keys, info.key, parsed)] += 1
        except ObjectNotFoundError:
            # Deleted since it was listed.
            continue
        except CorruptRemoteDataError as error:
            faults.append(Fault(error.key, error.position, error.problem))
        except _UnwrapError as error:
            faults.append(Fault(info.key, -1, str(error)))
    return RewrapPage(**counts, faults=tuple(faults), continuation=page.continuation)


class _UnwrapError(Exception):
    """The key ring cannot unwrap it: an error of this manifest, not of the store."""


async def _rewrap(
    store: ObjectStore, key_ring: KeyRing, keys: ObjectKeys, key: str, parsed: SegmentKey
) -> str:
    manifest = SegmentManifest.from_json(await store.get(key, max_bytes=MANIFEST_BYTES_MAX), key)
    if manifest.encryption is None:
        return "plain"
    if manifest.encryption.pair_id == key_ring.active_id:
        return "active"
    try:
        envelope = key_ring.rewrap(manifest.encryption)
    except RemoteStorageError as error:
        raise _UnwrapError(str(error)) from error
    await store.put(key, replace(manifest, encryption=envelope).to_json())
    log = keys.keys_of(parsed.segment_id, parsed.start_offset).log
    if await store.head(log) is None:
        _log.info("remote segment was deleted while its data key was rewrapped key=%s", key)
        await store.delete([key])
    return "rewrapped"
