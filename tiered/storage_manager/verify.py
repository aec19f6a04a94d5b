"""Verification of a remote segment against its manifest.

    missing object      Fault at -1
    another size        Fault at the first byte that is missing or too much; what is there is read
    a chunk, an index   Fault at its beginning in the object, if a second fetch is wrong as well

A store that cannot be asked is no fault of the segment: that error goes to the caller.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.batch_walk import BatchWalk
from tiered.format.object_keys import SegmentKeys
from tiered.object_store.base import ObjectStore
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.manifest_cache import OpenManifest
from tiered.storage_manager.read import SegmentReader
from tiered.storage_manager.workspace import Workspace
from tiered.tier import Fault

FAULTS_MAX: Final = 100
"""More are not reported of one segment."""


async def verify_segment(
    reader: SegmentReader,
    store: ObjectStore,
    metadata: RemoteLogSegmentMetadata,
    keys: SegmentKeys,
    workspace: Workspace,
) -> tuple[list[Fault], int]:
    """Read all of a segment, the manifest from the bucket too.

    Returns:
        What is wrong, in the order of manifest, log, indexes; and the bytes that were read.
    """
    try:
        opened, data = await reader.fetch_manifest(metadata, keys)
    except CorruptRemoteDataError as error:
        return [Fault(error.key, error.position, error.problem)], 0
    except ObjectNotFoundError as error:
        return [Fault(error.key, -1, "the object is missing")], 0
    manifest = opened.manifest
    faults: list[Fault] = []
    read = len(data)
    log_size = await _check_size(store, keys.log, manifest.log_size, faults)
    # Without sums of the chunks those of the batches are compared.
    walk = None if manifest.has_sums else BatchWalk()
    for number in range(manifest.chunk_index.count):
        chunk = manifest.chunk(number)
        if chunk.stored_position + chunk.stored_size > log_size or len(faults) >= FAULTS_MAX:
            break
        walk = await _verify_chunk(reader, opened, keys, number, workspace, walk, faults)
        read += chunk.stored_size
    if walk is not None and not faults:
        try:
            walk.finish()
        except ValueError as error:
            faults.append(Fault(keys.log, manifest.log_size, str(error)))
    size = await _check_size(store, keys.indexes, manifest.indexes_size, faults)
    for kind, entry in manifest.side_files.items():
        if entry.position + entry.stored_size <= size and len(faults) < FAULTS_MAX:
            await _note(faults, reader.read_side_files(opened, keys, [kind]))
            read += entry.stored_size
    return faults, read


async def _verify_chunk(
    reader: SegmentReader,
    opened: OpenManifest,
    keys: SegmentKeys,
    number: int,
    workspace: Workspace,
    walk: BatchWalk | None,
    faults: list[Fault],
) -> BatchWalk | None:
    """Read a chunk; gives back the walk to go on with, None once it has ended."""
    try:
        original = await reader.read_chunk(opened, keys, number, workspace)
        if walk is not None:
            await asyncio.to_thread(walk.feed, original)
        return walk
    except ValueError as error:
        position = opened.manifest.chunk(number).stored_position
        faults.append(Fault(keys.log, position, f"chunk {number}: {error}"))
    except CorruptRemoteDataError as error:
        faults.append(Fault(error.key, error.position, error.problem))
    except ObjectNotFoundError as error:
        faults.append(Fault(error.key, -1, "the object has vanished"))
        return walk
    return None


async def _note(faults: list[Fault], reading: Coroutine[Any, Any, object]) -> None:
    try:
        await reading
    except CorruptRemoteDataError as error:
        faults.append(Fault(error.key, error.position, error.problem))
    except ObjectNotFoundError as error:
        faults.append(Fault(error.key, -1, "the object has vanished"))


async def _check_size(store: ObjectStore, key: str, expected: int, faults: list[Fault]) -> int:
    info = await store.head(key)
    if info is None:
        faults.append(Fault(key, -1, "the object is missing"))
        return -1
    if info.size != expected:
        problem = f"the object has {info.size} bytes, {expected} were stored"
        faults.append(Fault(key, min(info.size, expected), problem))
    return info.size
