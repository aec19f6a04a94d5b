"""Scripts about transactions: the coordinator, the partitions, and the groups' offsets.

`Producer` is what a client library keeps: producer id and epoch, one sequence per partition. Its
methods ask one request each; nothing is checked here, answers are compared elsewhere.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from protocol.records.builder import build_batch
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

READ_COMMITTED = 1
TIMESTAMP_MS = time.time_ns() // 1_000_000
"""Of now: records from long ago are deleted half a minute after a broker has started."""

# The newest versions before KIP-890's second part, and the newest of all.
OLD = {"init": 4, "produce": 11, "end": 4, "offsets": 4, "add_offsets": 3}
NEW = {"init": 5, "produce": 12, "end": 5, "offsets": 5, "add_offsets": 4}


@dataclass
class Producer:
    """A transactional producer over a dialogue; `versions` says which protocol it knows."""

    dialogue: Dialogue
    transactional_id: str | None
    versions: dict[str, int] = field(default_factory=lambda: NEW)
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def init(self, what: str = "init", *, timeout_ms: int = 60_000, **fields: Any) -> Any:
        """InitProducerId; takes over id and epoch when there are some in the answer."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms, **fields
        )
        answer = self.dialogue.ask(what, request, self.versions["init"])
        if answer is not None and answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer

    def add(self, topic: str, *partitions: int, what: str = "add", **fields: Any) -> Any:
        """AddPartitionsToTxn as clients send it (v3)."""
        values: dict[str, Any] = {
            "v3_and_below_transactional_id": self.transactional_id,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": self.epoch,
            "v3_and_below_topics": [
                AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))
            ],
        }
        return self.dialogue.ask(what, AddPartitionsToTxnRequest(**(values | fields)), 3)

    def produce(
        self,
        topic: str,
        *values: bytes,
        what: str = "produce",
        partition: int = 0,
        sequence: int | None = None,
        epoch: int | None = None,
        producer_id: int | None = None,
        transactional: bool = True,
        transactional_id: str | None = "same",
        version: int | None = None,
        as_is: bool = False,
    ) -> Any:
        """Produce one batch; overridden fields are a client's mistakes."""
        version = self.versions["produce"] if version is None else version
        expected = self.sequences.get((topic, partition), 0)
        data = build_batch(
            [(None, value, (), TIMESTAMP_MS) for value in values],
            producer_id=self.producer_id if producer_id is None else producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=expected if sequence is None else sequence,
            transactional=transactional,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id
            if transactional_id == "same"
            else transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=partition, records=data)]
                )
            ],
        )
        answer = self.dialogue.ask(what, request, version, as_is=as_is)
        if answer is not None and answer.responses[0].partition_responses[0].error_code == 0:
            self.sequences[topic, partition] = expected + len(values)
        return answer

    def add_offsets(self, group: str, *, what: str = "add offsets") -> Any:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id or "",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return self.dialogue.ask(what, request, self.versions["add_offsets"])

    def commit_offset(
        self, group: str, topic: str, offset: int, *, what: str = "commit offset", **fields: Any
    ) -> Any:
        """TxnOffsetCommit of partition 0."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=fields.pop("partition", 0),
            committed_offset=offset,
            committed_metadata=fields.pop("metadata", "m"),
        )
        values: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "group_id": group,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "topics": [TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        }
        version = fields.pop("version", self.versions["offsets"])
        return self.dialogue.ask(what, TxnOffsetCommitRequest(**(values | fields)), version)

    def end(self, *, commit: bool, what: str | None = None, **fields: Any) -> Any:
        """EndTxn; takes over the epoch that version 5 answers."""
        values: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "committed": commit,
        }
        version = fields.pop("version", self.versions["end"])
        what = what or ("commit" if commit else "abort")
        answer = self.dialogue.ask(what, EndTxnRequest(**(values | fields)), version)
        if answer is not None and answer.error_code == 0 and version >= 5:
            if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def describe(self, what: str = "describe") -> Any:
        """DescribeTransactions, when the transaction is in no state that passes by itself."""
        return self.dialogue.ask_until(
            what,
            DescribeTransactionsRequest(transactional_ids=[self.transactional_id or ""]),
            lambda a: "Prepare" not in a.transaction_states[0].transaction_state,
        )


def fetch(
    dialogue: Dialogue, topic: str, *, isolation: int = READ_COMMITTED, what: str = "fetch"
) -> Any:
    """Everything of partition 0 that the isolation level allows."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    return dialogue.ask(what, request, 12)


