"""The leader that a client is sent to, with the answer that this broker does not lead (KIP-951).

    NOT_LEADER_OR_FOLLOWER, of a Fetch also FENCED_LEADER_EPOCH
        └──> (leader id, leader epoch) beside the error, and where that broker listens

So a client goes to the next leader at once, and asks no broker for metadata. Both are read from the
image, which may be newer than what the client knows, or older: it compares leader epochs.

Source: Kafka, KafkaApis.getCurrentLeader.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from protocol.hot.wire import NodeEndpoint

PRODUCE_CODES: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER})
FETCH_CODES: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
PRODUCE_FROM_VERSION: Final = 10
FETCH_FROM_VERSION: Final = 12


class PartitionResponse(Protocol):
    """A partition's part of an answer."""

    index: int
    error_code: int
    current_leader: tuple[int, int] | None


class LeaderHints:
    """See the module."""

    __slots__ = ("_image",)

    def __init__(self, image: "Callable[[], ClusterImage]") -> None:
        """`image`: the newest."""
        self._image = image

    def add(
        self,
        topics: "Iterable[tuple[str | bytes, Sequence[PartitionResponse]]]",
        codes: frozenset[ErrorCode],
        listener: str,
    ) -> "list[NodeEndpoint]":
        """Name the leaders of refused partitions in their answers.

        Args:
            topics: By name, or by the sixteen bytes of their ids.
            codes: Errors that get a leader; others are left as they are.
            listener: The client's: brokers are named as it can reach them.

        Returns:
            (node id, host, port, rack) of those leaders, each once; without those that do not have
            the listener.
        """
        image = self._image()
        leaders: dict[int, None] = {}
        for topic, responses in topics:
            name = topic if isinstance(topic, str) else image.name_of(topic)
            if name is None:
                continue
            for response in responses:
                if response.error_code not in codes:
                    continue
                partition = image.partition(name, response.index)
                if partition is not None and partition.leader >= 0:
                    response.current_leader = (partition.leader, partition.leader_epoch)
                    leaders[partition.leader] = None
        endpoints: list[NodeEndpoint] = []
        for leader in leaders:
            broker = image.brokers.get(leader)
            endpoint = None if broker is None else broker.listeners.get(listener)
            if broker is not None and endpoint is not None:
                endpoints.append((leader, endpoint.host, endpoint.port, broker.rack))
        return endpoints
