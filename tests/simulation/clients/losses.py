"""A topic that may lose records: its brokers may elect who was not in sync (unclean elections).

    write ──> write ──> ...     idempotent, and a second one with acks=1
    read to the end, and from the start again

U   of such a topic may be lost what was acknowledged before an unclean election, and nothing else:
    an election is unclean where nobody who was in sync or eligible could lead; at one offset in one
    leader epoch is one record, whoever has it; after healing all replicas are equal. What the one
    that was elected last had by its leader epochs, on its disk or in the bucket, stays.

`losses` counts the unclean elections, as the store has them. What was sent before the last of them
and is acknowledged after it, was acknowledged by a leader of before.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from typing_extensions import override

from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.batch import iterate_batches
from protocol.records.record import iterate_records
from tests.fakes.network.client import RECORDS_MAX
from tests.simulation.clients.history import History
from tests.simulation.clients.session import BACK_OFF_S, BROKEN_PROMISE, LOST, Producer, Session
from tests.simulation.world import Place, Violation

LOOSE: Final = "loose"
PLACE: Final = Place(LOOSE, 0)

CONFIGS: Final[tuple[dict[str, object], ...]] = (
    {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"},
    {"unclean_leader_election_enable": "true"},
    {"unclean_recovery_strategy": "Aggressive", "min_insync_replicas": "1"},
    {"unclean_recovery_strategy": "Aggressive"},
)
"""Settings under which somebody leads, whatever it lacks; of them the seed draws one."""

FETCH_BY_NAME: Final = 12


def records_of(batches: memoryview) -> Iterator[tuple[int, int, bytes]]:
    """Offset, leader epoch and value of each record."""
    for position, header in iterate_batches(batches, allow_partial=True):
        for record in iterate_records(batches[position:], max_size=RECORDS_MAX):
            yield record.offset, header.leader_epoch, record.value or b""


class LossHistory:
    """What clients of the topic were told.

    Attributes:
        losses: Unclean elections so far.
        acked: Values acknowledged with acks=all, each with how many there had been when it was
            sent.
        kept: By offset, what the leader elected uncleanly last had when it was.
        seen: By offset and leader epoch, what was read or lies in a log.
    """

    def __init__(self, history: History) -> None:
        """`history`: of all clients, which is told how far the topic is acknowledged."""
        self._history = history
        self.losses = 0
        self.acked: dict[bytes, int] = {}
        self.seen: dict[tuple[int, int], bytes] = {}
        self.kept: dict[int, bytes] = {}

    def lost(self) -> None:
        """An election was unclean: all that was acknowledged may be gone."""
        self.losses += 1
        self.kept.clear()
        self._history.acked_end[PLACE] = 0

    def ack(self, offset: int, values: Sequence[bytes], losses: int) -> None:
        """A batch was acknowledged; -1: as written before. `losses`: when it was sent."""
        self.acked.update(dict.fromkeys(values, losses))
        if losses == self.losses and offset >= 0:
            self._history.ack_up_to(PLACE, offset + len(values))

    def saw(self, offset: int, leader_epoch: int, value: bytes) -> None:
        """A record was read, or lies in a log.

        Raises:
            Violation: Another one of this leader epoch was there.
        """
        other = self.seen.setdefault((offset, leader_epoch), value)
        if other != value:
            raise Violation(
                f"U {PLACE} offset {offset} has {value!r} in leader epoch {leader_epoch}, "
                f"and had {other!r}"
            )

    def judge(self, log: Mapping[int, bytes]) -> None:
        """Compare with the whole log at the end: values by offset.

        Raises:
            Violation: A record is lost that may not be, or is doubled, or out of order.
        """
        values = [value for _, value in sorted(log.items())]
        for offset, value in self.kept.items():
            if log.get(offset) != value:
                raise Violation(
                    f"U {PLACE} offset {offset} is {log.get(offset)!r}, the leader of its last "
                    f"election had {value!r}"
                )
        kept = [value for value, losses in self.acked.items() if losses == self.losses]
        lost = set(kept).difference(values)
        if lost:
            raise Violation(f"U {PLACE} has lost {min(lost)!r}, written after its last election")
        by_producer: dict[bytes, list[int]] = {}
        for value in values:
            name, _, number = value.rpartition(b"-")
            by_producer.setdefault(name, []).append(int(number))
        for name, numbers in by_producer.items():
            wrong = [b for a, b in pairwise(numbers) if b <= a]
            if wrong:
                raise Violation(f"U {PLACE} has {name!r}-{wrong[0]} doubled or out of order")


class LossyProducer(Producer):
    """As others, but that it begins anew where its earlier batches are lost."""

    def __init__(
        self, session: Session, history: History, losses: LossHistory, *, acks: int, pause_s: float
    ) -> None:
        super().__init__(session, history, PLACE, acks=acks, pause_s=pause_s)
        self._losses = losses

    @override
    async def _until_acked(self, batch: bytearray, values: list[bytes]) -> None:
        while not self._session.is_over:
            before = self._losses.losses
            answer = await self._send(batch)
            code = None if answer is None else ErrorCode(answer.error_code)
            if code is ErrorCode.NONE:
                self._losses.ack(answer.base_offset, values, before)
                return
            if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                self._losses.ack(-1, values, before)
                return
            if code in BROKEN_PROMISE:
                if not self._losses.losses:
                    raise Violation(f"{PLACE}: {code.name} for a batch sent again: {values}")
                # Whether the batch is there is not known: the next one is behind it.
                self._producer, self._sequence = (-1, -1), 0
                return
            await self._session.pause(BACK_OFF_S)


class LossyReader:
    """Reads the topic as Kafka's consumers do (KIP-320): goes back to where logs have parted."""

    def __init__(self, session: Session, losses: LossHistory, pause_s: float) -> None:
        self._session = session
        self._losses = losses
        self._pause_s = pause_s
        self.position = 0
        self.epoch = -1
        self.values: dict[int, bytes] = {}

    async def run(self) -> None:
        """Until the session is over: to the end, and from the start again."""
        while not self._session.is_over:
            before = self.position
            if not await self.read():
                await self._session.pause(BACK_OFF_S)
            elif self.position == before:
                await self._session.rest(4 * self._pause_s)
                if self._session.world.loop.random.random() < 0.2:
                    self.go_to(0, -1)

    def go_to(self, offset: int, epoch: int) -> None:
        """Read on from an offset; the record before it is of a leader epoch, -1: not known."""
        self.position, self.epoch = offset, epoch
        self.values = {at: value for at, value in self.values.items() if at < offset}

    async def read(self) -> bool:
        """Fetch once; whether the leader answered."""
        partition = await self._fetch()
        if partition is None:
            return False
        code = ErrorCode(partition.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.go_to(0, -1)
            return True
        if code is not ErrorCode.NONE:
            self._session.forget_leaders()
            return False
        parted = partition.diverging_epoch
        if parted is not None and parted.end_offset >= 0:
            self.go_to(min(parted.end_offset, self.position), parted.epoch)
            return True
        for offset, epoch, value in records_of(memoryview(partition.records or b"")):
            if offset >= self.position:
                self._losses.saw(offset, epoch, value)
                self.values[offset] = value
                self.position, self.epoch = offset + 1, epoch
        return True

    async def _fetch(self) -> Any:
        """The partition's part of the leader's answer; None: there is none."""
        session = self._session
        wait_ms = session.world.pace.poll_ms
        try:
            leader = await session.leader(PLACE)
            wanted = FetchPartition(
                partition=PLACE.partition,
                current_leader_epoch=session.epoch(PLACE),
                fetch_offset=self.position,
                last_fetched_epoch=self.epoch,
                partition_max_bytes=1 << 20,
            )
            request = FetchRequest(
                max_wait_ms=min(wait_ms, 4_000),
                min_bytes=1,
                max_bytes=1 << 20,
                topics=[FetchTopic(topic=LOOSE, partitions=[wanted])],
            )
            answer = await session.call(leader, request, FETCH_BY_NAME)
        except LOST:
            session.drop(session.known_leader(PLACE))
            return None
        if answer.error_code or not answer.responses:
            session.forget_leaders()
            return None
        return answer.responses[0].partitions[0]
