"""Manifest of a remote segment: the object that makes the segment exist and describes it.

JSON, UTF-8, written as Aiven's version "1" is, so that its plugin reads our segments:

    version                   "1"
    chunkIndex                see `chunk_index`
    segmentIndexes            of each side file in the `.indexes` object {"position","size"}, as
                              stored; "transaction" is null when nothing was aborted
    compression               whether the chunks are zstd frames (side files never are)
    encryption                {"dataKey","aad"}, absent when nothing is encrypted; see `key_ring`
    remoteLogSegmentMetadata  Kafka's, to be read by operators; Aiven's reader skips it: so the one
                              place where more may stand without breaking it:
        varve                 ours, below

    varve.version             1; a reader refuses greater ones
    varve.clusterId           of the broker that copied it
    varve.partitions          of the topic, then
    varve.overrides           the topic's own settings, so that a bucket alone gives it back
    varve.txnIndexEmpty       of the metadata, as Kafka's has no room for it here
    varve.customMetadata      likewise, hex or null
    varve.createdMs           when it was written
    varve.software            by which version
    varve.records             how many the log has, as its batches' headers say: also aborted ones,
                              no transaction markers; missing where they were not counted
    varve.emptyFrom           offsets from here up to the segment's start have no record in the log
                              that it was copied from: compaction had left segments without any, of
                              which nothing is copied; missing where there were none
    varve.chunkCrcs           base64 of one u32 a chunk: CRC-32C of its original bytes
    varve.storedCrcs          the same of its stored bytes
    varve.sideFiles           of each side file {"size","crc32c","storedCrc32c"}: original size,
                              CRC-32C of the original and of the stored bytes
    varve.crc32c              of the manifest itself without these eight hex digits

The last one stands at the very end, so a manifest closes with `"crc32c":"` 8 digits `"}}}`.

A manifest without our part was written by Aiven's plugin in a Kafka broker, and is read as well. It
has no sums (`batch_walk` is what there is to compare), and says nothing of the topic's settings:
what is restored from such manifests alone is kept until an operator sets its retention. Rewritten,
in the index cache or when keys are rotated, it has our part with nulls for what is not known.

Source: Aiven-Open/tiered-storage-for-apache-kafka, SegmentManifestV1.java, SegmentIndexesV1.java,
KafkaTypeSerdeModule.java.
"""

import base64
import binascii
import json
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from protocol.records.batch import crc32c
from storage.types.uuid_text import format_uuid, parse_uuid
from tiered.errors import CorruptRemoteDataError
from tiered.format.chunk_index import Chunk, ChunkIndex, chunk_index_from_json
from tiered.format.encryption import OVERHEAD
from tiered.format.key_ring import DataKeyEnvelope
from tiered.format.manifest_layout import crc_of, recorded_crc, seal
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.tier import SideFile, TopicFacts

MANIFEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""Largest manifest that is read; one of 2**18 chunks has less than 4 MiB."""

SIDE_FILES_BYTES_MAX: Final = 64 * 1024 * 1024
"""Most bytes of a segment's side files that are copied or read; a full offset index of 1 GiB of log
has 2 MiB."""

VERSION: Final = "1"
VARVE_VERSION: Final = 1

_Kind = TypeVar("_Kind")


UNKNOWN: Final = -1
"""In place of a sum or a count that is not recorded."""

UNKNOWN_OVERRIDES: Final = {"retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic whose manifests have none: with Kafka's defaults its history would expire
before it could be read."""


