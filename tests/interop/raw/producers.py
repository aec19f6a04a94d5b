"""Scripts about producers: epochs, transactional offset commits, versions in one connection."""

from struct import pack
from typing import Any
from zlib import crc32

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.interop.raw.classic_groups import join, leave, sync
from tests.interop.raw.consumer_groups import Member, member_id
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script
from tests.interop.raw.transactions import (
    NEW,
    OLD,
    TIMESTAMP_MS,
    Producer,
    committed,
    fetch_ended,
)


@script
def init_with_expected_epochs(d: Dialogue) -> None:
    """KIP-360: with the current pair, the last one, an older one, of an empty, open, ended one."""
    topic = d.create_topic()
    for name, versions in (("new", NEW), ("old", OLD)):
        for state in ("empty", "open", "ended"):
            for offset in (0, -1, -2, 1):
                p = Producer(d, f"{d.name}-{name}-{state}-{offset}", versions)
                what = f"{name} {state} {offset}"
                for number in range(3):
                    p.init(f"{what} init {number}")
                if state != "empty":
                    if name == "old":
                        p.add(topic, what=f"{what} add")
                    p.produce(topic, b"x", what=f"{what} produce")
                if state == "ended":
                    p.end(commit=True, what=f"{what} commit")
                    p.describe(f"{what} ended")
                epoch = p.epoch + offset
                p.init(what, producer_id=p.producer_id, producer_epoch=epoch)
                p.init(f"{what} again", producer_id=p.producer_id, producer_epoch=epoch)
                p.describe(f"{what} describe")
                p.end(commit=False, what=f"{what} abort")
    fetch_ended(d, topic)


@script
def init_in_every_version(d: Dialogue) -> None:
    """One id, each version; from 3 on with the pair it has."""
    producer_id, epoch = -1, -1
    for version in range(6):
        request = InitProducerIdRequest(transactional_id=d.name, transaction_timeout_ms=60_000)
        answer = d.ask(f"v{version}", request, version)
        producer_id, epoch = answer.producer_id, answer.producer_epoch
        if version >= 3:
            request.producer_id, request.producer_epoch = producer_id, epoch
            d.ask(f"v{version} with its pair", request, version)


@script
def produce_in_mixed_versions(d: Dialogue) -> None:
    """One producer that speaks the old and the new protocol in turns, as a proxy might let it."""
    topic = d.create_topic(partitions=2)
    p = Producer(d, d.name)
    p.init()
    p.produce(topic, b"1", version=11, what="v11, not added")
    p.produce(topic, b"1", version=12, what="v12 adds")
    p.produce(topic, b"2", version=11, what="v11 after v12")
    p.produce(topic, b"3", version=11, partition=1, what="v11 to another partition")
    p.add(topic, 1, what="add the other one")
    p.produce(topic, b"3", version=11, partition=1, what="v11 when added")
    p.describe("open")
    p.end(commit=True, version=4, what="commit v4")
    p.describe("committed v4")
    p.produce(topic, b"4", version=12, what="v12 in the same epoch")
    p.end(commit=True, version=5, what="commit v5")
    p.describe("committed v5")
    p.add(topic, what="add for v11")
    p.produce(topic, b"5", version=11, what="v11 in the next epoch")
    p.produce(topic, b"6", version=12, what="v12 after v11")
    p.end(commit=False, version=5, what="abort v5")
    p.describe("aborted v5")
    p.produce(topic, b"7", version=12, what="v12 at last")
    p.end(commit=False, version=4, what="abort v4")
    p.describe("aborted v4")
    p.commit_offset(d.name, topic, 3, version=5, what="v5 offset")
    p.commit_offset(d.name, topic, 4, version=4, what="v4 offset")
    p.commit_offset(f"{d.name}-2", topic, 4, version=4, what="v4 offset of a group not added")
    p.end(commit=True, version=4, what="commit of offsets v4")
    committed(d, d.name, topic, what="committed offset", until=4)
    p.describe("at the end")


