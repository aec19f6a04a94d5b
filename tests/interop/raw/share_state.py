"""Scripts about the share coordinator (KIP-932): what a partition's leader asks it to keep.

Clients never send these requests; brokers do, with the rights of the cluster.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from protocol.messages import (
    delete_share_group_state as delete_codec,
)
from protocol.messages import (
    initialize_share_group_state as initialize_codec,
)
from protocol.messages import (
    read_share_group_state as read_codec,
)
from protocol.messages import (
    read_share_group_state_summary as summary_codec,
)
from protocol.messages import (
    write_share_group_state as write_codec,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
SHARE = 2
UNKNOWN_TOPIC = UUID(int=0xFEED)


class State:
    """One share-partition's state, as a leader sees it; each step is one request."""

    def __init__(self, d: Dialogue, topic: str, partition: int = 0) -> None:
        self.dialogue = d
        self.group = d.name
        self.topic_id = d.topic_id(topic)
        self.partition = partition
        key = f"{self.group}:{_kafka_text(self.topic_id)}:{partition}"
        d.wait(
            lambda: (
                d.ask_quietly(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), 6)
                .coordinators[0]
                .error_code
                == 0
            ),
            "share coordinator",
        )

    def initialize(self, what: str, epoch: int, start: int, **fields: Any) -> Any:
        """InitializeShareGroupState."""
        one = initialize_codec.PartitionData(
            partition=fields.get("partition", self.partition), state_epoch=epoch, start_offset=start
        )
        topic = initialize_codec.InitializeStateData(
            topic_id=fields.get("topic_id", self.topic_id), partitions=[one]
        )
        return self.dialogue.ask(
            what,
            initialize_codec.InitializeShareGroupStateRequest(
                group_id=fields.get("group", self.group), topics=[topic]
            ),
        )

    def read(self, what: str, leader_epoch: int, **fields: Any) -> Any:
        """ReadShareGroupState."""
        one = read_codec.PartitionData(
            partition=fields.get("partition", self.partition), leader_epoch=leader_epoch
        )
        topic = read_codec.ReadStateData(
            topic_id=fields.get("topic_id", self.topic_id), partitions=[one]
        )
        return self.dialogue.ask(
            what,
            read_codec.ReadShareGroupStateRequest(
                group_id=fields.get("group", self.group), topics=[topic]
            ),
        )

    def summary(self, what: str, leader_epoch: int = 0, version: int = 1, **fields: Any) -> Any:
        """ReadShareGroupStateSummary."""
        one = summary_codec.PartitionData(
            partition=fields.get("partition", self.partition), leader_epoch=leader_epoch
        )
        topic = summary_codec.ReadStateSummaryData(
            topic_id=fields.get("topic_id", self.topic_id), partitions=[one]
        )
        return self.dialogue.ask(
            what,
            summary_codec.ReadShareGroupStateSummaryRequest(
                group_id=fields.get("group", self.group), topics=[topic]
            ),
            version,
        )

    def write(
        self,
        what: str,
        epoch: int,
        leader_epoch: int,
        start: int,
        *batches: tuple[int, int, int, int],
        version: int = 1,
        done: int = 0,
        **fields: Any,
    ) -> Any:
        """WriteShareGroupState."""
        one = write_codec.PartitionData(
            partition=fields.get("partition", self.partition),
            state_epoch=epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=done,
            state_batches=_batches(batches),
        )
        topic = write_codec.WriteStateData(
            topic_id=fields.get("topic_id", self.topic_id), partitions=[one]
        )
        return self.dialogue.ask(
            what,
            write_codec.WriteShareGroupStateRequest(
                group_id=fields.get("group", self.group), topics=[topic]
            ),
            version,
        )

    def delete(self, what: str, **fields: Any) -> Any:
        """DeleteShareGroupState."""
        one = delete_codec.PartitionData(partition=fields.get("partition", self.partition))
        topic = delete_codec.DeleteStateData(
            topic_id=fields.get("topic_id", self.topic_id), partitions=[one]
        )
        return self.dialogue.ask(
            what,
            delete_codec.DeleteShareGroupStateRequest(
                group_id=fields.get("group", self.group), topics=[topic]
            ),
        )


def _batches(batches: Sequence[tuple[int, int, int, int]]) -> list[write_codec.StateBatch]:
    return [
        write_codec.StateBatch(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
        )
        for first, last, state, count in batches
    ]


def _kafka_text(topic_id: UUID) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