class StoredSideFile(NamedTuple):
    """A side file in the `.indexes` object: where, how long there and before, and its sums.

    `crc` and `stored_crc` may be `UNKNOWN`.
    """

    position: int
    stored_size: int
    size: int
    crc: int
    stored_crc: int


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """See the module.

    Attributes:
        metadata: As rebuilt, in state COPY_SEGMENT_FINISHED.
        chunk_index: Of the log.
        chunk_crcs, stored_crcs: CRC-32C of each chunk, original and stored; None: unknown, as
            another program wrote the segment.
        side_files: In the order they are stored; without TRANSACTION when nothing was aborted.
        compression: The chunks are zstd frames.
        encryption: The wrapped data key; None: not encrypted.
        topic: Of the topic, and whose cluster's.
        created_ms: When it was written.
        software: By which version.
        records: In the log, without transaction markers; `UNKNOWN`: not counted.
        empty_from: From where up to its start the log had no record; None: it had, or unknown.
    """

    metadata: RemoteLogSegmentMetadata
    chunk_index: ChunkIndex
    chunk_crcs: "array[int] | None"
    stored_crcs: "array[int] | None"
    side_files: Mapping[SideFile, StoredSideFile]
    compression: bool
    encryption: DataKeyEnvelope | None
    topic: TopicFacts
    created_ms: int
    software: str
    records: int = UNKNOWN
    empty_from: int | None = None

    @property
    def log_size(self) -> int:
        """Bytes of the stored `.log` object."""
        return self.chunk_index.stored_file_size

    @property
    def indexes_size(self) -> int:
        """Bytes of the stored `.indexes` object."""
        return sum(entry.stored_size for entry in self.side_files.values())

    @property
    def has_sums(self) -> bool:
        """Varve wrote it, with a sum for everything."""
        return self.chunk_crcs is not None

    def with_side_sums(self, parts: Mapping[SideFile, bytes]) -> "SegmentManifest":
        """With the sums of side files that were read, in place of unknown ones."""
        side_files = {
            kind: entry._replace(crc=crc32c(parts[kind])) if entry.crc == UNKNOWN else entry
            for kind, entry in self.side_files.items()
            if kind in parts
        }
        return replace(self, side_files={**self.side_files, **side_files})

    def chunk(self, number: int) -> Chunk:
        """A chunk by its number; IndexError when there is no such one."""
        return self.chunk_index.chunk(number)

    def to_json(self) -> bytes:
        """The object's bytes."""
        fields: dict[str, Any] = {
            "version": VERSION,
            "chunkIndex": self.chunk_index.to_json(),
            "segmentIndexes": {
                kind.value: (
                    {"position": entry.position, "size": entry.stored_size}
                    if (entry := self.side_files.get(kind)) is not None
                    else None
                )
                for kind in SideFile
            },
            "compression": self.compression,
        }
        if self.encryption is not None:
            fields["encryption"] = self.encryption.to_json()
        fields["remoteLogSegmentMetadata"] = _metadata_to_json(self.metadata) | {
            "varve": self._varve_to_json()
        }
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
        return seal(text[: -len('"crc32c":""}}}')])

    def _varve_to_json(self) -> dict[str, Any]:
        custom = self.metadata.custom_metadata
        return {
            "version": VARVE_VERSION,
            "clusterId": self.topic.cluster_id,
            "partitions": self.topic.partitions,
            "overrides": dict(self.topic.overrides),
            "txnIndexEmpty": self.metadata.txn_index_empty,
            "customMetadata": None if custom is None else custom.hex(),
            "createdMs": self.created_ms,
            "software": self.software,
            **({} if self.records == UNKNOWN else {"records": self.records}),
            **({} if self.empty_from is None else {"emptyFrom": self.empty_from}),
            "chunkCrcs": _pack_crcs(self.chunk_crcs),
            "storedCrcs": _pack_crcs(self.stored_crcs),
            "sideFiles": {
                kind.value: {
                    "size": entry.size,
                    "crc32c": _or_none(entry.crc),
                    "storedCrc32c": _or_none(entry.stored_crc),
                }
                for kind, entry in self.side_files.items()
            },
            "crc32c": "",
        }

    @classmethod
    def from_json(cls, data: bytes, key: str) -> "SegmentManifest":
        """What `to_json` gave.

        Args:
            data: The whole object.
            key: Its name, for the error.

        Raises:
            CorruptRemoteDataError: It is something else, damaged, or of a newer version; the text
                says which. Position: of the first bad byte where JSON reports it, else -1.
        """
        recorded = recorded_crc(data)
        if recorded is not None and crc_of(data) != recorded:
            raise CorruptRemoteDataError(key, -1, "the manifest fails its CRC")
        fields = _parse(data, key)
        if fields.get("version") != VERSION:
            _refuse_version(key, "manifest", fields.get("version"))
        try:
            varve = fields["remoteLogSegmentMetadata"].get("varve")
            version = VARVE_VERSION if varve is None else varve["version"]
        except (KeyError, TypeError, AttributeError):
            problem = "the manifest does not describe its segment"
            raise CorruptRemoteDataError(key, -1, problem) from None
        if version != VARVE_VERSION:
            _refuse_version(key, "Varve's part of the manifest", version)
        if varve is not None and recorded is None:
            raise CorruptRemoteDataError(key, -1, "the manifest does not end with its CRC")
        try:
            return _foreign(fields) if varve is None else _from_fields(fields, varve)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # The CRC fits, so this is a mistake of the writer, or a forgery.
            problem = f"the manifest is malformed: {type(error).__name__}: {error}"
            raise CorruptRemoteDataError(key, -1, problem[:500]) from error