def fetch_ended(dialogue: Dialogue, topic: str, what: str = "fetch") -> Any:
    """As `fetch`, when no transaction is open any more."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )

    def is_ended(answer: Any) -> bool:
        part = answer.responses[0].partitions[0]
        return bool(part.last_stable_offset == part.high_watermark)

    return dialogue.ask_until(what, request, is_ended, 12)


def list_end(dialogue: Dialogue, topic: str, isolation: int, what: str) -> Any:
    """ListOffsets of the end, by isolation level."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        isolation_level=isolation, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    return dialogue.ask(what, request, 7)


def committed(
    dialogue: Dialogue,
    group: str,
    topic: str,
    *,
    stable: bool = True,
    what: str = "committed",
    until: int | None = None,
) -> Any:
    """OffsetFetch of partition 0; waits for an offset that arrives with a marker."""
    request = OffsetFetchRequest(
        require_stable=stable,
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])],
            )
        ],
    )
    if until is None:
        return dialogue.ask(what, request, 9)

    def is_there(answer: Any) -> bool:
        part = answer.groups[0].topics[0].partitions[0]
        return bool(part.error_code == 0 and part.committed_offset == until)

    return dialogue.ask_until(what, request, is_there, 9)


def producers(dialogue: Dialogue, topic: str, what: str = "producers") -> Any:
    """DescribeProducers of partition 0."""
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    return dialogue.ask(what, request)


# -- InitProducerId --------------------------------------------------------------------------------


@script
def init_without_transactional_id(d: Dialogue) -> None:
    """An idempotent producer: an id, epoch 0; a known pair cannot be bumped by anybody."""
    for version in range(6):
        d.ask(f"v{version}", InitProducerIdRequest(transaction_timeout_ms=-1), version)
    d.ask("with id", InitProducerIdRequest(producer_id=7, producer_epoch=3))
    d.ask("with id only", InitProducerIdRequest(producer_id=7))
    d.ask("with epoch only", InitProducerIdRequest(producer_epoch=3))


@script
def init_bad_fields(d: Dialogue) -> None:
    """What InitProducerId refuses."""
    Producer(d, "").init("empty transactional id")
    bad = Producer(d, d.name)
    bad.init("timeout 0", timeout_ms=0)
    bad.init("timeout -1", timeout_ms=-1)
    bad.init("timeout above the maximum", timeout_ms=15 * 60_000 + 1)
    bad.init("timeout at the maximum", timeout_ms=15 * 60_000)
    bad.init("id without epoch", producer_id=5)
    bad.init("epoch without id", producer_epoch=5)
    bad.init("unknown id and epoch", producer_id=123_456, producer_epoch=5)
    Producer(d, f"{d.name}-unseen").init("id of nobody", producer_id=123_456, producer_epoch=5)


@script
def init_again_bumps_the_epoch(d: Dialogue) -> None:
    """Every InitProducerId fences the epoch before; the pair in it may be the current or last."""
    p = Producer(d, d.name)
    for number in range(3):
        p.init(f"init {number}")
    p.init("with the current pair", producer_id=p.producer_id, producer_epoch=p.epoch)
    stale = {"producer_id": p.producer_id, "producer_epoch": p.epoch - 2}
    p.init("with a stale epoch", **stale)
    p.init("with the last epoch", producer_id=p.producer_id, producer_epoch=p.epoch - 1)
    p.init("with an epoch to come", producer_id=p.producer_id, producer_epoch=p.epoch + 5)
    p.describe()


@script
def init_with_two_phase_commit(d: Dialogue) -> None:
    """KIP-939 is not enabled: enable_2_pc and keep_prepared_txn in version 6, where served."""
    request = InitProducerIdRequest(transactional_id=d.name, transaction_timeout_ms=60_000)
    d.ask("v5", request, 5)


