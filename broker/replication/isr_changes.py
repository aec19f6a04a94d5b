"""Changes of the ISR that this broker asks the controller for, as leader (KIP-497).

    a follower has caught up, or lags ──noted──> proposed ──AlterPartition──> answer
                                                    ^                          │
                                                    └──not known, another try──┤
                   refused, nothing was changed: withdrawn, noted again later <┤
                   agreed, or out of date: the image will have a later record <┘

One request is under way at a time, with all that was noted until then. What is proposed counts at
once in the maximal ISR, and the committed ISR changes with the image alone; a proposal without a
known outcome stays proposed. Each try names the lives of the brokers that were right for the first
one: who has come back since may have lost what it had, and the controller refuses it.

Every half `replica.lag.time.max.ms`, and when brokers come or go, all partitions that are led here
are looked at, in slices: for members that lag, followers that may join by now, proposals that have
had no outcome, and high watermarks that waited for one that was about to join and will not. So are
they several times in `replica.silence.max.ms` while a follower that lives is silent.

Source: Kafka, AlterPartitionManager.scala, Partition.scala (handleAlterPartitionError).
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)

if TYPE_CHECKING:
    from uuid import UUID

    from broker.replicas.partition import Partition
    from broker.replication.leader_state import LeaderState
    from broker.replication.terms import ReplicationTerms
    from broker.runtime.timer import Timer, TimerHandle
    from storage.environment.clock import Clock
    from storage.types.topic_partition import TopicPartition

LOGGER = logging.getLogger(__name__)

RETRY_MS: Final = 50.0
"""Pause after a request that was refused, or whose outcome is not known."""

PARTITIONS_MAX: Final = 1_000
"""Partitions of one request; more wait for the next."""

SLICE_MS: Final = 2.0
"""How long one slice of the look at all partitions holds the loop."""

UNCHANGED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The controller says that the record is what it was, and will not be changed by this request."""

MADE: Final = frozenset({ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED})
"""The change is made; with the second it has completed a reassignment, and another leads now."""

OUT_OF_DATE: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    }
)
"""The image will have a later record, if it has not yet, or the partition no more."""


