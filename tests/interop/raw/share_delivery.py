"""Scripts about delivery to share groups (KIP-932): acquisition, acknowledgement, redelivery.

`Sharer` is a member's connection with its share session; as in Kafka it need not be a member of the
group. Records are produced batch by batch, so that it is known where batches begin.
"""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from protocol.api_keys import ApiKey
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch as AcknowledgedBatch,
)
from protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script
from tests.interop.raw.share_member import begin_state
from tests.interop.raw.transactions import Producer

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
OPEN, FINAL = 0, -1
GROUP_RESOURCE = 32
UNKNOWN_TOPIC = UUID(int=0xFEED)
LONG_MS = 5_000
"""How long a fetch waits that shall find something."""

NO_WAIT_MS = 300
"""How long one waits that shall find nothing."""

Said = tuple[int, int, Sequence[int]]
"""First offset, last offset, types."""


def configure(d: Dialogue, group: str, **values: str) -> None:
    """Set a group's configuration (`_` for `.`), and wait until it is to be seen."""
    configs = [AlterableConfig(name=k.replace("_", "."), value=v) for k, v in values.items()]
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=configs
    )
    (result,) = d.ask_quietly(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert result.error_code == 0, result
    wanted = {config.name: config.value for config in configs}
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group)]
    )
    for _ in range(200):
        (described,) = d.ask_quietly(request).results
        found = {config.name: config.value for config in described.configs}
        if wanted.items() <= found.items():
            break
        time.sleep(0.02)
    # Kafka tells of a value a moment before it follows it.
    time.sleep(0.2)


def produce(d: Dialogue, topic: str, *sizes: int, partition: int = 0) -> None:
    """Batches of so many records each, without an idempotent producer."""
    producer = Producer(d, None)
    for size in sizes:
        producer.produce(
            topic,
            *(b"%d" % number for number in range(size)),
            partition=partition,
            sequence=-1,
            transactional=False,
        )


@dataclass
class Sharer:
    """A session of a member of a share group."""

    dialogue: Dialogue
    group: str
    name: str
    topics: Sequence[UUID]
    epoch: int = OPEN
    connection: socket.socket | None = None
    version: int = 1
    partitions: Sequence[int] = (0,)

    @property
    def member_id(self) -> str:
        """As clients make it up, and the same in every run."""
        return str(uuid5(UUID(int=2), self.name))

    def request(
        self, said: Sequence[Said] = (), *, wait_ms: int = LONG_MS, **fields: Any
    ) -> ShareFetchRequest:
        """What it sends next; `fields` are changes or a client's mistakes."""
        batches = [
            AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, types in said
        ]
        listed = self.topics if self.epoch == OPEN or said else ()
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": [
                FetchTopic(
                    topic_id=topic,
                    partitions=[
                        FetchPartition(partition_index=index, acknowledgement_batches=batches)
                        for index in self.partitions
                    ],
                )
                for topic in listed
            ],
            "forgotten_topics_data": [],
        }
        return ShareFetchRequest(**(values | fields))

    def fetch(self, what: str, said: Sequence[Said] = (), **fields: Any) -> Any:
        """ShareFetch, noted."""
        request = self.request(said, **fields)
        answer = self._ask(f"{self.name} {what}", request, ApiKey.SHARE_FETCH)
        self._go_on(answer, request.share_session_epoch)
        return answer

    def find(self, what: str, **fields: Any) -> None:
        """The same until something is found, and that is noted.

        Kafka notices with an empty answer that the log begins later than it did.
        """
        noted = len(self.dialogue.transcript)
        for _ in range(3):
            answer = self.fetch(what, **({"wait_ms": 1_000} | fields))
            if answer is None or answer.responses:
                break
            del self.dialogue.transcript[noted:]

    def nothing(self, what: str, **fields: Any) -> Any:
        """ShareFetch that shall find nothing, noted."""
        return self.fetch(what, wait_ms=NO_WAIT_MS, **fields)

    def say(self, what: str, *said: Said, **fields: Any) -> Any:
        """ShareAcknowledge, noted."""
        batches = [
            AcknowledgedBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in said
        ]
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "topics": [
                AcknowledgeTopic(
                    topic_id=topic,
                    partitions=[
                        AcknowledgePartition(partition_index=index, acknowledgement_batches=batches)
                        for index in self.partitions
                    ],
                )
                for topic in self.topics
            ],
        }
        request = ShareAcknowledgeRequest(**(values | fields))
        answer = self._ask(f"{self.name} {what}", request, ApiKey.SHARE_ACKNOWLEDGE)
        self._go_on(answer, request.share_session_epoch)
        return answer

    def _ask(self, what: str, request: Any, api: ApiKey) -> Any:
        self.dialogue.send(request, self.version, self.connection)
        answer = self.dialogue.receive(api, self.version, self.connection)
        self.dialogue.note(what, answer)
        return answer

    def _go_on(self, answer: Any, epoch: int) -> None:
        if answer is not None and answer.error_code == 0:
            self.epoch = OPEN if epoch == FINAL else epoch + 1

    def end(self) -> None:
        """Close the session."""
        self.say("ends its session", share_session_epoch=FINAL, topics=[])


