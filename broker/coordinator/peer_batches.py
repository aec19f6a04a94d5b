"""Requests to coordinators and leaders on other brokers: those of one turn go together.

    add(broker, item) ─┐
    add(broker, item) ─┼── the turn ends ──> one request a broker, split where it is too large
    add(broker, item) ─┘

Who leads a partition is the image's word, looked up anew for every attempt.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar
from uuid import UUID

from broker.peers.errors import PeerUnavailableError
from protocol.error_codes import ErrorCode
from protocol.message import Message

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

Soon = Callable[[Callable[[], None]], object]
"""Calls back when the turn ends (`IterationEnd.call`)."""

NO_LEADER: Final = -1
"""A partition that no broker leads now, or whose leader is not in the image."""

NO_PARTITION: Final = -2
"""No such partition: its topic was deleted, since images come in order and none is left out."""


class PeerRequests(Protocol):
    """What is asked of `broker.peers.peers.Peers`."""

    def request(
        self,
        node_id: int,
        message: Message,
        version: int,
        *,
        timeout_ms: float,
        use: str,
        client_id: str | None = None,
    ) -> "asyncio.Future[Message]":
        """See `Peers.request`."""
        ...


class Routes:
    """Which broker leads a partition."""

    __slots__ = ("_image", "node_id")

    def __init__(self, node_id: int, image: "Callable[[], ClusterImage]") -> None:
        """`node_id`: of this broker; `image`: the newest one."""
        self.node_id = node_id
        self._image = image

    def leader(self, topic: str, index: int) -> int:
        """The leader's node id, `NO_LEADER` or `NO_PARTITION`."""
        image = self._image()
        partition = image.partition(topic, index)
        if partition is None:
            return NO_PARTITION
        leader = partition.leader
        return leader if leader in image.brokers else NO_LEADER

    def has(self, topic_id: UUID, index: int) -> bool:
        """Whether there is such a partition."""
        topic = self._image().topics_by_id.get(topic_id)
        return topic is not None and 0 <= index < len(topic.partitions)


class PeerBatches(Generic[Item]):
    """Items by broker, until the turn ends."""

    __slots__ = ("_by_broker", "_send", "_soon")

    def __init__(self, send: Callable[[int, list[Item]], None], soon: Soon) -> None:
        """`send` gets a broker and its items, in the order in which they came."""
        self._by_broker: dict[int, list[Item]] = {}
        self._send = send
        self._soon = soon

    def add(self, node_id: int, item: Item) -> None:
        """Send the item when the turn ends."""
        if not self._by_broker:
            self._soon(self._turn_ended)
        self._by_broker.setdefault(node_id, []).append(item)

    def _turn_ended(self) -> None:
        by_broker, self._by_broker = self._by_broker, {}
        for node_id, items in by_broker.items():
            try:
                self._send(node_id, items)
            except Exception:
                logger.exception("requests to a broker could not be made node_id=%d", node_id)


def code_of_peer(value: int) -> ErrorCode:
    """An error code of an answer; one of a newer release is UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(value)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def when_answered(
    future: "asyncio.Future[Message]",
    answered: Callable[[Message], None],
    failed: Callable[[PeerUnavailableError], None],
) -> None:
    """Call `answered` with the answer, or `failed`; neither when the future is cancelled."""

    def settled(future: "asyncio.Future[Message]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            answered(future.result())
        elif isinstance(error, PeerUnavailableError):
            failed(error)
        else:
            # Of our own code: what waits must get an outcome all the same.
            logger.error("request to a broker failed", exc_info=error)
            failed(PeerUnavailableError(-1, sent=True, reason=str(error)))

    future.add_done_callback(settled)
