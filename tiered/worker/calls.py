"""Codec of each call of `Tier` on the socket: what goes into a frame's head, what is its data.

    call             arguments in the head                  data           result; its data
    copy_segment     metadata, files, topic                 leader epochs  [bytes, custom metadata]
    fetch_indexes    metadata, directory, stem                             [4 numbers]
    fetch_chunk      metadata, manifest, chunk, path                       [3 numbers, reference?]
    refer_to_chunks  metadata, manifest, chunks, directory                 -; what was found, JSON
    fetch_side_file  metadata, kind                                        -; the file
    delete_segment   metadata
    is_complete      metadata                                              true or false
    verify_segment   metadata                                              -; faults, JSON
    list_objects     prefix, continuation                                  -; the page, JSON
    delete_objects                                          keys, JSON
    list_uploads     prefix                                                -; uploads, JSON
    abort_upload     key, upload id, started ms
    put_object       key                                    the object
    get_object       key                                                   -; the object

Lists are data, since a page of a thousand long keys is larger than a frame may be.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tiered.object_store.base import ObjectInfo, ObjectPage, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import (
    ChunkResult,
    CopyResult,
    Fault,
    FoundChunk,
    FoundChunks,
    IndexesResult,
    SegmentFiles,
    SideFile,
    TopicFacts,
)

Arguments = list[Any]
Encoded = tuple[Any, bytes]


class CallCodec(NamedTuple):
    """Of one method. Decoding raises ValueError, KeyError, TypeError, IndexError on other bytes."""

    encode: Callable[..., tuple[Arguments, bytes]]
    decode: Callable[[Arguments, bytes], tuple[Any, ...]]
    encode_result: Callable[[Any], Encoded]
    decode_result: Callable[[Any, bytes], Any]


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _nothing(_: Any) -> Encoded:
    return None, b""


def _as_nothing(_: Any, __: bytes) -> None:
    return None


def _numbers(result: Sequence[int]) -> Encoded:
    return list(result), b""


def _bytes(result: bytes) -> Encoded:
    return None, result


def _as_bytes(_: Any, data: bytes) -> bytes:
    return data


def _of_segment(metadata: RemoteLogSegmentMetadata, *more: Any) -> tuple[Arguments, bytes]:
    return [metadata.as_json(), *more], b""


def _as_segment(arguments: Arguments, _: bytes) -> tuple[Any, ...]:
    metadata, *more = arguments
    return RemoteLogSegmentMetadata.from_json(metadata), *more


def _texts(*arguments: str | None) -> tuple[Arguments, bytes]:
    return list(arguments), b""


def _as_texts(arguments: Arguments, _: bytes) -> tuple[Any, ...]:
    return tuple(arguments)


def _encode_copy(
    metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
) -> tuple[Arguments, bytes]:
    paths = [
        files.log,
        files.offset_index,
        files.time_index,
        files.producer_snapshot,
        files.transaction_index,
    ]
    facts = [topic.partitions, dict(topic.overrides), topic.cluster_id]
    return [metadata.as_json(), paths, facts, files.empty_from], files.leader_epochs


def _decode_copy(arguments: Arguments, data: bytes) -> tuple[Any, ...]:
    metadata, paths, (partitions, overrides, cluster_id), empty_from = arguments
    log, offset_index, time_index, producer_snapshot, transaction_index = paths
    return (
        RemoteLogSegmentMetadata.from_json(metadata),
        SegmentFiles(
            log,
            offset_index,
            time_index,
            producer_snapshot,
            transaction_index,
            leader_epochs=data,
            empty_from=empty_from,
        ),
        TopicFacts(partitions, overrides, cluster_id),
    )


def _encode_copied(result: CopyResult) -> Encoded:
    custom = result.custom_metadata
    return [result.uploaded_bytes, None if custom is None else custom.hex()], b""


def _decode_copied(result: Any, _: bytes) -> CopyResult:
    uploaded_bytes, custom = result
    return CopyResult(uploaded_bytes, None if custom is None else bytes.fromhex(custom))


def _encode_side_file(
    metadata: RemoteLogSegmentMetadata, kind: SideFile
) -> tuple[Arguments, bytes]:
    return [metadata.as_json(), kind.value], b""


def _decode_side_file(arguments: Arguments, _: bytes) -> tuple[Any, ...]:
    metadata, kind = arguments
    return RemoteLogSegmentMetadata.from_json(metadata), SideFile(kind)


def _encode_page(page: ObjectPage) -> Encoded:
    return None, _dump([page.objects, page.continuation])


def _decode_page(_: Any, data: bytes) -> ObjectPage:
    objects, continuation = json.loads(data)
    return ObjectPage([ObjectInfo(*found) for found in objects], continuation)


def _encode_found(found: FoundChunks) -> Encoded:
    return None, _dump(found)


def _decode_found(_: Any, data: bytes) -> FoundChunks:
    path, size, modified_ns, chunks = json.loads(data)
    return FoundChunks(path, size, modified_ns, [FoundChunk(*chunk) for chunk in chunks])


def _rows(result: Sequence[Any]) -> Encoded:
    return None, _dump(list(result))


_SEGMENT: Final = CallCodec(_of_segment, _as_segment, _nothing, _as_nothing)

CALLS: Final[Mapping[str, CallCodec]] = {
    "copy_segment": CallCodec(_encode_copy, _decode_copy, _encode_copied, _decode_copied),
    "fetch_indexes": _SEGMENT._replace(
        encode_result=_numbers, decode_result=lambda result, _: IndexesResult(*result)
    ),
    "fetch_chunk": _SEGMENT._replace(
        encode_result=_numbers, decode_result=lambda result, _: ChunkResult(*result)
    ),
    "refer_to_chunks": _SEGMENT._replace(encode_result=_encode_found, decode_result=_decode_found),
    "fetch_side_file": CallCodec(_encode_side_file, _decode_side_file, _bytes, _as_bytes),
    "delete_segment": _SEGMENT,
    "is_complete": _SEGMENT._replace(
        encode_result=lambda result: (bool(result), b""), decode_result=lambda result, _: result
    ),
    "verify_segment": _SEGMENT._replace(
        encode_result=_rows,
        decode_result=lambda _, data: [Fault(*row) for row in json.loads(data)],
    ),
    "list_objects": CallCodec(_texts, _as_texts, _encode_page, _decode_page),
    "delete_objects": CallCodec(
        lambda keys: ([], _dump(list(keys))),
        lambda _, data: (json.loads(data),),
        _nothing,
        _as_nothing,
    ),
    "list_uploads": CallCodec(
        _texts,
        _as_texts,
        _rows,
        lambda _, data: [PendingUpload(*row) for row in json.loads(data)],
    ),
    "abort_upload": CallCodec(
        lambda upload: (list(upload), b""),
        lambda arguments, _: (PendingUpload(*arguments),),
        _nothing,
        _as_nothing,
    ),
    "put_object": CallCodec(
        lambda key, data: ([key], bytes(data)),
        lambda arguments, data: (*arguments, data),
        _nothing,
        _as_nothing,
    ),
    "get_object": CallCodec(_texts, _as_texts, _bytes, _as_bytes),
}
"""Every awaited method of `Tier` but `close`."""