def sharer(d: Dialogue, name: str, *topics: str, group: str | None = None, **fields: Any) -> Sharer:
    """A sharer on a connection of its own."""
    connection = d.another_connection()
    ids = [d.topic_id(topic) for topic in topics]
    return Sharer(d, group or d.name, name, ids, connection=connection, **fields)


def from_earliest(
    d: Dialogue, topic: str, *groups: str, partitions: int = 1, **values: str
) -> None:
    """Have groups begin with the first record."""
    for group in groups or (d.name,):
        configure(d, group, share_auto_offset_reset="earliest", **values)
        begin_state(d, group, (topic, partitions))


@script
def share_session_epochs(d: Dialogue) -> None:
    """Sessions that are not there, epochs that are not next, members without a name."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 3)
    stranger = sharer(d, "s", topic, group=f"{d.name}-x")
    stranger.nothing("opens for a group without state")
    stranger.nothing("goes on")
    stranger.say("says", (0, 0, [ACCEPT]))
    stranger.end()
    a = sharer(d, "a", topic)
    a.nothing("no session yet", share_session_epoch=1)
    a.say("no session yet to say in", (0, 0, [ACCEPT]), share_session_epoch=1)
    a.nothing("final without session", share_session_epoch=FINAL)
    a.say("final without session to say in", (0, 0, [ACCEPT]), share_session_epoch=FINAL)
    a.say("begins by saying", (0, 0, [ACCEPT]), share_session_epoch=OPEN)
    a.fetch("begins with acknowledgements", [(0, 0, [ACCEPT])])
    for what, fields in (
        ("empty group", {"group_id": ""}),
        ("no group", {"group_id": None}),
        ("empty member", {"member_id": ""}),
        ("no member", {"member_id": None}),
        ("long member", {"member_id": "m" * 37}),
        ("blank member", {"member_id": " "}),
    ):
        a.nothing(what, share_session_epoch=OPEN, max_records=0, **fields)
        a.say(f"{what} to say", (0, 0, [ACCEPT]), share_session_epoch=1, **fields)
        a.epoch = OPEN
    a.fetch("opens")
    a.nothing("epoch ahead", share_session_epoch=5)
    a.epoch = 1
    a.say("epoch ahead to say", (0, 0, [ACCEPT]), share_session_epoch=5)
    a.epoch = 1
    a.nothing("negative epoch", share_session_epoch=-2)
    a.epoch = 1
    a.say("goes on by saying", (0, 0, [ACCEPT]))
    a.nothing("says and goes on")
    a.nothing("the same epoch again", share_session_epoch=2)
    a.epoch = OPEN
    a.nothing("opens anew: its records are locked")
    a.fetch("ends with a release", [(1, 1, [RELEASE])], share_session_epoch=FINAL)
    # Kafka gives back what was not spoken of a moment after it has answered.
    time.sleep(0.3)
    a.fetch("begins again: what was locked came free")
    a.nothing("final with topics", share_session_epoch=FINAL)


@script
def share_acknowledged_ranges(d: Dialogue) -> None:
    """Ranges that the member has only half, or not at all, or that are none."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 10, 10)
    a = sharer(d, "a", topic)
    a.fetch("opens", max_records=10, batch_size=10)
    a.say("accepts 2 to 4", (2, 4, [ACCEPT]))
    a.say("half done", (3, 6, [ACCEPT]))
    a.say("done already", (2, 4, [ACCEPT]))
    a.say("beyond the end", (8, 12, [ACCEPT]))
    a.say("far beyond", (40, 45, [ACCEPT]))
    a.say("reversed", (8, 6, [ACCEPT]))
    a.say("negative", (-1, 1, [ACCEPT]))
    a.say("overlapping", (5, 7, [ACCEPT]), (7, 8, [ACCEPT]))
    a.say("descending", (8, 8, [ACCEPT]), (6, 6, [ACCEPT]))
    a.say("touching, one offset twice", (5, 6, [ACCEPT]), (6, 6, [ACCEPT]))
    a.say("too few types", (5, 8, [ACCEPT, ACCEPT]))
    a.say("too many types", (5, 5, [ACCEPT, ACCEPT]))
    a.say("no types", (5, 5, []))
    a.say("nothing")
    a.say("type 4", (5, 5, [RENEW]))
    a.say("type 9", (5, 5, [9]))
    a.say("type -1", (5, 5, [-1]))
    a.say("one bad of two", (5, 5, [ACCEPT]), (3, 3, [ACCEPT]))
    a.say("the lowest", (0, 1, [ACCEPT]))
    a.say("below the start", (0, 2, [ACCEPT]))
    a.say("across the start", (3, 6, [ACCEPT]))
    a.say("across the start with types", (4, 6, [ACCEPT, RELEASE, REJECT]))
    a.fetch("what is left", max_records=1, batch_size=1)
    a.fetch("and what is new", max_records=10, batch_size=10)
    a.say("across batches", (8, 14, [ACCEPT]))
    a.say("rest", (15, 19, [REJECT]))
    a.nothing("all done but some")


