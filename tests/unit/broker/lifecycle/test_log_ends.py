"""Ends of logs come from the brokers that have them, in the leader epoch that is asked about."""

from types import SimpleNamespace
from typing import Any

from broker.controller.active.log_recovery import Asked, LogEnd
from broker.lifecycle.log_ends import LogEnds
from broker.peers.errors import PeerUnavailableError
from protocol.error_codes import ErrorCode
from protocol.message import Message
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

ZERO, ONE = Asked("t", 0, 5), Asked("t", 1, 6)


class Peers:
    """Broker 2 answers for partition 0 and is not in the epoch of partition 1; 3 is away."""

    async def request(
        self, node_id: int, message: Message, version: int, *, timeout_ms: float, use: str
    ) -> Message:
        assert isinstance(message, ListOffsetsRequest)
        assert (message.replica_id, version, use, timeout_ms) == (-2, 7, "recovery", 100.0)
        if node_id == 3:
            raise PeerUnavailableError(3, sent=False, reason="is away")
        epochs = {p.partition_index: p.current_leader_epoch for p in message.topics[0].partitions}
        assert epochs == {0: 5, 1: 6}
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name="t",
                    partitions=[
                        ListOffsetsPartitionResponse(partition_index=0, offset=9, leader_epoch=4),
                        ListOffsetsPartitionResponse(
                            partition_index=1, error_code=int(ErrorCode.FENCED_LEADER_EPOCH)
                        ),
                    ],
                )
            ]
        )


def ends_of_broker_1(latest_epoch: int | None) -> LogEnds:
    log = SimpleNamespace(
        log_end_offset=12, leader_epochs=SimpleNamespace(latest_epoch=latest_epoch)
    )
    partition = SimpleNamespace(leader_epoch=5, log=log)
    replicas: Any = SimpleNamespace(
        replica_of=lambda topic, _index: partition if topic == "t" else None
    )
    return LogEnds(1, Peers(), replicas)


async def test_own_replicas_answer_without_a_request() -> None:
    """Those that are open, in that epoch; an empty log has none."""
    gone = Asked("gone", 0, 5)
    assert await ends_of_broker_1(4).ask(1, [ZERO, ONE, gone], 100.0) == {ZERO: LogEnd(4, 12)}
    assert await ends_of_broker_1(None).ask(1, [ZERO], 100.0) == {ZERO: LogEnd(-1, 12)}


async def test_others_are_asked_as_the_debugging_replica() -> None:
    """What they refuse is left out, and so is who cannot be reached."""
    ends = ends_of_broker_1(4)
    assert await ends.ask(2, [ZERO, ONE], 100.0) == {ZERO: LogEnd(4, 9)}
    assert await ends.ask(3, [ZERO, ONE], 100.0) == {}