@script
def produce_refusals_of_the_log(d: Dialogue) -> None:
    """What is told beside an error: the log start where the log itself refuses.

    Not asked: null instead of records, which Kafka never answers.
    """
    topic = d.create_topic()
    p = Producer(d, None)
    p.init()
    for value in (b"1", b"2", b"3"):
        p.produce(topic, value, transactional=False)
    partitions = [DeleteRecordsPartition(partition_index=0, offset=2)]
    topics = [DeleteRecordsTopic(name=topic, partitions=partitions)]
    d.ask("delete records", DeleteRecordsRequest(topics=topics, timeout_ms=10_000))
    p.produce(topic, b"4", transactional=False, what="good")
    p.produce(topic, b"4", transactional=False, sequence=3, what="again")
    p.produce(topic, b"4", transactional=False, sequence=9, what="gap")
    p.produce(topic, b"4", transactional=False, sequence=0, what="long ago")
    p.produce(topic, b"4", transactional=False, epoch=5, what="epoch to come, not from 0")
    p.produce(topic, b"4", transactional=False, epoch=5, sequence=0, what="epoch to come")
    p.produce(topic, b"4", transactional=False, epoch=1, sequence=0, what="epoch before")
    p.produce(topic, b"4", transactional=False, partition=3, what="no such partition")
    p.produce(f"{topic}-none", b"4", transactional=False, what="no such topic")
    p.produce("__consumer_offsets", b"4", transactional=False, what="internal topic")
    good = bytes(build_batch([(None, b"v", (), TIMESTAMP_MS)]))
    large = bytes(build_batch([(None, b"v" * (1 << 20), (), TIMESTAMP_MS)]))
    broken = good[:-1] + bytes([good[-1] ^ 1])
    cases: dict[str, tuple[bytes, int]] = {
        "plain": (good, -1),
        "empty": (b"", -1),
        "two batches": (good + good, -1),
        "broken": (broken, -1),
        "short": (good[:40], -1),
        "too large": (large, -1),
        "acks 2": (good, 2),
    }
    for what, (records, acks) in cases.items():
        data = [PartitionProduceData(index=0, records=records)]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        for version in (9, 12):
            d.ask(f"{what} v{version}", request, version)


@script
def transactional_records_without_an_id(d: Dialogue) -> None:
    """Everything that comes in the same request is refused with them."""
    topic, other = d.create_topic(partitions=2), d.create_topic("-other")
    p = Producer(d, d.name)
    p.init()

    def records(*, transactional: bool) -> bytes:
        return bytes(
            build_batch(
                [(None, b"v", (), TIMESTAMP_MS)],
                producer_id=p.producer_id if transactional else -1,
                producer_epoch=p.epoch if transactional else -1,
                base_sequence=0 if transactional else -1,
                transactional=transactional,
            )
        )

    def part(index: int, *, transactional: bool) -> PartitionProduceData:
        return PartitionProduceData(index=index, records=records(transactional=transactional))

    for what, first, second in (("before", False, True), ("after", True, False)):
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[part(0, transactional=first), part(1, transactional=second)],
                ),
                TopicProduceData(name=other, partition_data=[part(0, transactional=False)]),
            ],
        )
        for version in (3, 8, 12):
            d.ask(f"plain {what} v{version}", request, version)
    fetch_ended(d, topic)
    fetch_ended(d, other, "fetch the other")


def _commits(
    d: Dialogue, group: str, topic: str, cases: dict[str, dict[str, Any]], what: str
) -> None:
    """TxnOffsetCommit of each case, in a transaction of each protocol, and what came of it."""
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{group}-{what}-{name}", versions)
        p.init(f"{what} {name} init")
        if name == "old":
            p.add_offsets(group, what=f"{what} {name} add offsets")
        for number, (case, fields) in enumerate(cases.items()):
            for version in (3, versions["offsets"]):
                step = f"{what} {name} {case} v{version}"
                p.commit_offset(group, topic, 10 + number, version=version, what=step, **fields)
        p.end(commit=True, what=f"{what} {name} commit")
        p.describe(f"{what} {name} ended")
        committed(d, group, topic, what=f"{what} {name} committed")


