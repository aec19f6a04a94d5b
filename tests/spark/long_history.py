"""One topic with everything in its life that may happen to a tiered log, of any length.

    an earlier topic of the name    filled, tiered, deleted; its objects stay behind in the bucket
    compaction                      keyed records are cleaned: gaps, and batches without records
    every codec                     idempotent producers and plain ones, headers, nulls, odd times
    transactions                    three producers interleaved, each third aborted, over segments
    restarts                        clean and by kill -9: stored plain, compressed, encrypted
    another replica's copies        segments that were rolled elsewhere, over those of the leader
    an unfinished copy              objects without a manifest
    DeleteRecords                   within a segment, on two partitions
    the end                         a transaction that begins in tiered segments and is aborted in
                                    one that is not, and one that is still open

Records are real producers' (librdkafka), but for the few that no library can be talked into. The
numbers of records are shares of what was asked for, so a short history has all of it, too.
"""

import asyncio
import itertools
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from uuid import UUID

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from bench import wire
from pipeline.source.options.options import parse_options
from pipeline.source.planner import Planner
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid
from tests.spark.tiered_topic import CODECS, TieredBroker
from tests.unit.pipeline.plan.bucket_world import BucketWorld
from tiered.segment_metadata import TopicIdPartition

NAME = "history"
PARTITIONS = 4
SETTINGS = {
    # What is in the bucket beside the broker's own copies is to stay there.
    "tier.gc.interval.ms": "86400000",
    "tier.history.interval.ms": "1000",
    "log.cleaner.backoff.ms": "200",
    "transaction.max.timeout.ms": "7200000",
    "rsm.config.chunk.size": "262144",
}
FIRST_TIME_MS = 1_700_000_000_000
QUIET_S = 5.0
"""Without a change of the log's size: the cleaner looks several times a second."""

PADDING = bytes(range(256)) * 2

Message = dict[str, Any]


