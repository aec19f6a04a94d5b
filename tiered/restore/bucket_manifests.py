"""The manifests of a bucket: listed, read, and held against the objects they name."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Final

from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.manifest import SegmentManifest
from tiered.format.manifest_repair import repair_manifest
from tiered.format.object_keys import ObjectKeys, ObjectSuffix
from tiered.tier import Tier

_KEYS: Final = ObjectKeys()

READS_AT_A_TIME: Final = 16
"""Manifests that are read together."""


async def read_manifests(
    tier: Tier,
    problems: list[str],
    topics: Collection[str] | None = None,
    repaired: dict[str, bytes] | None = None,
    objects: dict[str, int] | None = None,
) -> list[SegmentManifest]:
    """Manifests of whole segments, in the order of their names.

    Args:
        tier: Reads the bucket.
        problems: Gets those that are damaged, and segments that are not whole.
        topics: Only these; None: all.
        repaired: Gets those that could be repaired, by name; None: they are problems.
        objects: Gets the size of every object that was listed, by name.

    Raises:
        RemoteStorageError: The bucket cannot be listed, or an object not be read now.
    """
    sizes: dict[str, int] = {}
    names: list[str] = []
    async for key, size in _listing(tier, topics):
        if objects is not None:
            objects[key] = size
        parsed = _KEYS.parse(key)
        if parsed is None or (
            topics is not None and parsed.segment_id.partition.topic not in topics
        ):
            continue
        if parsed.suffix is ObjectSuffix.MANIFEST:
            names.append(key)
        else:
            sizes[key] = size
    found: list[SegmentManifest] = []
    for start in range(0, len(names), READS_AT_A_TIME):
        part = names[start : start + READS_AT_A_TIME]
        read = await asyncio.gather(
            *(_read_manifest(tier, key, problems, repaired) for key in part)
        )
        found += [one for one in read if one is not None and _is_whole(one, sizes, problems)]
    return found


async def _listing(tier: Tier, topics: Collection[str] | None) -> AsyncIterator[tuple[str, int]]:
    prefixes = [""] if topics is None else sorted(f"{topic}-" for topic in topics)
    for prefix in prefixes:
        continuation: str | None = None
        while True:
            page = await tier.list_objects(prefix, continuation)
            for one in page.objects:
                yield one.key, one.size
            continuation = page.continuation
            if continuation is None:
                break


async def _read_manifest(
    tier: Tier, key: str, problems: list[str], repaired: dict[str, bytes] | None
) -> SegmentManifest | None:
    try:
        data = await tier.get_object(key)
    except ObjectNotFoundError:
        return None  # deleted meanwhile
    try:
        return SegmentManifest.from_json(data, key)
    except CorruptRemoteDataError as error:
        mended = None if repaired is None else repair_manifest(data, key)
        if mended is None or repaired is None:
            problems.append(f"{error.key}: {error.problem}")
            return None
        manifest, repaired[key] = mended
        return manifest


def _is_whole(one: SegmentManifest, sizes: dict[str, int], problems: list[str]) -> bool:
    keys = _KEYS.segment_keys(one.metadata)
    for key, size in ((keys.log, one.log_size), (keys.indexes, one.indexes_size)):
        listed = sizes.get(key)
        if listed != size:
            there = "is missing" if listed is None else f"has {listed} bytes"
            problems.append(f"{key} {there}, its manifest says {size}")
            return False
    return True
