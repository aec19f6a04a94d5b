"""What the codec costs: microseconds per message, decoded and encoded.

`python -m bench.codec [--repeat N]` prints a table. One thread, bodies without headers, the best of
N runs; the first line is a calibration (a fixed piece of pure Python), to compare machines by.
Messages are of typical size: Produce and Fetch with one partition of 16 KiB, Metadata with one and
with 100 partitions, group requests of one member.
"""

import argparse
import time
from collections.abc import Callable
from struct import Struct
from types import ModuleType
from typing import Any, NamedTuple
from uuid import UUID

from protocol.api_keys import ApiKey
from protocol.messages import (
    api_versions,
    fetch,
    heartbeat,
    join_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)

TOPIC_ID = UUID(int=0x0123456789ABCDEF0123456789ABCDEF)
RECORDS = bytes(16 * 1024)
TARGET_S = 0.05
"""How long one run lasts."""


class Case(NamedTuple):
    """One row of the table."""

    name: str
    module: ModuleType
    kind: str
    version: int
    message: Any


def produce_request(partitions: int) -> produce.ProduceRequest:
    """Make a request for one topic."""
    data = [
        produce.PartitionProduceData(index=index, records=RECORDS) for index in range(partitions)
    ]
    topic = produce.TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=data)
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response() -> produce.ProduceResponse:
    """Make the answer for one partition."""
    partition = produce.PartitionProduceResponse(base_offset=123_456, log_start_offset=0)
    topic = produce.TopicProduceResponse(name="orders", partition_responses=[partition])
    return produce.ProduceResponse(responses=[topic])


def fetch_request(partitions: int) -> fetch.FetchRequest:
    """Make a request for one topic."""
    wanted = [
        fetch.FetchPartition(partition=index, fetch_offset=1000, partition_max_bytes=1 << 20)
        for index in range(partitions)
    ]
    topic = fetch.FetchTopic(topic="orders", topic_id=TOPIC_ID, partitions=wanted)
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[topic])


def fetch_response() -> fetch.FetchResponse:
    """Make the answer for one partition."""
    partition = fetch.PartitionData(high_watermark=2000, records=RECORDS, aborted_transactions=[])
    topic = fetch.FetchableTopicResponse(topic="orders", topic_id=TOPIC_ID, partitions=[partition])
    return fetch.FetchResponse(responses=[topic])


def metadata_response(partitions: int) -> metadata.MetadataResponse:
    """Describe one broker and one topic."""
    described = [
        metadata.MetadataResponsePartition(
            partition_index=index, leader_id=1, leader_epoch=3, replica_nodes=[1], isr_nodes=[1]
        )
        for index in range(partitions)
    ]
    topic = metadata.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=described)
    broker = metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092)
    return metadata.MetadataResponse(
        brokers=[broker], cluster_id="0123456789abcdefghijkl", controller_id=1, topics=[topic]
    )


def offset_commit_request(partitions: int) -> offset_commit.OffsetCommitRequest:
    """Commit offsets of one topic."""
    committed = [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1000, committed_metadata=""
        )
        for index in range(partitions)
    ]
    topic = offset_commit.OffsetCommitRequestTopic(name="orders", partitions=committed)
    return offset_commit.OffsetCommitRequest(
        group_id="billing", generation_id_or_member_epoch=5, member_id="m" * 40, topics=[topic]
    )