def _parse(data: bytes, key: str) -> dict[str, Any]:
    if len(data) > MANIFEST_BYTES_MAX:
        raise CorruptRemoteDataError(key, -1, f"a manifest of {len(data)} bytes is too large")
    try:
        fields = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise CorruptRemoteDataError(key, error.start, "the manifest is not UTF-8") from error
    except json.JSONDecodeError as error:
        problem = f"the manifest is not JSON: {error.msg}"
        raise CorruptRemoteDataError(key, error.pos, problem) from error
    except RecursionError as error:
        raise CorruptRemoteDataError(key, -1, "the manifest is nested too deep") from error
    if not isinstance(fields, dict):
        raise CorruptRemoteDataError(key, 0, "the manifest is not a JSON object")
    return fields


def _refuse_version(key: str, what: str, version: object) -> NoReturn:
    known = VERSION if what == "manifest" else VARVE_VERSION
    problem = (
        f"{what} has version {str(version)[:40]!r}, this program reads {known!r}: it was written"
        " by a newer Varve or by another program"
    )
    raise CorruptRemoteDataError(key, -1, problem)


def _from_fields(fields: Mapping[str, Any], varve: Mapping[str, Any]) -> SegmentManifest:
    chunk_index = chunk_index_from_json(fields["chunkIndex"])
    encryption = fields.get("encryption")
    custom = varve["customMetadata"]
    return SegmentManifest(
        metadata=_metadata_from_json(
            fields["remoteLogSegmentMetadata"],
            segment_size_bytes=chunk_index.original_file_size,
            custom_metadata=None if custom is None else bytes.fromhex(custom),
            txn_index_empty=_typed(varve, "txnIndexEmpty", bool),
        ),
        chunk_index=chunk_index,
        chunk_crcs=_unpack_crcs(varve["chunkCrcs"], chunk_index.count),
        stored_crcs=_unpack_crcs(varve["storedCrcs"], chunk_index.count),
        side_files=_side_files_from_json(fields["segmentIndexes"], varve["sideFiles"]),
        compression=_typed(fields, "compression", bool),
        encryption=None if encryption is None else DataKeyEnvelope.from_json(encryption),
        topic=TopicFacts(
            partitions=_number(varve, "partitions"),
            overrides={str(name): str(text) for name, text in varve["overrides"].items()},
            cluster_id=_typed(varve, "clusterId", str),
        ),
        created_ms=_number(varve, "createdMs"),
        software=_typed(varve, "software", str),
        records=_number(varve, "records") if "records" in varve else UNKNOWN,
        empty_from=_number(varve, "emptyFrom") if "emptyFrom" in varve else None,
    )


def _foreign(fields: Mapping[str, Any]) -> SegmentManifest:
    """Of another program."""
    chunk_index = chunk_index_from_json(fields["chunkIndex"])
    encryption = fields.get("encryption")
    stored = fields["segmentIndexes"]
    metadata = _metadata_from_json(
        fields["remoteLogSegmentMetadata"],
        segment_size_bytes=chunk_index.original_file_size,
        custom_metadata=None,
        txn_index_empty=stored[SideFile.TRANSACTION.value] is None,
    )
    overhead = 0 if encryption is None else OVERHEAD
    sums = {
        kind.value: {
            # Of nothing, nothing is stored, also where the rest is encrypted.
            "size": max(_number(stored[kind.value], "size") - overhead, 0),
            "crc32c": None,
            "storedCrc32c": None,
        }
        for kind in SideFile
        if stored[kind.value] is not None
    }
    return SegmentManifest(
        metadata=metadata,
        chunk_index=chunk_index,
        chunk_crcs=None,
        stored_crcs=None,
        side_files=_side_files_from_json(stored, sums),
        compression=_typed(fields, "compression", bool),
        encryption=None if encryption is None else DataKeyEnvelope.from_json(encryption),
        topic=TopicFacts(0, UNKNOWN_OVERRIDES, ""),
        created_ms=max(metadata.event_timestamp_ms, 0),
        software="",
    )