@script
def transactional_offsets_of_consumer_members(d: Dialogue) -> None:
    """Member epochs in TxnOffsetCommit."""
    topic = d.create_topic(partitions=2)
    m = Member(d, d.name, "m", [topic])
    other = Member(d, d.name, "other", [topic], instance="i")
    m.beat("joins")
    other.beat("joins")
    m.settle(other)
    me, it = member_id("m"), member_id("other")
    cases: dict[str, dict[str, Any]] = {
        "good": {"member_id": me, "generation_id": m.epoch},
        "ahead": {"member_id": me, "generation_id": m.epoch + 1},
        "behind": {"member_id": me, "generation_id": m.epoch - 1},
        "epoch -1": {"member_id": me, "generation_id": -1},
        "nobody": {"member_id": "nobody", "generation_id": m.epoch},
        "no member": {"generation_id": m.epoch},
        "nobody at all": {},
        "static": {"member_id": it, "generation_id": m.epoch, "group_instance_id": "i"},
        "static without instance": {"member_id": it, "generation_id": m.epoch},
        "instance of another": {
            "member_id": me,
            "generation_id": m.epoch,
            "group_instance_id": "i",
        },
    }
    _commits(d, d.name, topic, cases, "members")
    m.leave()
    other.leave()
    _commits(d, d.name, topic, cases, "empty")


@script
def transactional_offsets_of_classic_members(d: Dialogue) -> None:
    """Generations in TxnOffsetCommit."""
    topic = d.create_topic()
    joined = join(d, d.name, "join", topic=topic)
    base = {"member_id": joined.member_id, "generation_id": joined.generation_id}
    cases: dict[str, dict[str, Any]] = {
        "good": base,
        "ahead": base | {"generation_id": joined.generation_id + 1},
        "behind": base | {"generation_id": joined.generation_id - 1},
        "generation -1": base | {"generation_id": -1},
        "nobody": base | {"member_id": "nobody"},
        "no member": {"generation_id": joined.generation_id},
        "nobody at all": {},
        "instance": base | {"group_instance_id": "i"},
    }
    _commits(d, d.name, topic, cases, "before sync")
    sync(d, d.name, joined, "sync")
    _commits(d, d.name, topic, cases, "stable")
    leave(d, d.name, joined.member_id)
    _commits(d, d.name, topic, cases, "empty")


def _produce(d: Dialogue, what: str, topic: str, records: bytes) -> None:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    # The answer of a later version has the log's start, also where it was not asked.
    d.ask(what, request, 3)


@script
def messages_of_old_formats(d: Dialogue) -> None:
    """Refused for good, whatever their size and sum: a client does not send them again."""
    topic = d.create_topic()
    for magic in (0, 1):
        for value in (b"", b"v", b"v" * 100):
            head = bytes((magic, 0)) + (pack(">q", TIMESTAMP_MS) if magic else b"")
            body = head + pack(">ii", -1, len(value)) + value
            for what, crc in (("", crc32(body)), (" with a wrong sum", crc32(body) ^ 1)):
                message = pack(">qiI", 0, len(body) + 4, crc) + body
                _produce(d, f"magic {magic}, {len(value)} bytes{what}", topic, message)


@script
def records_damaged_before_their_checksum(d: Dialogue) -> None:
    """Worth sending again, unlike what is whole and not one batch."""
    topic = d.create_topic()
    one = bytes(build_batch([(None, b"v", (), TIMESTAMP_MS)]))

    def with_length(length: int) -> bytes:
        return one[:8] + pack(">i", length) + one[12:]

    for length in (0, 13, 14, len(one) - 13, len(one) - 40, len(one) - 11, 1 << 30, -1, -(2**31)):
        _produce(d, f"length {length}", topic, with_length(length))
    for magic in (3, 127, 255):
        _produce(d, f"magic {magic}", topic, one[:16] + bytes((magic,)) + one[17:-1])
    for what, records in (
        ("anything", b"x" * 70),
        ("less than a length", one[:11]),
        ("less than a magic", one[:16]),
        ("cut off", one[:-1]),
        ("two", one + one),
        ("one and a damaged one", one + with_length(0)),
    ):
        _produce(d, what, topic, records)


@script
def batches_that_claim_the_brokers_time(d: Dialogue) -> None:
    """Taken as if they did not: whose time it is is the topic's setting."""
    topic = d.create_topic()
    for transactional in (False, True):
        batch = build_batch(
            [(None, b"v", (), TIMESTAMP_MS)], timestamp_type=1, transactional=transactional
        )
        _produce(d, f"transactional {transactional}", topic, bytes(batch))
    ends = [ListOffsetsPartition(partition_index=0, timestamp=at) for at in (-3, TIMESTAMP_MS + 6)]
    for end in ends:
        asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[end])])
        d.ask(f"at {end.timestamp}", asked, 7)