@script
def share_acknowledgement_mixes(d: Dialogue) -> None:
    """Each of the types, in one range and in several, for records of one batch and of two."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 8, 4)
    a = sharer(d, "a", topic)
    b = sharer(d, "b", topic)
    a.fetch("opens")
    b.nothing("opens in vain")
    types = [RELEASE, ACCEPT, RELEASE, REJECT, GAP, RELEASE, RELEASE, ACCEPT]
    a.say("one for each", (0, 7, types))
    b.fetch("gets what was released")
    b.say("gap for all", (2, 2, [GAP]))
    b.say("of another", (8, 9, [ACCEPT]))
    a.say("of another", (5, 6, [ACCEPT]))
    a.say("two and two", (8, 9, [RELEASE]), (10, 11, [REJECT, RELEASE]))
    b.fetch("gets more")
    b.say("a range over holes", (5, 9, [ACCEPT]))
    b.say("a range over done", (0, 6, [ACCEPT]))
    b.say("exactly its own", (0, 0, [ACCEPT]), (5, 6, [RELEASE, ACCEPT]), (8, 9, [ACCEPT]))
    a.fetch("the last")
    a.say("ends", (5, 5, [ACCEPT]), (11, 11, [ACCEPT]), share_session_epoch=FINAL)
    b.fetch("the very last")


@script
def share_deliveries_are_counted(d: Dialogue) -> None:
    """Released again and again: in smaller parts, then not any more."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 8)
    a = sharer(d, "a", topic)
    for round_ in range(40):
        answer = a.fetch(f"round {round_}", wait_ms=LONG_MS if round_ < 15 else NO_WAIT_MS)
        found = answer.responses and answer.responses[0].partitions[0].acquired_records
        if not found:
            break
        a.say(
            f"releases {round_}",
            *((one.first_offset, one.last_offset, [RELEASE]) for one in found),
        )
    produce(d, topic, 1)
    a.fetch("what comes after")


