"""Batches that unpack to a thousand times their size, and batches that are none."""

import struct
import time
import zlib
from pathlib import Path

import cramjam
import lz4.frame
import pytest

from broker.requests.single_batch import check_single_batch
from broker.runtime.errors import ApiError
from protocol.headers import encode_request_header
from protocol.messages import create_topics, produce
from protocol.records.batch import HEADER, update_crc
from protocol.records.builder import build_batch
from storage.errors import CorruptBatchError
from tests.system.hostile.conftest import Note
from tests.system.hostile.probe import HANG_MS
from tests.system.hostile.server import MIB, Target, running

MESSAGE_MAX = 1_048_588
"""`max.message.bytes` by default."""

TOPICS = {
    "walked": {"record.validation": "full"},
    "compacted": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime", "record.validation": "full"},
    "packed": {"compression.type": "zstd"},
    "unpacked": {"compression.type": "uncompressed"},
    "plain": {},
}
ZEROS = bytes(1 << 30)


def xerial(block: bytes, times: int) -> bytes:
    head = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"
    return head + (struct.pack(">i", len(block)) + block) * times


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(memoryview(ZEROS)[: 900 * MIB]) + packer.flush()


def bombs() -> dict[str, tuple[int, bytes]]:
    """Name -> (codec, block): at most `max.message.bytes` small, 100 MB to 1 GB large, or lies."""
    snappy_20 = bytes(cramjam.snappy.compress_raw(ZEROS[: 20 * MIB]))
    snappy_64k = bytes(cramjam.snappy.compress_raw(ZEROS[:65_536]))
    lz4_200 = lz4.frame.compress(ZEROS[: 200 * MIB], block_linked=False)
    zstd_1000 = bytes(cramjam.zstd.compress(ZEROS, 3))
    small_gzip = zlib.compress(ZEROS[:MIB], 9, wbits=31)
    return {
        "gzip": (1, gzip_bomb()),
        "gzip members": (1, small_gzip * 900),
        "snappy raw": (2, snappy_20),
        "snappy xerial": (2, xerial(snappy_64k, 300)),
        "snappy claim": (2, b"\xff\xff\xff\xff\x07" + snappy_64k[3:]),
        "snappy magic only": (2, b"\x82SNAPPY\0" * 130_000),
        "lz4": (3, lz4_200),
        "lz4 frames": (3, lz4.frame.compress(b"") * 60_000),
        "zstd": (4, zstd_1000),
        "zstd frames": (4, bytes(cramjam.zstd.compress(b"", 3)) * 90_000),
        "zstd skippable": (4, struct.pack("<II", 0x184D2A50, 0) * 120_000),
        "noise": (4, bytes(range(256)) * 4000),
    }


def batch_of(codec: int, block: bytes, count: int = 1) -> bytes:
    """A batch whose header is right and whose block is the bomb."""
    head = build_batch([(b"k", b"v", (), int(time.time() * 1000))], codec=codec)
    fields = list(HEADER.unpack_from(head))
    fields[1] = HEADER.size - 12 + len(block)
    fields[6] = count - 1
    fields[12] = count
    batch = bytearray(HEADER.pack(*fields)) + block
    update_crc(memoryview(batch), 0, len(batch))
    return bytes(batch)


def ask(target: Target, key: int, version: int, body: bytes) -> bytes:
    with target.connect() as connection:
        frame = encode_request_header(key, version, 1, "c") + body
        connection.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(_exactly(connection, 4), "big")
        return _exactly(connection, size)


def _exactly(connection: object, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))  # type: ignore[attr-defined]  # a socket
        assert chunk, "the broker closed the connection"
        data += chunk
    return data


def produce_to(target: Target, topic: str, batch: bytes) -> int:
    """The error code of producing one batch."""
    data = produce.PartitionProduceData(index=0, records=memoryview(batch))
    request = produce.ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])],
    )
    answer = ask(target, 0, 9, produce.encode_request(request, 9))
    response = produce.decode_response(memoryview(answer)[5:], 9)
    return response.responses[0].partition_responses[0].error_code


def create(target: Target) -> None:
    topics = [
        create_topics.CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[
                create_topics.CreatableTopicConfig(name=key, value=value)
                for key, value in settings.items()
            ],
        )
        for name, settings in TOPICS.items()
    ]
    request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000)
    answer = ask(target, 19, 5, create_topics.encode_request(request, 5))
    response = create_topics.decode_response(memoryview(answer)[5:], 5)
    assert [topic.error_code for topic in response.topics] == [0] * len(topics)


def test_bombs_cost_twice_max_message_bytes_and_little_time(tmp_path: Path, note: Note) -> None:
    """Refused, or stored as they are where nobody has to look inside; and nobody else waits."""
    with running(tmp_path) as target:
        create(target)
        for topic in TOPICS:
            assert produce_to(
                target, topic, bytes(build_batch([(b"k", b"v", (), 0)], codec=1))
            ) in (0, 32)
        worst_memory = worst_cpu = 0.0
        expensive = largest = ""
        outcomes: dict[str, list[int]] = {}
        found = bombs()
        codecs = {name: codec for name, (codec, _) in found.items()}
        made = [
            (name, topic, batch_of(codec, block[: MESSAGE_MAX - HEADER.size]))
            for name, (codec, block) in found.items()
            for topic in TOPICS
        ]
        with target.probe() as probe:
            for name, topic, batch in made:
                before, cpu = target.resident(), target.cpu_s()
                target.forget_peak()
                outcomes.setdefault(name, []).append(produce_to(target, topic, batch))
                used = target.cpu_s() - cpu
                # The frame itself has arrived and is memory too.
                cost = target.peak_memory() - before - len(batch)
                if cost > worst_memory:
                    worst_memory, largest = cost, f"{name} to {topic}"
                if used > worst_cpu:
                    worst_cpu, expensive = used, f"{name} to {topic}"
        assert not probe.seen.failures
        note(
            memory_mib=worst_memory / MIB,
            cpu_ms=worst_cpu * 1000,
            of=(largest, expensive),
            stall_ms=probe.seen.stall_ms,
            codes=outcomes,
        )
        for name, codes in outcomes.items():
            for topic, code in zip(TOPICS, codes, strict=True):
                # 2 corrupt, 10 too large, 87 invalid record; nobody looks inside on plain topics.
                opaque = topic == "plain" or (topic == "packed" and codecs[name] == 4)
                assert code == 0 if opaque else code in (2, 10, 87), (name, topic, code)
        # Twice for the block, and what the allocator and the process round up to.
        assert worst_memory <= 2 * MESSAGE_MAX + 4 * MIB
        assert worst_cpu <= 0.1, expensive
        assert probe.seen.stall_ms <= HANG_MS


@pytest.mark.parametrize("size", range(12, 61))
def test_less_than_a_batch_header_is_damage(size: int) -> None:
    """Whatever the length field says: fields beyond the end must not be looked for."""
    whole = build_batch([(b"k", b"v", (), 1)])
    for length in (0, size - 12, 2**31 - 1):
        records = bytearray(whole[:size])
        records[8:12] = length.to_bytes(4, "big")
        with pytest.raises((CorruptBatchError, ApiError)):
            check_single_batch(memoryview(records), 3)
