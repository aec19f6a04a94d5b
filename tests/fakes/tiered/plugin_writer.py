"""Objects as Aiven's tiered storage plugin for Kafka writes them, by its published format.

Nothing of ours that writes or reads such objects is used here: JSON, zstd, AES and the binary chunk
sizes are put together by hand. The log and the side files come from the caller, as a Kafka broker
hands them to the plugin.

Source: Aiven-Open/tiered-storage-for-apache-kafka, SegmentManifestV1.java, SegmentIndexesV1.java,
KafkaTypeSerdeModule.java, ChunkSizesBinaryCodec.java, TransformedChunksSerializer.java,
AesEncryptionProvider.java, ObjectKeyFactory.java.
"""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cramjam
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class PluginKey(NamedTuple):
    """The data key, what is authenticated with it, and how it stands in the manifest."""

    key: bytes
    aad: bytes
    wrapped: str


class PluginSegment(NamedTuple):
    """What the plugin is told of a segment; uuids as Kafka prints them."""

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    leader_epochs: Mapping[int, int]


INDEXES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")


def plugin_objects(
    segment: PluginSegment,
    log: bytes,
    indexes: Mapping[str, bytes],
    *,
    chunk_size: int,
    compression: bool = False,
    encryption: PluginKey | None = None,
) -> dict[str, bytes]:
    """The three objects of one segment, by their keys without prefix."""
    ivs = iter(range(1, 1 << 20))

    def encrypted(piece: bytes) -> bytes:
        if encryption is None:
            return piece
        iv = next(ivs).to_bytes(12, "big")
        return iv + AESGCM(encryption.key).encrypt(iv, piece, encryption.aad)

    stored = []
    for at in range(0, len(log), chunk_size):
        piece = log[at : at + chunk_size]
        if compression:
            piece = bytes(cramjam.zstd.compress(piece))
        stored.append(encrypted(piece))
    chunk_index: dict[str, Any] = {
        "type": "variable" if compression else "fixed",
        "originalChunkSize": chunk_size,
        "originalFileSize": len(log),
    }
    sizes = [len(piece) for piece in stored]
    if compression:
        packed = bytes(cramjam.zstd.compress(_sizes(sizes)))
        chunk_index["transformedChunks"] = base64.b64encode(packed).decode()
    else:
        chunk_index |= {"transformedChunkSize": sizes[0], "finalTransformedChunkSize": sizes[-1]}
    body = b""
    places: dict[str, Any] = {}
    for name in INDEXES:
        if name not in indexes:
            places[name] = None
            continue
        piece = encrypted(indexes[name]) if indexes[name] else b""
        places[name] = {"position": len(body), "size": len(piece)}
        body += piece
    manifest: dict[str, Any] = {
        "version": "1",
        "chunkIndex": chunk_index,
        "segmentIndexes": places,
        "compression": compression,
    }
    if encryption is not None:
        aad = base64.b64encode(encryption.aad).decode()
        manifest["encryption"] = {"dataKey": encryption.wrapped, "aad": aad}
    manifest["remoteLogSegmentMetadata"] = {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": segment.topic_id,
                "topicPartition": {"topic": segment.topic, "partition": segment.partition},
            },
            "id": segment.segment_id,
        },
        "startOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "maxTimestampMs": segment.max_timestamp_ms,
        "brokerId": 0,
        "eventTimestampMs": segment.max_timestamp_ms + 1000,
        "segmentLeaderEpochs": {str(epoch): at for epoch, at in segment.leader_epochs.items()},
    }
    stem = (
        f"{segment.topic}-{segment.topic_id}/{segment.partition}/"
        f"{segment.start_offset:020d}-{segment.segment_id}"
    )
    return {
        f"{stem}.log": b"".join(stored),
        f"{stem}.indexes": body,
        f"{stem}.rsm-manifest": json.dumps(manifest, separators=(",", ":")).encode(),
    }


def _sizes(sizes: Sequence[int]) -> bytes:
    if len(sizes) == 1:
        return struct.pack(">ii", 1, sizes[0])
    base = min(sizes[:-1])
    width = max(1, (max(sizes[:-1]) - base).bit_length() + 7 >> 3)
    values = b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    return struct.pack(">iib", len(sizes), base, width) + values + struct.pack(">i", sizes[-1])