def cases() -> list[Case]:
    """List what is measured."""
    beat = heartbeat.HeartbeatRequest(group_id="billing", generation_id=5, member_id="m" * 40)
    join = join_group.JoinGroupRequest(
        group_id="billing",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="m" * 40,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=bytes(60))],
    )
    apis = [api_versions.ApiVersion(api_key=key, max_version=9) for key in ApiKey]
    wanted = list_offsets.ListOffsetsPartition(timestamp=-1, current_leader_epoch=3)
    offsets = list_offsets.ListOffsetsRequest(
        topics=[list_offsets.ListOffsetsTopic(name="orders", partitions=[wanted])]
    )
    group = offset_fetch.OffsetFetchRequestGroup(
        group_id="billing",
        topics=[offset_fetch.OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1, 2])],
    )
    groups = offset_fetch.OffsetFetchRequest(groups=[group])
    topics = [metadata.MetadataRequestTopic(name="orders")]
    return [
        Case("Produce, 16 KiB", produce, "request", 9, produce_request(1)),
        Case("Produce, 16 KiB", produce, "request", 13, produce_request(1)),
        Case("Produce, 10 x 16 KiB", produce, "request", 9, produce_request(10)),
        Case("Produce", produce, "response", 9, produce_response()),
        Case("Fetch", fetch, "request", 12, fetch_request(1)),
        Case("Fetch", fetch, "request", 17, fetch_request(1)),
        Case("Fetch, 100 partitions", fetch, "request", 12, fetch_request(100)),
        Case("Fetch, 16 KiB", fetch, "response", 12, fetch_response()),
        Case("ListOffsets", list_offsets, "request", 7, offsets),
        Case("Metadata", metadata, "request", 12, metadata.MetadataRequest(topics=topics)),
        Case("Metadata", metadata, "response", 12, metadata_response(1)),
        Case("Metadata, 100 partitions", metadata, "response", 12, metadata_response(100)),
        Case(
            "ApiVersions",
            api_versions,
            "response",
            4,
            api_versions.ApiVersionsResponse(api_keys=apis),
        ),
        Case("JoinGroup", join_group, "request", 7, join),
        Case("Heartbeat", heartbeat, "request", 4, beat),
        Case("Heartbeat", heartbeat, "response", 4, heartbeat.HeartbeatResponse()),
        Case("OffsetCommit", offset_commit, "request", 8, offset_commit_request(1)),
        Case("OffsetCommit, 10 partitions", offset_commit, "request", 8, offset_commit_request(10)),
        Case("OffsetFetch", offset_fetch, "request", 8, groups),
    ]


def microseconds(call: Callable[[], object], repeat: int) -> float:
    """Time one call, the best of `repeat` runs."""
    count, elapsed = 1, 0.0
    while elapsed < TARGET_S / 4:
        count *= 4
        elapsed = run(call, count)
    count = max(1, int(count * TARGET_S / elapsed))
    return min(run(call, count) for _ in range(repeat)) / count * 1e6


def run(call: Callable[[], object], count: int) -> float:
    """Time `count` calls in seconds."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def calibration() -> int:
    """Do a fixed amount of pure Python work."""
    layout = Struct(">hiq")
    total = 0
    for number in range(1000):
        total += layout.unpack_from(layout.pack(1, number, number))[1]
    return total


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, the best counts")
    repeat = parser.parse_args().repeat
    print(f"calibration: {microseconds(calibration, repeat):.0f} us for 1000 packs and unpacks\n")
    print(f"{'message':<28} {'':<9} {'v':>3} {'bytes':>7} {'decode us':>10} {'encode us':>10}")
    for case in cases():
        data, calls = coder(case)
        row(case.name, case.kind, case.version, data, calls, repeat)


def coder(case: Case) -> tuple[bytes, tuple[Callable[[], object], Callable[[], object]]]:
    """Give a case's bytes, and what decodes and encodes it."""
    encode = getattr(case.module, f"encode_{case.kind}")
    decode = getattr(case.module, f"decode_{case.kind}")
    message, version = case.message, case.version
    data = encode(message, version)
    view = memoryview(data)
    return data, (lambda: decode(view, version), lambda: encode(message, version))


def row(
    name: str,
    kind: str,
    version: int,
    data: bytes,
    calls: tuple[Callable[[], object], Callable[[], object]],
    repeat: int,
) -> None:
    """Print one row."""
    decode, encode = (microseconds(call, repeat) for call in calls)
    print(f"{name:<28} {kind:<9} {version:>3} {len(data):>7} {decode:>10.2f} {encode:>10.2f}")


if __name__ == "__main__":
    main()