def _or_none(crc: int) -> int | None:
    return None if crc == UNKNOWN else crc


def _side_files_from_json(
    stored: Mapping[str, Any], sums: Mapping[str, Any]
) -> dict[SideFile, StoredSideFile]:
    side_files = {}
    position = 0
    for kind in SideFile:
        if stored[kind.value] is None and kind is SideFile.TRANSACTION:
            continue
        entry = StoredSideFile(
            _number(stored[kind.value], "position"),
            _number(stored[kind.value], "size"),
            _number(sums[kind.value], "size"),
            *(
                UNKNOWN if sums[kind.value][name] is None else _number(sums[kind.value], name)
                for name in ("crc32c", "storedCrc32c")
            ),
        )
        if entry.position != position:
            raise ValueError(f"{kind.value} lies at {entry.position}, not {position}")
        position += entry.stored_size
        side_files[kind] = entry
    return side_files


def _metadata_to_json(metadata: RemoteLogSegmentMetadata) -> dict[str, Any]:
    partition = metadata.partition
    return {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": format_uuid(partition.topic_id),
                "topicPartition": {"topic": partition.topic, "partition": partition.partition},
            },
            "id": format_uuid(metadata.id),
        },
        "startOffset": metadata.start_offset,
        "endOffset": metadata.end_offset,
        "maxTimestampMs": metadata.max_timestamp_ms,
        "brokerId": metadata.broker_id,
        "eventTimestampMs": metadata.event_timestamp_ms,
        "segmentLeaderEpochs": {
            str(epoch): offset for epoch, offset in metadata.segment_leader_epochs
        },
    }


def _metadata_from_json(
    fields: Mapping[str, Any],
    *,
    segment_size_bytes: int,
    custom_metadata: bytes | None,
    txn_index_empty: bool,
) -> RemoteLogSegmentMetadata:
    segment_id = fields["remoteLogSegmentId"]
    partition = segment_id["topicIdPartition"]
    epochs = tuple(
        SegmentEpoch(int(epoch), _number(fields["segmentLeaderEpochs"], epoch))
        for epoch in fields["segmentLeaderEpochs"]
    )
    if not epochs or any(a >= b for pair in pairwise(epochs) for a, b in zip(*pair, strict=True)):
        raise ValueError("segmentLeaderEpochs are not ascending, or there is none")
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(
            TopicIdPartition(
                parse_uuid(partition["topicId"]),
                _typed(partition["topicPartition"], "topic", str),
                _number(partition["topicPartition"], "partition"),
            ),
            parse_uuid(segment_id["id"]),
        ),
        start_offset=_number(fields, "startOffset"),
        end_offset=_number(fields, "endOffset"),
        max_timestamp_ms=_number(fields, "maxTimestampMs", least=-1),
        broker_id=_number(fields, "brokerId", least=-1),
        event_timestamp_ms=_number(fields, "eventTimestampMs", least=-1),
        segment_size_bytes=segment_size_bytes,
        segment_leader_epochs=epochs,
        state=SegmentState.COPY_SEGMENT_FINISHED,
        custom_metadata=custom_metadata,
        txn_index_empty=txn_index_empty,
    )


def _pack_crcs(crcs: "array[int] | None") -> str | None:
    if crcs is None:
        return None
    ordered = array("I", crcs)
    if sys.byteorder == "little":
        ordered.byteswap()
    return base64.b64encode(ordered.tobytes()).decode()


def _unpack_crcs(text: str | None, count: int) -> "array[int] | None":
    if text is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"checksums are not base64: {error}") from error
    if len(raw) != 4 * count:
        raise ValueError(f"{len(raw)} bytes of checksums for {count} chunks")
    crcs = array("I", raw)
    if sys.byteorder == "little":
        crcs.byteswap()
    return crcs


def _number(fields: Mapping[str, Any], name: str, least: int = 0) -> int:
    value = _typed(fields, name, int)
    if not least <= value < 1 << 63:
        raise ValueError(f"{name} is {value}")
    return value


def _typed(fields: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind:
    value = fields[name]
    if type(value) is not kind:
        raise TypeError(f"{name} is {str(value)[:40]!r}, not of type {kind.__name__}")
    return value