@script
def init_aborts_the_open_transaction(d: Dialogue) -> None:
    """A second instance takes over: the first one's transaction is aborted, the first is fenced."""
    topic = d.create_topic()
    old, new = Producer(d, d.name), Producer(d, d.name)
    old.init()
    old.produce(topic, b"a", b"b")
    old.describe()
    new.init("take over")
    fetch_ended(d, topic)
    old.produce(topic, b"c", what="zombie produces")
    old.add(topic, what="zombie adds")
    old.end(commit=True, what="zombie commits")
    old.end(commit=False, what="zombie aborts")
    old.add_offsets(d.name, what="zombie adds offsets")
    old.commit_offset(d.name, topic, 1, what="zombie commits an offset")
    old.init("zombie inits", producer_id=old.producer_id, producer_epoch=old.epoch)
    new.produce(topic, b"d")
    new.end(commit=True)
    fetch_ended(d, topic, "fetch at the end")


@script
def init_aborts_with_the_old_protocol(d: Dialogue) -> None:
    """The same, both knowing only the protocol before KIP-890's second part."""
    topic = d.create_topic()
    old, new = Producer(d, d.name, OLD), Producer(d, d.name, OLD)
    old.init()
    old.add(topic)
    old.produce(topic, b"a", b"b")
    new.init("take over")
    fetch_ended(d, topic)
    old.produce(topic, b"c", what="zombie produces")
    old.add(topic, what="zombie adds")
    old.end(commit=True, what="zombie commits")
    new.add(topic)
    new.produce(topic, b"d")
    new.end(commit=False)
    fetch_ended(d, topic, "fetch at the end")


# -- the life of a transaction ---------------------------------------------------------------------


@script
def commit_then_abort(d: Dialogue) -> None:
    """Version 2: partitions join by producing, the epoch grows with every end."""
    topic = d.create_topic()
    p = Producer(d, d.name)
    p.init()
    p.describe("nothing yet")
    p.produce(topic, b"1", b"2")
    p.describe("open")
    producers(d, topic, "open producers")
    list_end(d, topic, 0, "end uncommitted")
    list_end(d, topic, 1, "end committed")
    fetch(d, topic, what="open, committed")
    fetch(d, topic, isolation=0, what="open, uncommitted")
    p.end(commit=True)
    p.describe("committed")
    fetch_ended(d, topic, "after commit")
    p.produce(topic, b"3")
    p.end(commit=False)
    p.describe("aborted")
    fetch_ended(d, topic, "after abort")
    p.produce(topic, b"4")
    p.end(commit=True)
    fetch_ended(d, topic, "at the end")
    producers(d, topic, "producers at the end")
    list_end(d, topic, 1, "end")


@script
def commit_then_abort_old_protocol(d: Dialogue) -> None:
    """Before version 2: partitions are added explicitly, the epoch stays."""
    topic = d.create_topic()
    p = Producer(d, d.name, OLD)
    p.init()
    p.add(topic)
    p.produce(topic, b"1", b"2")
    p.describe("open")
    p.end(commit=True)
    p.describe("committed")
    p.add(topic)
    p.produce(topic, b"3")
    p.end(commit=False)
    p.describe("aborted")
    fetch_ended(d, topic)
    producers(d, topic, "producers at the end")


@script
def end_without_transaction(d: Dialogue) -> None:
    """EndTxn when nothing was added, in both protocols and twice."""
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{d.name}-{name}", versions)
        p.init(f"{name} init")
        p.end(commit=True, what=f"{name} commit of nothing")
        p.end(commit=False, what=f"{name} abort of nothing")
        p.end(commit=False, what=f"{name} abort of nothing again")
        p.describe(f"{name} describe")
    p = Producer(d, f"{d.name}-unknown")
    p.producer_id, p.epoch = 99, 0
    p.end(commit=True, what="of an unknown id")
    p.end(commit=True, what="of an unknown id, old", version=4)
    p.end(commit=True, what="of an empty id", transactional_id="")


@script
def end_twice(d: Dialogue) -> None:
    """A retried EndTxn, with the epoch before and the epoch after; and one of the other kind."""
    topic = d.create_topic()
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{d.name}-{name}", versions)
        p.init(f"{name} init")
        if name == "old":
            p.add(topic, what="old add")
        p.produce(topic, b"x", what=f"{name} produce")
        before = p.epoch
        p.end(commit=True, what=f"{name} commit")
        p.end(commit=True, producer_epoch=before, what=f"{name} commit again")
        p.end(commit=False, producer_epoch=before, what=f"{name} abort after commit")
        p.produce(topic, b"y", what=f"{name} produce after")
        p.describe(f"{name} describe")