@script
def share_state_epochs(d: Dialogue) -> None:
    """State and leader epochs of the past and of the future."""
    s = State(d, d.create_topic())
    s.summary("summary of nothing")
    s.write("write nothing known", 0, 0, 0, (0, 4, ACKNOWLEDGED, 1))
    s.delete("delete nothing")
    s.read("read nothing", 0)
    s.summary("summary after a read")
    s.initialize("initialize", 1, 10)
    s.initialize("again", 1, 20)
    s.read("read", 3)
    s.read("read with an older leader epoch", 2)
    s.summary("summary v0", version=0)
    s.summary("summary", 0)
    s.initialize("with an older state epoch", 0, 30)
    s.write("older leader epoch", 1, 2, 10, (10, 14, ACKNOWLEDGED, 1))
    s.write("older state epoch", 0, 3, 10, (10, 14, ACKNOWLEDGED, 1))
    s.write("newer state epoch", 2, 3, 10, (10, 14, ACKNOWLEDGED, 1))
    s.write("newer leader epoch", 1, 4, 10, (10, 14, ACKNOWLEDGED, 1))
    s.write("leader epoch -1", 1, -1, 10, (10, 14, ACKNOWLEDGED, 1))
    s.read("read", 4)
    s.read("read with leader epoch -1", -1)
    s.initialize("newer state epoch", 5, 100)
    s.read("read anew", 0)
    s.initialize("state epoch -1", -1, 100)
    s.delete("delete")
    s.delete("delete again")
    s.read("read what was deleted", 0)
    s.write("write what was deleted", 5, 0, 100)


@script
def share_state_batches(d: Dialogue) -> None:
    """Batches that overlap what is kept, that lie below the start, that are none."""
    s = State(d, d.create_topic())
    s.initialize("initialize", 0, 0)
    s.read("read", 0)
    s.write("some", 0, 0, 0, (0, 9, AVAILABLE, 1), (10, 19, ACKNOWLEDGED, 1), done=10)
    s.summary("counted")
    s.write("inside", 0, 0, 0, (3, 5, ARCHIVED, 5))
    s.read("cut", 0)
    s.write("over two", 0, 0, 0, (8, 12, AVAILABLE, 2))
    s.read("over two", 0)
    s.write("lower count", 0, 0, 0, (8, 12, ACKNOWLEDGED, 1))
    s.write("lower state", 0, 0, 0, (3, 5, AVAILABLE, 5))
    s.read("who wins", 0)
    s.write("neighbours", 0, 0, 0, (20, 24, ACKNOWLEDGED, 1), (25, 29, ACKNOWLEDGED, 1))
    s.write("start moves", 0, 0, 4)
    s.read("below the start is gone", 0)
    s.write("start moves back", 0, 0, 2)
    s.read("start", 0)
    s.write("below the start", 0, 0, 4, (0, 1, ARCHIVED, 1))
    s.write("start -1", 0, 0, -1, (30, 31, ARCHIVED, 1))
    s.read("start now", 0)
    s.write("beyond all", 0, 0, 100, done=7)
    s.read("empty", 0)
    s.summary("at the end")
    s.write("v0", 0, 0, 101, version=0)
    s.summary("after v0")
    s.write("reversed", 0, 0, 101, (120, 110, AVAILABLE, 1))
    s.write("unsorted", 0, 0, 101, (140, 149, AVAILABLE, 1), (130, 139, AVAILABLE, 1))
    s.write("overlapping in itself", 0, 0, 101, (150, 159, AVAILABLE, 1), (155, 165, AVAILABLE, 2))
    s.read("at last", 0)


@script
def share_state_of_whom(d: Dialogue) -> None:
    """Topics, partitions and groups that are not there or are no names."""
    s = State(d, d.create_topic())
    for what, fields in (
        ("unknown topic", {"topic_id": UNKNOWN_TOPIC}),
        ("nil topic", {"topic_id": UUID(int=0)}),
        ("unknown partition", {"partition": 7}),
        ("negative partition", {"partition": -1}),
        ("empty group", {"group": ""}),
        ("another group", {"group": f"{d.name}-2"}),
    ):
        s.initialize(f"initialize {what}", 0, 0, **fields)
        s.read(f"read {what}", 0, **fields)
        s.write(f"write {what}", 0, 0, 0, (0, 0, ACKNOWLEDGED, 1), **fields)
        s.summary(f"summary {what}", **fields)
        s.delete(f"delete {what}", **fields)
    d.ask(
        "initialize none",
        initialize_codec.InitializeShareGroupStateRequest(group_id=d.name, topics=[]),
    )
    d.ask("read none", read_codec.ReadShareGroupStateRequest(group_id=d.name, topics=[]))
    d.ask("write none", write_codec.WriteShareGroupStateRequest(group_id=d.name, topics=[]))
    d.ask("delete none", delete_codec.DeleteShareGroupStateRequest(group_id=d.name, topics=[]))
    d.ask(
        "summary none", summary_codec.ReadShareGroupStateSummaryRequest(group_id=d.name, topics=[])
    )
    topic = initialize_codec.InitializeStateData(topic_id=s.topic_id, partitions=[])
    d.ask(
        "initialize no partitions",
        initialize_codec.InitializeShareGroupStateRequest(group_id=d.name, topics=[topic]),
    )
    keys = ["nonsense", f"{d.name}:{s.topic_id}:0", f"{d.name}:{_kafka_text(s.topic_id)}:x",
            f"{d.name}:{_kafka_text(s.topic_id)}:-1", f":{_kafka_text(s.topic_id)}:0", "",
            f"a:b:{_kafka_text(s.topic_id)}:0"]  # fmt: skip
    for number, key in enumerate(keys):
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        answer = d.ask_quietly(request, 6)
        d.transcript.append(f"find {number}: {answer.coordinators[0].error_code}")
    d.ask("find with v5", FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["a"]), 5)