@script
def share_deliveries_of_parts(d: Dialogue) -> None:
    """Some of a batch are released for the fourth time while their neighbours are accepted."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 6, 6)
    a = sharer(d, "a", topic)
    for round_ in range(3):
        a.fetch(f"fetch {round_}")
        if round_ < 2:
            a.say(f"release {round_}", (0, 11, [RELEASE]))
    a.say("mixed", (0, 5, [ACCEPT, RELEASE, RELEASE, ACCEPT, RELEASE, RELEASE]))
    a.fetch("after")
    a.end()
    a.fetch("again")


@script
def share_locks_run_out(d: Dialogue) -> None:
    """Three seconds, by the group's configuration; said too late, and renewed in time.

    Both brokers answer other scripts at the same time: a renewal may be a second late.
    """
    topic = d.create_topic()
    from_earliest(d, topic, share_record_lock_duration_ms="3000")
    produce(d, topic, 4)
    a = sharer(d, "a", topic)
    b = sharer(d, "b", topic)
    a.fetch("opens")
    b.fetch("waits for the lock")
    a.say("too late", (1, 1, [ACCEPT]))
    b.say("accepts", (0, 1, [ACCEPT]))
    b.end()
    a.fetch("gets the rest")
    time.sleep(3.6)
    a.say("nobody has it", (2, 3, [ACCEPT]))
    a.version = 2
    a.fetch("gets it again")
    started = time.monotonic()
    for _ in range(3):
        time.sleep(1.3)
        a.say("renews", (2, 3, [RENEW]), is_renew_ack=True)
    assert time.monotonic() - started > 3.0
    a.say("renewed long enough", (2, 3, [ACCEPT]))


@script
def share_renewals(d: Dialogue) -> None:
    """What a request that renews may say; of what cannot be renewed."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 6)
    a = sharer(d, "a", topic, version=2)
    a.fetch("opens")
    renewal: dict[str, Any] = {"is_renew_ack": True, "topics": a.request([(0, 1, [RENEW])]).topics}
    quiet: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "wait_ms": 0}
    a.fetch("renews and fetches", **renewal)
    a.fetch("renews, waits", **(renewal | quiet | {"wait_ms": 1}))
    a.fetch("renews", **(renewal | quiet))
    a.fetch("renews without saying so", [(0, 1, [RENEW])], **quiet)
    a.say("renews without saying so", (0, 1, [RENEW]))
    a.say("says it renews and accepts", (0, 1, [ACCEPT]), is_renew_ack=True)
    a.say("renews what is done", (0, 1, [RENEW]), is_renew_ack=True)
    a.say("mixes", (2, 5, [RENEW, ACCEPT, RELEASE, RENEW]), is_renew_ack=True)
    a.say("accepts what was renewed", (2, 2, [ACCEPT]), (5, 5, [ACCEPT]))
    a.version = 1
    a.say("v1 renews", (4, 4, [RENEW]))