@script
def end_with_wrong_producer(d: Dialogue) -> None:
    """Another producer id, an epoch to come, an old epoch."""
    topic = d.create_topic()
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{d.name}-{name}", versions)
        p.init(f"{name} init")
        p.init(f"{name} init again")
        if name == "old":
            p.add(topic, what="old add")
        p.produce(topic, b"x", what=f"{name} produce")
        p.end(commit=True, producer_id=424_242, what=f"{name} other id")
        p.end(commit=True, producer_epoch=p.epoch + 1, what=f"{name} epoch to come")
        p.end(commit=True, producer_epoch=p.epoch - 1, what=f"{name} epoch before")
        p.end(commit=True, producer_epoch=-1, what=f"{name} epoch -1")
        p.end(commit=True, what=f"{name} commit")


@script
def add_partitions_edges(d: Dialogue) -> None:
    """AddPartitionsToTxn v3: unknown ids, partitions and topics, twice, none."""
    topic = d.create_topic(partitions=2)
    p = Producer(d, d.name, OLD)
    p.producer_id, p.epoch = 77, 0
    p.add(topic, what="unknown transactional id")
    p.init()
    p.add(topic, 0, 1, what="both")
    p.add(topic, 0, what="again")
    p.add(topic, 7, what="no such partition")
    p.add(f"{topic}-none", 0, what="no such topic")
    p.add(topic, 0, 9, what="one good, one not")
    p.add(topic, v3_and_below_topics=[], what="nothing")
    p.add(topic, v3_and_below_producer_id=424_242, what="other id")
    p.add(topic, v3_and_below_producer_epoch=p.epoch + 1, what="epoch to come")
    p.add(topic, v3_and_below_transactional_id="", what="empty transactional id")
    p.add("__consumer_offsets", 0, what="internal topic")
    p.describe()
    p.end(commit=False)