class LongHistory:
    """See the module.

    Attributes:
        broker: Has the topic, runs when `live` is over.
        replicated: Ids of the other replica's copies, of partition 1.
    """

    def __init__(self, broker: TieredBroker, records: int) -> None:
        self.broker = broker
        self.records = records
        self.segment_bytes = max(64 * 1024, records * 3 // 8)
        self.replicated: list[UUID] = []
        self._numbers = itertools.count()
        self._names = itertools.count()
        self._open: Producer | None = None
        self._laid_aside = broker.directory / "an-earlier-topic"

    def live(self, tell: Callable[[str], None]) -> None:
        """All of it; `tell` hears of each chapter as it begins."""
        share = self.records // 100
        chapters: Sequence[tuple[str, Callable[[], None]]] = (
            ("an earlier topic of the name", lambda: self._earlier(share)),
            ("compaction", lambda: self._compacted(share)),
            ("plain batches of two codecs", lambda: self._plain(CODECS[:2], 10 * share)),
            ("transactions", lambda: self._transactions(8 * share)),
            ("a clean restart, compressed from now on", self._restart_clean),
            ("plain batches of the other codecs", lambda: self._plain(CODECS[2:], 10 * share)),
            ("idempotent batches", lambda: self._idempotent(CODECS[:3], 6 * share)),
            ("kill -9, encrypted from now on", self._restart_killed),
            ("idempotent batches of the rest", lambda: self._idempotent(CODECS[3:], 7 * share)),
            ("kill -9 once more", self._restart_killed),
            ("more transactions", lambda: self._transactions(8 * share)),
            ("all of it into the bucket", self._tiered),
            ("another replica's copies", self._replicate),
            ("an unfinished copy", self._unfinished),
            ("DeleteRecords", self._delete_records),
            ("the end", lambda: self._end(share)),
        )
        for name, chapter in chapters:
            tell(name)
            chapter()

    def close(self) -> None:
        """Let go of the open transaction."""
        self._open = None

    # -- records -------------------------------------------------------------------------------

    def _messages(self, count: int, partition: int, keys: int = 0) -> Iterator[Message]:
        for _ in range(count):
            number = next(self._numbers)
            key: bytes | None = b"key-%d" % (number % keys if keys else number)
            if not keys:
                key = None if number % 7 == 0 else b"" if number % 53 == 0 else key
            value = None if number % 11 == 0 else b"%d:%b" % (number, PADDING[: number % 151])
            message: Message = {
                "value": value,
                "partition": partition,
                # Out of order by up to some seconds.
                "timestamp": FIRST_TIME_MS + number * 3 - number % 50 * 200,
            }
            if key is not None:
                message["key"] = key
            if number % 5 == 0:
                message["headers"] = [("trace", b"%d" % number), ("", b""), ("null", None)]
            yield message

    def _producer(self, **settings: object) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.broker.node.address,
                "linger.ms": 5,
                "batch.size": 16384,
                "queue.buffering.max.messages": 200_000,
                "message.timeout.ms": 300_000,
                **settings,
            }
        )

    def _send(self, producer: Producer, messages: Iterable[Message]) -> None:
        for message in messages:
            while True:
                try:
                    producer.produce(NAME, **message)
                except BufferError:
                    producer.poll(0.05)
                else:
                    break
        producer.poll(0)

    def _flush(self, producer: Producer) -> None:
        assert producer.flush(300) == 0

    def _everywhere(self, producer: Producer, count: int, keys: int = 0) -> None:
        """Some for each partition, in turns of many, so that batches are long."""
        for partition in range(PARTITIONS):
            self._send(producer, self._messages(count // PARTITIONS, partition, keys))

    def _plain(self, codecs: Sequence[str], count: int) -> None:
        for codec in codecs:
            producer = self._producer(**{"compression.type": codec, "enable.idempotence": False})
            self._everywhere(producer, count)
            self._flush(producer)
        self._odd()

    def _idempotent(self, codecs: Sequence[str], count: int) -> None:
        for codec in codecs:
            settings = {
                "compression.type": codec,
                "enable.idempotence": True,
                "batch.size": 100_000,
            }
            producer = self._producer(**settings)
            self._everywhere(producer, count)
            self._flush(producer)
        self._odd()

    def _transactional(self, **settings: object) -> Producer:
        name = f"{NAME}-{next(self._names)}"
        producer = self._producer(
            **{"transactional.id": name, "transaction.timeout.ms": 7_200_000, **settings}
        )
        producer.init_transactions(60)
        return producer

    def _transactions(self, count: int) -> None:
        """Three producers take turns; of their transactions every third is aborted."""
        turns = 4
        producers = [
            self._transactional(**{"compression.type": codec}) for codec in ("none", "lz4", "zstd")
        ]
        for turn in range(turns):
            for producer in producers:
                producer.begin_transaction()
            for _ in range(8):
                for producer in producers:
                    self._everywhere(producer, count // (turns * 8 * 3))
                    producer.poll(0)
            for index, producer in enumerate(producers):
                self._flush(producer)
                if (turn + index) % 3 == 0:
                    producer.abort_transaction(300)
                else:
                    producer.commit_transaction(300)

    def _odd(self) -> None:
        """Without a time, and with the same header twice."""
        for partition in range(PARTITIONS):
            for codec in Codec:
                records = [
                    (b"no time", b"%d" % number, (("a", None), ("a", b"again")), -1)
                    for number in range(20)
                ]
                with self.broker.node.connect() as connection:
                    batch = bytes(build_batch(records, codec=codec))
                    wire.produce(connection, NAME, partition, batch)

    # -- the topic -----------------------------------------------------------------------------

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.node.address})

    def _create(self, **configs: str) -> None:
        settings = {
            "internal.segment.bytes": str(self.segment_bytes),
            "retention.ms": "-1",
            **{name.replace("_", "."): text for name, text in configs.items()},
        }
        topic = NewTopic(NAME, PARTITIONS, 1, config=settings)
        self._admin.create_topics([topic])[NAME].result(60)
        with self.broker.node.connect() as connection:
            wire.wait_until_led(connection, NAME, PARTITIONS)

    def _alter(self, **configs: str) -> None:
        entries = [
            ConfigEntry(name.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
            for name, text in configs.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, NAME, incremental_configs=entries)
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result(60)

    def _earlier(self, count: int) -> None:
        """Its objects are put back as they were: of a bucket that nobody could reach."""
        self._create(remote_storage_enable="true", internal_segment_bytes="65536")
        producer = self._producer()
        self._everywhere(producer, max(count, 20_000))
        self._flush(producer)
        self.broker.wait_until_tiered(NAME, PARTITIONS)
        (folder,) = self.broker.bucket.glob(f"{NAME}-*")
        shutil.copytree(folder, self._laid_aside)
        self._admin.delete_topics([NAME])[NAME].result(60)
        _until(lambda: not any(folder.rglob("*.log")), "the earlier topic's objects are gone")
        shutil.copytree(self._laid_aside, folder, dirs_exist_ok=True)

    def _compacted(self, count: int) -> None:
        """Then it is a log like others, with what compaction has left in front."""
        self._create(
            cleanup_policy="compact",
            min_cleanable_dirty_ratio="0.01",
            delete_retention_ms="0",
            internal_segment_bytes=str(self.segment_bytes // 4),
        )
        plain = self._producer(**{"enable.idempotence": False})
        safe = self._producer(**{"enable.idempotence": True, "compression.type": "zstd"})
        for _ in range(6):
            for producer in (plain, safe):
                self._everywhere(producer, max(count // 2, 6_000), keys=200)
                self._flush(producer)
        before = self._local_bytes()
        _until(lambda: self._local_bytes() < before // 2, "the cleaner has been there")
        self._wait_for_the_cleaner()
        self._alter(
            cleanup_policy="delete",
            remote_storage_enable="true",
            internal_segment_bytes=str(self.segment_bytes),
        )

    def _wait_for_the_cleaner(self) -> None:
        """Until it has no more to do.

        What is copied while a run is under way may have records that the local log soon has not.
        """
        size, since = self._local_bytes(), time.monotonic()
        while time.monotonic() < since + QUIET_S:
            time.sleep(0.2)
            if (now := self._local_bytes()) != size:
                size, since = now, time.monotonic()

    def _local_bytes(self) -> int:
        total = 0
        for path in self.broker.node.data_directory.glob(f"{NAME}-*/*.log"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
        return total

    def _restart_clean(self) -> None:
        self.broker.restart(compressed=True)

    def _restart_killed(self) -> None:
        """While a producer's records are under way, which it sends again."""
        producer = self._producer(**{"enable.idempotence": True})
        self._everywhere(producer, 4_000)
        producer.poll(0.01)
        self.broker.restart(compressed=True, encrypted=True, killed=True)
        self._flush(producer)

    def _tiered(self) -> None:
        self.broker.wait_until_tiered(NAME, PARTITIONS, timeout_s=600)

    def _delete_records(self) -> None:
        """Neither at a segment's border nor at a batch's."""
        wanted: list[Place] = []
        for partition in (0, 2):
            first = self.log(partition).segments[2]
            offset = (first.start_offset + first.end_offset) // 2 + 1
            wanted.append(Place(NAME, partition, offset))
        for done in self._admin.delete_records(wanted).values():
            done.result(60)
        # The tier removes the segments before it, and says so in its history.
        for place in wanted:
            _until(partial(self._begins, place.partition, place.offset), "the bucket tells of it")

    def _begins(self, partition: int, offset: int) -> bool:
        return bool(self.log(partition).log_start_offset == offset)

    def log(self, partition: int) -> Any:
        """The partition as its bucket has it."""
        given = {**self.broker.options, "subscribe": NAME}
        with Planner(parse_options(given)) as planner:
            log = planner.view()[TopicPartition(NAME, partition)].log
        assert log is not None
        return log

    def log_starts(self) -> Sequence[int]:
        """Of each partition, by the broker."""
        with self.broker.node.connect() as connection:
            return [wire.list_offset(connection, NAME, one, -2) for one in range(PARTITIONS)]

    def copies(self) -> Sequence[Path]:
        """Objects of the other replica's copies."""
        names = [format_uuid(one) for one in self.replicated]
        return [
            path
            for path in self.broker.bucket.glob(f"{NAME}-*/1/*")
            if any(name in path.name for name in names)
        ]

    # -- other people's objects ----------------------------------------------------------------

    def _replicate(self) -> None:
        """Copies by a replica that rolled in the middle of the leader's segments.

        As after a change of leaders: two of the leader's segments and a part of a third lie in one
        of them. It ends before a later one does, so it is chosen, and the later one is cut.
        """
        partition = 1
        log = self.log(partition)
        cuts = [
            (one.start_offset + one.end_offset) // 2
            for one in (log.segments[at] for at in (5, 7, 9))
        ]
        world = BucketWorld(chunk_bytes=100_000, compression=True)
        replica = world.replica("other")
        folder = self.broker.node.data_directory / f"{NAME}-{partition}"
        for path in sorted(folder.glob("*.log")):
            data = path.read_bytes()
            for position, header in iterate_batches(memoryview(data)):
                if cuts and header.base_offset > cuts[0]:
                    cuts.pop(0)
                    replica.roll()
                if not cuts:
                    break
                replica.log.follower.append(memoryview(data)[position : position + header.size])
            if not cuts:
                break
        replica.log.update_high_watermark(replica.log.log_end_offset)
        place = TopicIdPartition(log.partition.topic_id, NAME, partition)
        copied = self._run(world, replica, place)
        for one in copied:
            self.replicated.append(one.id)
        for key, stored in world.store.objects.items():
            path = self.broker.bucket / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored.data)

    @staticmethod
    def _run(world: BucketWorld, replica: Any, place: TopicIdPartition) -> Sequence[Any]:
        async def copy() -> Sequence[Any]:
            first = replica.log.segment_facts()[1].base_offset
            return await world.copy(
                replica, partition=place, partitions=PARTITIONS, from_offset=first
            )

        return asyncio.run(copy())

    def _unfinished(self) -> None:
        """What a broker leaves that dies while it copies: the manifest comes last."""
        for manifest in sorted(self.broker.bucket.glob(f"{NAME}-*/3/*.rsm-manifest"))[3:5]:
            for suffix in (".log", ".indexes"):
                there = manifest.with_suffix(suffix)
                name = there.name[:21] + "AAAAAAAAAAAAAAAAAAAAAA" + suffix
                there.with_name(name).write_bytes(there.read_bytes()[:-100])

    # -- the end -------------------------------------------------------------------------------

    def _end(self, count: int) -> None:
        long = self._transactional()
        long.begin_transaction()
        # More than two segments of each partition, so that its first ones are closed.
        many = self.segment_bytes * PARTITIONS * 5 // 2 // 80
        self._everywhere(long, many)
        self._flush(long)
        self._plain(CODECS[:1], count)
        long.abort_transaction(300)
        # The marker lies in the last segment, which nobody copies while it is written to.
        self.broker.wait_until_tiered(NAME, PARTITIONS, timeout_s=600)
        self._open = self._transactional()
        self._open.begin_transaction()
        self._send(self._open, self._messages(50, 3))
        self._flush(self._open)
        self._plain(CODECS[:1], 400)
        self._alter(local_retention_bytes=str(3 * self.segment_bytes))
        self.broker.wait_until_tiered(NAME, PARTITIONS, timeout_s=600)


def _until(condition: Callable[[], bool], what: str, timeout_s: float = 300.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.2)