class AltersPartitions(Protocol):
    """The way to the controller."""

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Send it to whichever broker is the controller.

        Returns:
            Its answer; NOT_CONTROLLER: none was found in time.
        """
        ...


class Change(NamedTuple):
    """One partition of a request, with the leadership in which it was asked for."""

    partition: "Partition"
    leading: "LeaderState"
    before: tuple[int, ...]
    isr: tuple[int, ...]
    epochs: tuple[int, ...]


class IsrChanges:
    """See the module.

    Attributes:
        expanded: Changes that were agreed in which a follower joined.
        shrunk: In which one left.
        failed: Requests and partitions of them that were refused.
    """

    def __init__(
        self,
        channel: AltersPartitions,
        terms: "ReplicationTerms",
        clock: "Clock",
        timer: "Timer",
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        led: "Callable[[], Iterable[Partition]]",
    ) -> None:
        """`start` begins; until then nothing is sent.

        Args:
            channel: To the controller.
            terms: Of replication.
            clock: For lag.
            timer: For retries and looks.
            node_id: Of this broker.
            broker_epoch: Of this life of it.
            led: The partitions that are open here.
        """
        self._channel = channel
        self._terms = terms
        self._clock = clock
        self._timer = timer
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._led = led
        self._noted: dict[Partition, None] = {}
        self._begins: asyncio.Handle | None = None
        self._retry: TimerHandle | None = None
        self._look: TimerHandle | None = None
        self._tick: TimerHandle | None = None
        self._under_way: asyncio.Task[None] | None = None
        # The last error that was logged: its name, and the first partition that got it.
        self._reported: tuple[str, TopicPartition] | None = None
        self.expanded = 0
        self.shrunk = 0
        self.failed = 0

    def start(self) -> None:
        """Take what partitions note from now on, and look for those that lag."""
        self._terms.isr_due = self.note
        self._look_later()
        self._listen()

    async def aclose(self) -> None:
        """Ask for nothing more; a request under way is given up."""
        self._terms.isr_due = None
        for handle in (self._look, self._tick, self._retry, self._begins):
            if handle is not None:
                handle.cancel()
        self._look = None
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.wait([self._under_way])

    @property
    def waiting(self) -> int:
        """Partitions that are noted for the next request."""
        return len(self._noted)

    def note(self, partition: "Partition") -> None:
        """Look at a partition's ISR at the end of this turn, or after the request under way."""
        self._noted[partition] = None
        if self._begins is None and self._under_way is None and self._retry is None:
            self._begins = asyncio.get_running_loop().call_soon(self._begin)

    # -- requests --------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._begins = None
        now_ms = self._clock.monotonic_ms()
        changes: list[Change] = []
        noted = list(self._noted)
        for partition in noted[:PARTITIONS_MAX]:
            del self._noted[partition]
            leading = partition.leading
            if leading is None:
                continue
            isr = leading.proposed
            if isr is None:
                isr = _wanted_isr(partition, leading, now_ms)
                if isr is None:
                    continue
                leading.propose(isr, tuple(self._epoch_of(leading, node) for node in isr))
            epochs = leading.proposed_epochs
            changes.append(Change(partition, leading, leading.isr, isr, epochs))
        if changes:
            # The request is of this turn: a later record would lend its partition epoch to what was
            # proposed before it, and the controller would make what is not counted here any more.
            send = self._send(changes, self._request(changes))
            self._under_way = asyncio.get_running_loop().create_task(send)
        elif self._noted:
            self._begins = asyncio.get_running_loop().call_soon(self._begin)

    async def _send(self, changes: list[Change], request: AlterPartitionRequest) -> None:
        is_clear = False
        try:
            response = await self._channel.alter_partition(request)
            is_clear = self._take(changes, response)
        except Exception as error:  # noqa: BLE001  because whatever it is, all is asked for again
            self._report(repr(error), changes, error)
            self._again(changes)
        finally:
            self._under_way = None
        if not is_clear:
            self._retry = self._timer.call_later_ms(RETRY_MS, self._try_again)
        elif self._noted:
            self._begin()

    def _request(self, changes: list[Change]) -> AlterPartitionRequest:
        topics: dict[UUID, list[AlterPartitionRequestPartitionData]] = {}
        for partition, leading, _, isr, epochs in changes:
            topics.setdefault(partition.topic_id, []).append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.topic_partition.partition,
                    leader_epoch=leading.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=node_id, broker_epoch=epoch)
                        for node_id, epoch in zip(isr, epochs, strict=True)
                    ],
                    partition_epoch=leading.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def _epoch_of(self, leading: "LeaderState", node_id: int) -> int:
        """The life in which a member has fetched, or, before its first fetch, is registered."""
        if node_id == self._node_id:
            return self._broker_epoch()
        follower = leading.follower(node_id)
        if follower is not None and follower.broker_epoch >= 0:
            return follower.broker_epoch
        epoch = self._terms.registered_epoch(node_id)
        return -1 if epoch is None else epoch

    def _take(self, changes: list[Change], response: AlterPartitionResponse) -> bool:
        """Take an answer; whether nothing of it has to be asked for again."""
        if response.error_code:
            self.failed += 1
            self._report(ErrorCode(response.error_code).name, changes)
            self._again(changes)
            return False
        codes = {
            (topic.topic_id, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        is_clear = True
        refused: dict[int, list[Change]] = {}
        for change in changes:
            partition = change.partition
            key = (partition.topic_id, partition.topic_partition.partition)
            code = codes.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code not in MADE:
                refused.setdefault(code, []).append(change)
            is_clear &= self._settle(change, code)
        for code, ones in refused.items():
            self._report(ErrorCode(code).name, ones)
        if not refused:
            self._reported = None
        return is_clear

    def _report(
        self, error: str, changes: list[Change], raised: BaseException | None = None
    ) -> None:
        """Log an error, once until another comes: what is refused is asked for every 50 ms."""
        partition = changes[0].partition.topic_partition
        if self._reported != (error, partition):
            self._reported = (error, partition)
            LOGGER.warning(
                "the controller has not changed the ISR error=%s partitions=%d first=%s isr=%s",
                error,
                len(changes),
                partition,
                changes[0].isr,
                exc_info=raised,
            )

    def _settle(self, change: Change, code: int) -> bool:
        partition, leading, before, isr, _ = change
        if code == ErrorCode.NONE:
            self.expanded += any(node_id not in before for node_id in isr)
            self.shrunk += any(node_id not in isr for node_id in before)
        elif code not in MADE:
            self.failed += 1
        if code in OUT_OF_DATE or partition.leading is not leading:
            return True
        if code in UNCHANGED and leading.proposed == isr:
            leading.withdraw(self._clock.monotonic_ms() + RETRY_MS)
        self._noted[partition] = None
        return False

    def _again(self, changes: list[Change]) -> None:
        for change in changes:
            self._noted[change.partition] = None

    def _try_again(self) -> None:
        self._retry = None
        if self._noted:
            self._begin()

    # -- all partitions --------------------------------------------------------------------------

    def brokers_changed(self) -> None:
        """Look at all partitions now: brokers have come, gone, or fallen silent."""
        if self._look is not None:
            self._look.cancel()
            self._look_at_all()

    def _listen(self) -> None:
        """Tick, and look at all partitions while a follower that lives is silent."""
        terms, listening = self._terms, self._terms.listening
        if listening.interval_ms == math.inf:
            return
        now_ms = self._clock.monotonic_ms()
        listening.tick(now_ms)
        if any(
            listening.is_silent(seen_ms, now_ms) and terms.live_epoch(node_id) == epoch
            for node_id, epoch, seen_ms in terms.last_fetches()
        ):
            self.brokers_changed()
        self._tick = self._timer.call_later_ms(listening.interval_ms, self._listen)

    def _look_later(self) -> None:
        self._look = self._timer.call_later_ms(self._terms.lag_time_max_ms / 2, self._look_at_all)

    def _look_at_all(self) -> None:
        self._look_at(iter(list(self._led())))

    def _look_at(self, partitions: "Iterator[Partition]") -> None:
        """Move high watermarks; note those whose ISR is to change, or has been asked for."""
        clock = self._clock
        now_ms = clock.monotonic_ms()
        for partition in partitions:
            leading, log = partition.leading, partition.log
            if leading is None:
                continue
            if log.high_watermark < leading.own_end_offset:
                partition.advance_high_watermark(leading, now_ms)
            if leading.proposed is not None or _wanted_isr(partition, leading, now_ms) is not None:
                self.note(partition)
            if clock.monotonic_ms() >= now_ms + SLICE_MS:
                self._look = self._timer.call_later_ms(0.0, lambda: self._look_at(partitions))
                return
        self._look_later()


def _wanted_isr(
    partition: "Partition", leading: "LeaderState", now_ms: float
) -> tuple[int, ...] | None:
    log = partition.log
    return leading.wanted_isr(
        log.high_watermark, log.log_end_offset, now_ms, log.config.min_insync_replicas
    )