@script
def add_partitions_of_brokers(d: Dialogue) -> None:
    """AddPartitionsToTxn v4-5, which brokers use, several transactions in one; verify only.

    Not asked: no transaction at all, which Kafka never answers.
    """
    topic = d.create_topic(partitions=2)
    p = Producer(d, d.name, OLD)
    p.init()

    def transaction(*partitions: int, verify: bool, **fields: Any) -> AddPartitionsToTxnTransaction:
        values: dict[str, Any] = {
            "transactional_id": d.name,
            "producer_id": p.producer_id,
            "producer_epoch": p.epoch,
            "verify_only": verify,
            "topics": [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        }
        return AddPartitionsToTxnTransaction(**(values | fields))

    for version in (4, 5):
        for what, asked in (
            ("verify before", [transaction(0, verify=True)]),
            ("add", [transaction(0, verify=False)]),
            ("verify", [transaction(0, 1, verify=True)]),
            ("other id", [transaction(0, verify=True, producer_id=424_242)]),
            ("other epoch", [transaction(0, verify=True, producer_epoch=9)]),
            ("nobody", [transaction(0, verify=True, transactional_id=f"{d.name}-nobody")]),
            ("no such partition", [transaction(9, verify=False)]),
            (
                "two",
                [
                    transaction(1, verify=True),
                    transaction(0, verify=False, transactional_id=f"{d.name}-nobody"),
                ],
            ),
        ):
            d.ask(f"v{version} {what}", AddPartitionsToTxnRequest(transactions=asked), version)
        p.describe(f"v{version} describe")
        p.end(commit=False, what=f"v{version} abort")
        p.describe(f"v{version} ended")


# -- producing -------------------------------------------------------------------------------------


@script
def produce_without_adding(d: Dialogue) -> None:
    """An old client that forgot AddPartitionsToTxn is found out by verification (KIP-890)."""
    topic = d.create_topic()
    for version in (3, 8, 9, 10, 11):
        p = Producer(d, f"{d.name}-{version}", OLD)
        p.init(f"v{version} init")
        p.produce(topic, b"x", what=f"v{version} produce", version=version)
        p.describe(f"v{version} describe")
    fetch(d, topic, isolation=0)


@script
def produce_after_the_end(d: Dialogue) -> None:
    """A record that comes after its transaction's marker, with the epoch before and after."""
    topic = d.create_topic()
    p = Producer(d, d.name)
    p.init()
    p.produce(topic, b"1")
    before = p.epoch
    p.end(commit=True)
    fetch_ended(d, topic, "committed")
    p.produce(topic, b"late", epoch=before, sequence=1, what="late")
    old = Producer(d, f"{d.name}-old", OLD)
    old.init("old init")
    old.add(topic, what="old add")
    old.produce(topic, b"2", what="old produce")
    old.end(commit=True, what="old commit")
    old.describe("old ended")
    fetch_ended(d, topic, "old committed")
    old.produce(topic, b"late", what="old late")
    fetch_ended(d, topic, "at the end")


@script
def produce_mistakes(d: Dialogue) -> None:
    """Transactional records with fields that do not fit together."""
    topic = d.create_topic()
    p = Producer(d, d.name)
    p.init()
    p.produce(topic, b"x", what="no transactional id in the request", transactional_id=None)
    p.produce(topic, b"x", what="plain batch, transactional request", transactional=False)
    p.produce(topic, b"x", what="other transactional id", transactional_id=f"{d.name}-other")
    p.produce(topic, b"x", what="first sequence not 0", sequence=5)
    p.produce(topic, b"x", what="epoch to come", epoch=p.epoch + 1)
    p.produce(topic, b"x", what="other producer id", producer_id=424_242)
    p.produce(topic, b"x", what="no such partition", partition=4)
    p.produce(topic, b"x", what="good")
    # The plain one had 0. A sequence of before the transaction is no retry here, unlike in Kafka.
    p.produce(topic, b"x", what="again", sequence=1)
    p.produce(topic, b"x", what="gap", sequence=9)
    p.describe()
    p.end(commit=True)
    fetch_ended(d, topic)


@script
def produce_idempotent_inside_transaction(d: Dialogue) -> None:
    """A plain idempotent batch of a producer that has an open transaction."""
    topic = d.create_topic()
    p = Producer(d, d.name)
    p.init()
    p.produce(topic, b"1")
    p.produce(topic, b"2", transactional=False, transactional_id=None, what="plain in between")
    p.end(commit=False)
    fetch_ended(d, topic)
    p.produce(topic, b"3", transactional=False, transactional_id=None, what="plain after")
    fetch_ended(d, topic, "at the end")


@script
def two_transactions_in_one_log(d: Dialogue) -> None:
    """The last stable offset is the first open transaction's; aborted ones are listed."""
    topic = d.create_topic()
    first, second = Producer(d, f"{d.name}-1"), Producer(d, f"{d.name}-2")
    first.init("first init")
    second.init("second init")
    first.produce(topic, b"1a")
    second.produce(topic, b"2a")
    first.produce(topic, b"1b")
    second.end(commit=False, what="second aborts")
    second.describe()
    fetch(d, topic, what="held back by the first")
    list_end(d, topic, 1, "end held back")
    producers(d, topic)
    first.end(commit=True, what="first commits")
    fetch_ended(d, topic)


# -- offsets in transactions -----------------------------------------------------------------------


@script
def transactional_offsets(d: Dialogue) -> None:
    """Offsets appear with the commit, vanish with the abort; unstable in between."""
    topic = d.create_topic()
    p = Producer(d, d.name)
    p.init()
    p.commit_offset(d.name, topic, 5)
    committed(d, d.name, topic, what="pending, stable wanted")
    committed(d, d.name, topic, stable=False, what="pending, anything")
    p.describe("open")
    p.end(commit=True)
    committed(d, d.name, topic, until=5, what="committed")
    p.commit_offset(d.name, topic, 9)
    p.end(commit=False)
    p.describe("aborted")
    committed(d, d.name, topic, until=5, what="after abort")


@script
def transactional_offsets_old_protocol(d: Dialogue) -> None:
    """With AddOffsetsToTxn first, in all versions of TxnOffsetCommit."""
    topic = d.create_topic()
    p = Producer(d, d.name, OLD)
    p.init()
    for version in range(5):
        p.add_offsets(d.name, what=f"v{version} add offsets")
        p.commit_offset(d.name, topic, version, version=version, what=f"v{version} commit offset")
        p.end(commit=True, what=f"v{version} commit")
        committed(d, d.name, topic, until=version, what=f"v{version} committed")


@script
def transactional_offsets_edges(d: Dialogue) -> None:
    """TxnOffsetCommit with a wrong producer, group, generation, member, metadata."""
    topic = d.create_topic()
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{d.name}-{name}", versions)
        p.init(f"{name} init")
        group = f"{d.name}-{name}"
        p.commit_offset(group, topic, 1, what=f"{name} first")
        p.commit_offset("", topic, 1, what=f"{name} empty group")
        p.commit_offset(group, topic, 1, producer_id=424_242, what=f"{name} other id")
        p.commit_offset(group, topic, 1, producer_epoch=p.epoch + 1, what=f"{name} epoch to come")
        p.commit_offset(group, topic, 1, generation_id=3, what=f"{name} generation")
        p.commit_offset(group, topic, 1, member_id="nobody", what=f"{name} member")
        p.commit_offset(
            group, topic, 1, generation_id=1, member_id="nobody", what=f"{name} member, generation"
        )
        p.commit_offset(group, topic, 1, group_instance_id="i", what=f"{name} instance")
        p.commit_offset(group, topic, 1, metadata="m" * 4097, what=f"{name} long metadata")
        p.commit_offset(group, topic, -5, what=f"{name} negative offset")
        p.commit_offset(group, topic, 1, partition=9, what=f"{name} no such partition")
        p.commit_offset(group, f"{topic}-none", 1, what=f"{name} no such topic")
        p.commit_offset(group, topic, 1, transactional_id="", what=f"{name} empty id")
        p.commit_offset(group, topic, 1, topics=[], what=f"{name} nothing")
        p.end(commit=False, what=f"{name} abort")


@script
def add_offsets_edges(d: Dialogue) -> None:
    """AddOffsetsToTxn with wrong producers and groups."""
    p = Producer(d, d.name, OLD)
    p.producer_id, p.epoch = 77, 0
    p.add_offsets(d.name, what="unknown id")
    p.init()
    p.add_offsets(d.name, what="good")
    p.add_offsets("", what="empty group")
    p.epoch += 1
    p.add_offsets(d.name, what="epoch to come")
    p.epoch -= 1
    p.producer_id += 1_000_000
    p.add_offsets(d.name, what="other id")
    p.producer_id -= 1_000_000
    p.end(commit=False)


@script
def offsets_and_records_together(d: Dialogue) -> None:
    """Read-process-write: both arrive with one commit."""
    source, sink = d.create_topic("-source"), d.create_topic("-sink")
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{d.name}-{name}", versions)
        p.init(f"{name} init")
        if name == "old":
            p.add(sink, what="old add")
            p.add_offsets(d.name, what="old add offsets")
        p.produce(sink, b"x", what=f"{name} produce")
        p.commit_offset(d.name, source, 3, what=f"{name} commit offset")
        p.describe(f"{name} open")
        p.end(commit=True, what=f"{name} commit")
        committed(d, d.name, source, until=3, what=f"{name} committed")
        fetch_ended(d, sink, f"{name} fetch")


# -- looking and cleaning up -----------------------------------------------------------------------


@script
def describe_transactions_edges(d: Dialogue) -> None:
    """Ids nobody used, empty, twice."""
    for ids in ([f"{d.name}-nobody"], [""], [f"{d.name}-a", f"{d.name}-b"], []):
        d.ask(f"describe {len(ids)}", DescribeTransactionsRequest(transactional_ids=ids))


@script
def list_transactions_filters(d: Dialogue) -> None:
    """By state, producer, duration and pattern (v2)."""
    topic = d.create_topic()
    prefix = d.name
    idle, open_, ended = (Producer(d, f"{prefix}-{n}") for n in ("idle", "open", "ended"))
    for p in (idle, open_, ended):
        p.init()
    open_.produce(topic, b"x")
    ended.produce(topic, b"y")
    ended.end(commit=True)
    ended.describe()

    def mine(what: str, **fields: Any) -> None:
        answer = d.ask_quietly(ListTransactionsRequest(**fields))
        answer.transaction_states = [
            t for t in answer.transaction_states if t.transactional_id.startswith(prefix)
        ]
        d.note(what, answer)

    mine("all")
    mine("ongoing", state_filters=["Ongoing"])
    mine("two states", state_filters=["Empty", "CompleteCommit"])
    mine("unknown state", state_filters=["Nonsense", "Ongoing"])
    mine("only unknown", state_filters=["Nonsense"])
    mine("lower case", state_filters=["ongoing"])
    mine("by producer", producer_id_filters=[open_.producer_id])
    mine("by nobody", producer_id_filters=[987_654])
    mine("long running", duration_filter=1_000_000)
    mine("running at all", duration_filter=0)
    mine("pattern", transactional_id_pattern=f"{prefix}-(idle|open)")
    mine("pattern of a part", transactional_id_pattern="idle")
    mine("empty pattern", transactional_id_pattern="")
    d.ask("bad pattern", ListTransactionsRequest(transactional_id_pattern="(["))
    open_.end(commit=False)


@script
def describe_producers_edges(d: Dialogue) -> None:
    """No such partition, no such topic, an empty log, an internal topic."""
    topic = d.create_topic()
    producers(d, topic, "empty")
    producers(d, f"{topic}-none", "no such topic")
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[3])])
    d.ask("no such partition", request)
    p = Producer(d, None)
    p.init()
    p.produce(topic, b"x", b"y", transactional=False)
    producers(d, topic, "idempotent")