@script
def share_records_deleted_under_a_member(d: Dialogue) -> None:
    """DeleteRecords below, in the midst of, and beyond what is being worked on."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 5, 5, 5, 5)

    def delete(offset: int) -> None:
        partitions = [DeleteRecordsPartition(partition_index=0, offset=offset)]
        topics = [DeleteRecordsTopic(name=topic, partitions=partitions)]
        d.ask(f"delete up to {offset}", DeleteRecordsRequest(topics=topics, timeout_ms=10_000))

    a = sharer(d, "a", topic)
    a.fetch("opens", max_records=10, batch_size=5)
    delete(3)
    a.say("deleted ones", (0, 2, [ACCEPT]))
    a.say("half deleted", (2, 4, [ACCEPT]))
    delete(7)
    a.fetch("third batch", max_records=5, batch_size=5)
    a.say("half of the second batch", (5, 9, [RELEASE]))
    a.find("released, without what was deleted", max_records=5, batch_size=5)
    delete(15)
    a.say("all of it is gone", (10, 14, [ACCEPT]))
    a.find("rest", max_records=10, batch_size=5)
    a.say("rest with types", (15, 19, [ACCEPT, ACCEPT, ACCEPT, RELEASE, ACCEPT]))
    a.fetch("the last one")
    delete(20)
    produce(d, topic, 2)
    a.find("new ones")
    a.say("accepts them", (20, 21, [ACCEPT]))
    produce(d, topic, 4)
    delete(24)
    a.find("half of a batch")


@script
def share_isolation_levels(d: Dialogue) -> None:
    """Committed, aborted, open transactions to a group of either level."""
    topic = d.create_topic()
    committed, uncommitted = f"{d.name}-rc", f"{d.name}-ru"
    from_earliest(d, topic, committed, share_isolation_level="read_committed")
    from_earliest(d, topic, uncommitted, share_isolation_level="read_uncommitted")
    producer = Producer(d, d.name)
    producer.init()
    for commit in (True, False):
        producer.produce(topic, b"a", b"b")
        producer.produce(topic, b"c")
        producer.end(commit=commit)
        # Markers are written in their own time.
        producer.init()
    produce(d, topic, 2)
    producer.produce(topic, b"open")
    produce(d, topic, 1)
    rc, ru = (sharer(d, name, topic, group=name) for name in (committed, uncommitted))
    ru.fetch("reads all")
    rc.fetch("reads to the open one")
    ru.say("the markers, too", (0, 12, [ACCEPT]))
    rc.say("accepts aborted ones", (0, 9, [ACCEPT]))
    rc.say("gaps where none are", (0, 3, [ACCEPT, ACCEPT, ACCEPT, GAP]))
    rc.nothing("waits behind the open one")
    producer.end(commit=False)
    producer.init()
    rc.fetch("goes on behind it")
    ru.nothing("only a marker has come")


@script
def share_where_groups_begin(d: Dialogue) -> None:
    """`share.auto.offset.reset` with its values, and what is no value."""
    topic = d.create_topic()
    produce(d, topic, 2, 2)
    for number, value in enumerate(
        ("earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H3M4S", "by_duration:PT0S")
    ):
        configure(d, f"{d.name}-{number}", share_auto_offset_reset=value)
        begin_state(d, f"{d.name}-{number}", (topic, 1))
    members = [sharer(d, f"m{n}", topic, group=f"{d.name}-{n}") for n in range(5)]
    for member in members:
        member.nothing("opens")
    produce(d, topic, 1)
    for member in members:
        member.fetch("after one more")
    for value in ("none", "", "by_duration:", "by_duration:PT-1H", "by_duration:-PT1H",
                  "by_duration:1h", "EARLIEST", "by_duration:P1Y", "by_duration:pt1h",
                  "by_duration:PT", "by_duration:P1DT", "BY_DURATION:PT1H",
                  " earliest "):  # fmt: skip
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=f"{d.name}-bad",
            configs=[AlterableConfig(name="share.auto.offset.reset", value=value)],
        )
        d.ask(f"value {value!r}", IncrementalAlterConfigsRequest(resources=[resource]))
    for key, value in (
        ("share.isolation.level", "serializable"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.record.lock.duration.ms", "999"),
        ("share.record.lock.duration.ms", "60001"),
        ("share.record.lock.duration.ms", "soon"),
        ("share.session.timeout.ms", "1"),
        ("share.heartbeat.interval.ms", "1"),
        ("share.delivery.count.limit", "3"),
        ("share.partition.max.record.locks", "300"),
        ("share.renew.acknowledge.enable", "false"),
        ("share.nonsense", "1"),
    ):
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=f"{d.name}-bad",
            configs=[AlterableConfig(name=key, value=value)],
        )
        d.ask(f"{key}={value}", IncrementalAlterConfigsRequest(resources=[resource]))


@script
def share_topics_that_are_not_there(d: Dialogue) -> None:
    """Ids nobody knows, partitions that are none, topics deleted in the midst of it."""
    topic, other = d.create_topic(), d.create_topic("-2")
    configure(d, d.name, share_auto_offset_reset="earliest")
    begin_state(d, d.name, (topic, 1), (other, 1))
    produce(d, topic, 2)
    produce(d, other, 2)
    unknown = Sharer(d, d.name, "u", [UNKNOWN_TOPIC], connection=d.another_connection())
    unknown.nothing("opens")
    unknown.say("says", (0, 0, [ACCEPT]), share_session_epoch=1)
    unknown.nothing("goes on", share_session_epoch=2, topics=[])
    unknown.end()
    many = sharer(d, "p", topic, partitions=(0, 1, -1))
    many.fetch("opens with partitions that are none")
    many.say("says of them", (0, 0, [ACCEPT]))
    many.end()
    nil = Sharer(d, d.name, "n", [UUID(int=0)], connection=d.another_connection())
    nil.nothing("opens nil")
    stranger = sharer(d, "s", other)
    stranger.topics = [*stranger.topics, d.topic_id(topic)]
    stranger.nothing("opens", topics=stranger.request().topics[:1])
    stranger.say("says of a topic outside its session", (0, 0, [ACCEPT]))
    states = [DeleteTopicState(name=other)]
    d.ask("delete", DeleteTopicsRequest(topics=states, timeout_ms=10_000))
    time.sleep(0.5)
    stranger.topics = stranger.topics[:1]
    epoch = stranger.epoch
    stranger.nothing("after the deletion")
    stranger.say("says of a deleted one", (0, 1, [ACCEPT]), share_session_epoch=epoch + 1)


@script
def share_sizes_of_what_is_acquired(d: Dialogue) -> None:
    """`max_records` and `batch_size` with batches of several sizes; version 1 gives whole ones."""
    topic = d.create_topic()
    sizes = (1, 4, 1, 1, 10, 2, 2, 2, 3, 1, 1, 1, 5)
    produce(d, topic, *sizes)
    cases = [(1, 1), (2, 1), (5, 2), (6, 3), (7, 100), (500, 1), (500, 3), (500, 10), (10, 4),
             (0, 5)]  # fmt: skip
    groups = [f"{d.name}-{number}" for number in range(len(cases))]
    from_earliest(d, topic, *groups)
    for group, (max_records, batch_size) in zip(groups, cases, strict=True):
        m = sharer(d, f"{max_records}/{batch_size}", topic, group=group)
        for round_ in range(3):
            m.fetch(
                f"round {round_}",
                wait_ms=LONG_MS if max_records > 0 else NO_WAIT_MS,
                max_records=max_records,
                batch_size=batch_size,
            ) if round_ == 0 or max_records < 20 else None
    exact = [f"{d.name}-exact{number}" for number in range(4)]
    from_earliest(d, topic, *exact)
    for group, (max_records, batch_size) in zip(
        exact, [(1, 1), (3, 1), (7, 5), (500, 3)], strict=True
    ):
        m = sharer(d, f"exactly {max_records}/{batch_size}", topic, group=group, version=2)
        for round_ in range(3 if max_records < 20 else 1):
            m.fetch(
                f"round {round_}",
                max_records=max_records,
                batch_size=batch_size,
                share_acquire_mode=1,
            )


@script
def share_sizes_of_what_was_released(d: Dialogue) -> None:
    """Released parts of batches, with few records asked for."""
    topic = d.create_topic()
    produce(d, topic, 4, 6, 2, 2)
    groups = [f"{d.name}-{number}" for number in range(4)]
    from_earliest(d, topic, *groups)
    for group, (version, max_records) in zip(groups, [(1, 1), (1, 3), (1, 7), (2, 2)], strict=True):
        m = sharer(d, f"v{version} {max_records}", topic, group=group, version=version)
        m.fetch("all")
        m.say(
            "releases", (1, 2, [RELEASE]), (4, 7, [RELEASE]), (9, 9, [RELEASE]), (12, 13, [RELEASE])
        )
        for round_ in range(4):
            m.fetch(
                f"round {round_}",
                wait_ms=600,
                max_records=max_records,
                share_acquire_mode=int(version == 2),
            )


@script
def share_few_bytes(d: Dialogue) -> None:
    """`max_bytes` and `min_bytes`."""
    topic = d.create_topic(partitions=2)
    from_earliest(d, topic, partitions=2)
    produce(d, topic, 2, 2, 2)
    produce(d, topic, 1, partition=1)
    a = sharer(d, "a", topic, partitions=(0,))
    a.fetch("one byte", max_bytes=1)
    a.fetch("a hundred", max_bytes=100)
    a.nothing("zero", max_bytes=0)
    a.nothing("too many to wait for", min_bytes=100_000)
    a.nothing("nothing more")


@script
def share_sessions_change(d: Dialogue) -> None:
    """Partitions that come and go, and which of them the answers name."""
    topic = d.create_topic(partitions=3)
    from_earliest(d, topic, partitions=3)
    topic_id = d.topic_id(topic)
    a = sharer(d, "a", topic, partitions=(0, 1))
    a.nothing("opens")
    a.nothing("goes on")
    produce(d, topic, 1, partition=1)
    a.fetch("finds one")
    added = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition_index=2)])]
    a.nothing("adds 2", topics=added)
    a.nothing("adds 2 again", topics=added)
    produce(d, topic, 1, partition=2)
    a.fetch("finds it")
    gone = [ForgottenTopic(topic_id=topic_id, partitions=[1])]
    a.nothing("forgets 1", forgotten_topics_data=gone)
    produce(d, topic, 1, partition=1)
    a.nothing("is not told of it")
    a.nothing("forgets it again", forgotten_topics_data=gone)
    a.partitions = (1,)
    a.say("says of what it forgot", (0, 0, [ACCEPT]))
    a.fetch("says with a fetch of what it forgot", [(0, 0, [ACCEPT])])
    a.partitions = (0, 1, 2)
    a.nothing("adds and forgets", topics=added, forgotten_topics_data=[
        ForgottenTopic(topic_id=topic_id, partitions=[2])])  # fmt: skip
    a.nothing("forgets all", forgotten_topics_data=[
        ForgottenTopic(topic_id=topic_id, partitions=[0, 1, 2])])  # fmt: skip
    a.nothing("has none")
    b = sharer(d, "b")
    b.nothing("opens with none")
    b.nothing("goes on with none")
    b.end()


@script
def share_members_that_vanish(d: Dialogue) -> None:
    """What a member had is given to another when its session ends or its connection does."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, 2, 2, 2)
    a, b, c = (sharer(d, name, topic) for name in "abc")
    a.fetch("opens", max_records=2, batch_size=1)
    b.fetch("opens", max_records=2, batch_size=1)
    c.fetch("opens", max_records=2, batch_size=1)
    assert a.connection is not None
    a.connection.close()
    c.fetch("gets those of a")
    b.say("ends", (2, 2, [ACCEPT]), share_session_epoch=FINAL)
    c.fetch("gets what b left")
    b.nothing("opens again")
    c.connection, connection = d.another_connection(), c.connection
    c.say("goes on from elsewhere", (4, 5, [ACCEPT]))
    assert connection is not None
    connection.close()
    b.fetch("gets the rest")


