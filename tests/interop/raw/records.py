"""Scripts about records: what a log refuses and says of it, what a Fetch may ask for."""

import time
from typing import Any

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

TIMESTAMP_MS = 1_700_000_000_000


def produce(d: Dialogue, what: str, topic: str, records: bytes, version: int = 9) -> Any:
    """Produce to partition 0."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    return d.ask(what, request, version)


@script
def fetches_of_negative_epochs(d: Dialogue) -> None:
    """As if they named none."""
    topic = d.create_topic()
    produce(d, "one", topic, bytes(build_batch([(None, b"v", (), TIMESTAMP_MS)])))
    for version in (9, 12, 16, 18):
        for epoch in (0, -1, -2, -(2**31)):
            for field in ("current_leader_epoch", "last_fetched_epoch"):
                if field == "last_fetched_epoch" and version < 12:
                    continue
                partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
                setattr(partition, field, epoch)
                name: dict[str, Any] = (
                    {"topic": topic} if version < 13 else {"topic_id": d.topic_id(topic)}
                )
                asked = FetchRequest(topics=[FetchTopic(partitions=[partition], **name)])
                d.ask(f"v{version} {field} {epoch}", asked, version)


@script
def records_out_of_time(d: Dialogue) -> None:
    """Each is named, and the log keeps none of the batch."""
    hour_ms = 3_600_000
    settings = {
        "message.timestamp.before.max.ms": hour_ms,
        "message.timestamp.after.max.ms": hour_ms,
    }
    topic = d.create_topic(configs=settings)
    now_ms = int(time.time() * 1000)
    old, new = now_ms - 2 * hour_ms, now_ms + 2 * hour_ms
    for what, times in (
        ("in time", [now_ms, -1]),
        ("too old", [old]),
        ("too new", [new]),
        ("some", [old, now_ms, new, now_ms]),
    ):
        for codec in (0, 1):
            records = bytes(build_batch([(None, b"v", (), at) for at in times], codec=codec))
            for version in (7, 9):
                produce(d, f"{what}, codec {codec}, v{version}", topic, records, version)