@script
def markers_by_hand(d: Dialogue) -> None:
    """WriteTxnMarkers as an administrator sends it to end a hanging transaction."""
    topic = d.create_topic()
    p = Producer(d, d.name, OLD)
    p.init()
    p.init("init again")
    p.add(topic)
    p.produce(topic, b"x")

    def marker(what: str, version: int = 1, **fields: Any) -> None:
        values: dict[str, Any] = {
            "producer_id": p.producer_id,
            "producer_epoch": p.epoch,
            "transaction_result": False,
            "coordinator_epoch": 0,
            "topics": [WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        }
        request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(**(values | fields))])
        d.ask(what, request, version)

    for version in (1, 2):
        marker(f"v{version} epoch too old", version, producer_epoch=p.epoch - 1)
    nowhere = [WritableTxnMarkerTopic(name=topic, partition_indexes=[5])]
    marker("no such partition", topics=nowhere)
    marker("nothing", topics=[])
    marker("no partition", topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[])])
    marker("abort")
    fetch_ended(d, topic)
    producers(d, topic)
    marker("coordinator epoch before", coordinator_epoch=-1)
    marker("abort again")
    fetch(d, topic, what="at the end")
    p.end(commit=False)


@script
def transaction_timeout(d: Dialogue) -> None:
    """The coordinator aborts what takes too long, and fences who comes late."""
    topic = d.create_topic()
    for name, versions in (("new", NEW), ("old", OLD)):
        p = Producer(d, f"{d.name}-{name}", versions)
        p.init(f"{name} init", timeout_ms=400)
        if name == "old":
            p.add(topic, what="old add")
        p.produce(topic, name.encode(), what=f"{name} produce")
        d.ask_until(
            f"{name} aborted",
            DescribeTransactionsRequest(transactional_ids=[p.transactional_id or ""]),
            lambda a: a.transaction_states[0].transaction_state == "CompleteAbort",
        )
        fetch_ended(d, topic, f"{name} fetch")
        p.produce(topic, b"late", what=f"{name} produces late")
        p.add(topic, what=f"{name} adds late")
        p.end(commit=True, what=f"{name} commits late")
        p.end(commit=False, what=f"{name} aborts late")
        p.commit_offset(d.name, topic, 1, what=f"{name} commits an offset late")
        p.init(f"{name} inits with its pair", producer_id=p.producer_id, producer_epoch=p.epoch)
        p.init(f"{name} inits anew")
        if name == "old":
            p.add(topic, what="old add again")
        p.produce(topic, b"again", what=f"{name} produces again")
        p.end(commit=True, what=f"{name} commits again")
        fetch_ended(d, topic, f"{name} fetch at the end")