@script
def share_most_in_flight(d: Dialogue) -> None:
    """Two thousand records of a partition may be in flight; what lies above waits."""
    topic = d.create_topic()
    from_earliest(d, topic)
    produce(d, topic, *(300 for _ in range(8)))
    a = sharer(d, "a", topic)

    def fetch(what: str, **fields: Any) -> None:
        # Only where records were acquired: what they are is of no interest here.
        request = a.request(max_records=1000, batch_size=1000, **fields)
        d.send(request, a.version, a.connection)
        found = d.receive(ApiKey.SHARE_FETCH, a.version, a.connection)
        a.epoch += 1
        ranges = [
            (one.first_offset, one.last_offset, one.delivery_count)
            for response in found.responses
            for partition in response.partitions
            for one in partition.acquired_records
        ]
        d.transcript.append(f"{what}: {found.error_code} {ranges}")

    for round_ in range(3):
        fetch(f"fetch {round_}", wait_ms=600)
    a.say("accepts some at the end", (1900, 1999, [ACCEPT]))
    fetch("still full", wait_ms=600)
    a.say("accepts the first", (0, 0, [ACCEPT]))
    fetch("one more", wait_ms=600)
    a.say("releases some", (100, 299, [RELEASE]))
    fetch("those come again", wait_ms=600)
    a.say("accepts many", (1, 299, [ACCEPT]))
    fetch("goes on", wait_ms=600)


@script
def share_acknowledgements_with_a_fetch(d: Dialogue) -> None:
    """The same as ShareAcknowledge, settled before what is fetched with it."""
    topic = d.create_topic(partitions=2)
    from_earliest(d, topic, partitions=2)
    produce(d, topic, 3, 3)
    a = sharer(d, "a", topic)
    a.fetch("opens", max_records=3, batch_size=3)
    a.fetch("accepts and fetches", [(0, 2, [ACCEPT, GAP, REJECT])])
    a.fetch("wrong", [(0, 2, [ACCEPT])], wait_ms=NO_WAIT_MS)
    a.fetch("not valid", [(2, 1, [ACCEPT])], wait_ms=NO_WAIT_MS)
    a.fetch("not owned", [(9, 9, [ACCEPT])], wait_ms=NO_WAIT_MS)
    a.partitions = (0, 1)
    a.fetch("of a partition it does not read", [(3, 3, [ACCEPT])], wait_ms=NO_WAIT_MS)
    a.partitions = (1,)
    a.fetch("of one with nothing", [(0, 0, [ACCEPT])], wait_ms=NO_WAIT_MS)
    a.partitions = (0,)
    a.fetch("last", [(1, 1, [ACCEPT])], share_session_epoch=FINAL)
    a.fetch("from the begin")
    a.say("the same partition twice", (4, 4, [ACCEPT]), topics=[
        AcknowledgeTopic(topic_id=a.topics[0], partitions=[
            AcknowledgePartition(partition_index=0, acknowledgement_batches=[
                AcknowledgedBatch(first_offset=first, last_offset=first, acknowledge_types=[1])])
            for first in (4, 5)])])  # fmt: skip
    a.nothing("what is left")
