"""Transactions in a simulated cluster: producers that commit and abort, and what readers may see.

A transaction writes to several partitions. Readers of committed records must see all records of a
committed one, once, and none of an aborted one; of one whose outcome the producer was not told, all
or none.
"""

from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import Any, Final

from protocol.error_codes import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from protocol.records.record import iterate_records
from tests.simulation.clients.session import BACK_OFF_S, LOST, Session
from tests.simulation.world import Place, Violation

TRANSACTION: Final = 1
"""Key type of FindCoordinator."""

STATE: Final = Place("__transaction_state", 0)

TIMEOUT_MS: Final = 20_000
CLOCKS_S: Final = 6.0
"""So much of a time-out may be over at a coordinator whose clock is ahead."""

STRAY_S: Final = 120.0
"""An InitProducerId without an answer may still come, and replace who has sent it."""

COMMITTED_SHARE: Final = 0.7
READ_COMMITTED: Final = 1
SLOW: Final = 0.05
"""So many transactions stay open for up to half of the time that they surely have."""

RETRIABLE: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REQUEST_TIMED_OUT,
}


class Outcome(Enum):
    """What a producer was told of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


FENCED: Final = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
}
"""The coordinator has aborted the transaction: it took too long, or somebody else has begun."""


class TransactionHistory:
    """All transactions, and the judgement of what can be read in the end.

    Attributes:
        left: Transactions that were left open.
        stable_end: The last stable offset of a partition, as its leader has it; -1 without one.
    """

    def __init__(self) -> None:
        self.left = 0
        self.stable_end: Callable[[Place], int] = lambda _place: -1
        self.transactions: list[tuple[Outcome, dict[Place, list[bytes]]]] = []

    def add(self, outcome: Outcome, values: dict[Place, list[bytes]]) -> None:
        """A transaction is over."""
        self.transactions.append((outcome, values))

    def count(self, outcome: Outcome) -> int:
        """How many ended so."""
        return sum(1 for one, _ in self.transactions if one is outcome)

    def judge(self, read: dict[Place, list[bytes]]) -> None:
        """Compare with what a reader of committed records is given.

        Raises:
            Violation: A transaction is seen in part, or otherwise than it ended.
        """
        where = {
            place: {value: at for at, value in enumerate(values)} for place, values in read.items()
        }
        for place, values in read.items():
            if len(where[place]) != len(values):
                raise Violation(f"{place}: a committed record is there twice")
        for outcome, written in self.transactions:
            places = [
                where.get(place, {}).get(value)
                for place, values in written.items()
                for value in values
            ]
            seen = sum(place is not None for place in places)
            if outcome is Outcome.COMMITTED and seen < len(places):
                raise Violation(f"a committed transaction lacks {len(places) - seen}: {written}")
            if outcome is Outcome.ABORTED and seen:
                raise Violation(f"{seen} records of an aborted transaction are read: {written}")
            if 0 < seen < len(places):
                raise Violation(f"{seen} of {len(places)} records of a transaction: {written}")


class TransactionalProducer:
    """One transaction after the other, over several partitions.

    T: none is aborted by its coordinator before its time is up.

    Attributes:
        timeout_ms: Of its transactions.
        lost_s: When an InitProducerId was sent last that had no answer; also of others of the id.
        offsets: By partition, where the transaction under way has its first record.
    """

    def __init__(
        self,
        session: Session,
        history: TransactionHistory,
        places: list[Place],
        *,
        pause_s: float,
        transactional_id: str | None = None,
        timeout_ms: int = TIMEOUT_MS,
        lost_s: float = float("-inf"),
    ) -> None:
        """`transactional_id`: None: the session's name."""
        self._session = session
        self._history = history
        self._places = places
        self._pause_s = pause_s
        self._id = transactional_id or session.name
        self._coordinator = -1
        self._producer = (-1, -1)
        self._sequences: dict[Place, int] = {}
        self._numbers = count()
        self._begun_s = 0.0
        self._is_unknown = False
        self.timeout_ms = timeout_ms
        self.lost_s = lost_s
        self.offsets: dict[Place, int] = {}

    @property
    def has_begun(self) -> bool:
        """Whether it has a producer id."""
        return self._producer[0] >= 0

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            if not self.has_begun and not await self.begin():
                await self._session.pause(BACK_OFF_S)
                continue
            await self.once()

    async def once(self) -> None:
        """One transaction, and a rest."""
        if not self.has_begun:
            return
        commits = self._session.world.loop.random.random() < COMMITTED_SHARE
        written = await self.open()
        if written is not None:
            if self._session.world.loop.random.random() < SLOW:
                longest_s = max(self.timeout_ms / 1000 - CLOCKS_S, 0.0) / 2
                await self._session.pause(longest_s)
            self._history.add(await self.end(commits), written)
            await self._session.rest(self._pause_s)

    async def open(self, *, everywhere: bool = False) -> dict[Place, list[bytes]] | None:
        """Write to some partitions, or to all; None: it was aborted, and has to begin again."""
        random = self._session.world.loop.random
        count = len(self._places) if everywhere else random.randint(1, len(self._places))
        places = random.sample(self._places, count)
        written = {
            place: [
                f"{self._session.name}-{next(self._numbers)}".encode()
                for _ in range(random.randint(1, 3))
            ]
            for place in places
        }
        self._begun_s = self._session.world.loop.time()
        self.offsets.clear()
        for place, values in written.items():
            if not await self.write(place, values):
                # Never committed: the next InitProducerId aborts what there is of it.
                self._history.add(Outcome.ABORTED, written)
                self._producer = (-1, -1)
                return None
        return written

    async def _coordinator_of(self) -> int | None:
        if self._coordinator < 0:
            request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self._id])
            answer = await self._session.call(self._session.any_broker(), request)
            (found,) = answer.coordinators
            if found.error_code:
                return None
            self._coordinator = found.node_id
        return self._coordinator

    async def _ask(self, request: Any) -> Any:
        """Ask the coordinator; None: no answer, or it is another one by now."""
        try:
            coordinator = await self._coordinator_of()
            if coordinator is None:
                return None
            answer = await self._session.call(coordinator, request)
        except LOST:
            self._coordinator = -1
            self._is_unknown = True
            return None
        self._is_unknown = answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        if answer.error_code in RETRIABLE:
            self._coordinator = -1
            return None
        return answer

    async def begin(self) -> bool:
        """Ask for a producer id, which replaces whoever has the transactional id."""
        sent_s = self._session.world.loop.time()
        answer = await self._ask(
            InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=self.timeout_ms)
        )
        if self._is_unknown:
            self.lost_s = sent_s
        if answer is None or answer.error_code:
            return False
        self._producer = (answer.producer_id, answer.producer_epoch)
        self._sequences.clear()
        return True

    async def write(
        self, place: Place, values: list[bytes], *, may_be_fenced: bool = False
    ) -> bool:
        """Write a batch, sent again until it is acknowledged; False: it cannot be.

        Raises:
            Violation: The transaction was aborted before its time.
        """
        now_ms = self._session.world.now_ms()
        sequence = self._sequences.get(place, 0)
        batch = build_batch(
            [(None, value, (), now_ms) for value in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        for _ in range(20):
            data = PartitionProduceData(index=place.partition, records=bytearray(batch))
            request = ProduceRequest(
                transactional_id=self._id,
                acks=-1,
                timeout_ms=3000,
                topic_data=[TopicProduceData(name=place.topic, partition_data=[data])],
            )
            try:
                answer = await self._session.call(await self._session.leader(place), request)
            except LOST:
                await self._session.pause(BACK_OFF_S)
                continue
            partition = answer.responses[0].partition_responses[0]
            code = ErrorCode(partition.error_code)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[place] = sequence + len(values)
                self.offsets.setdefault(place, partition.base_offset)
                return True
            if code in FENCED:
                if not may_be_fenced:
                    self._check_time(code)
                return False
            self._session.forget_leaders()
            await self._session.pause(BACK_OFF_S)
        return False

    def _check_time(self, code: ErrorCode) -> None:
        now_s = self._session.world.loop.time()
        open_s, world = now_s - self._begun_s, self._session.world
        # A coordinator that was replaced a moment ago knows nothing of what its successor wrote.
        if not all(map(world.is_long_led, (STATE, *self.offsets))):
            return
        if open_s < self.timeout_ms / 1000 - CLOCKS_S and now_s - self.lost_s > STRAY_S:
            raise Violation(
                f"T {self._id} {self._producer}: {code.name} after {open_s:.3f} s of "
                f"{self.timeout_ms / 1000}"
            )

    def _ending(self, commits: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commits,
        )

    def end_unheard(self, commits: bool) -> None:
        """Send an EndTxn, and wait for no answer."""
        self._session.begin(self._ask_once(self._ending(commits)))

    async def _ask_once(self, request: Any) -> None:
        await self._ask(request)

    async def end(self, commits: bool, *, may_be_fenced: bool = False) -> Outcome:
        """End the transaction; what its producer is told of it.

        Raises:
            Violation: It was aborted before its time.
        """
        request = self._ending(commits)
        for attempt in range(40):
            answer = await self._ask(request)
            if answer is None:
                await self._session.pause(BACK_OFF_S)
                continue
            if answer.error_code:
                if answer.error_code in FENCED and not may_be_fenced:
                    self._check_time(ErrorCode(answer.error_code))
                self._producer = (-1, -1)
                # The first answer to the first request is the coordinator's word.
                return Outcome.UNKNOWN if attempt or commits else Outcome.ABORTED
            if answer.producer_id >= 0:
                if (answer.producer_id, answer.producer_epoch) != self._producer:
                    self._sequences.clear()
                self._producer = (answer.producer_id, answer.producer_epoch)
            return Outcome.COMMITTED if commits else Outcome.ABORTED
        self._producer = (-1, -1)
        return Outcome.UNKNOWN


class CommittedReader:
    """Reads one partition to its last stable offset, as a consumer of committed records does."""

    def __init__(self, session: Session, place: Place, pause_s: float = BACK_OFF_S) -> None:
        self._session = session
        self._place = place
        self._pause_s = pause_s
        self.position = 0
        self.values: list[bytes] = []
        self._aborting: set[int] = set()

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            before = self.position
            if not await self._read():
                await self._session.pause(BACK_OFF_S)
            elif self.position == before:
                await self._session.rest(self._pause_s)

    async def _read(self) -> bool:
        try:
            leader = await self._session.leader(self._place)
            request = self._session.fetch_of(self._place, self.position, 500, READ_COMMITTED)
            answer = await self._session.call(leader, request)
        except LOST:
            return False
        if answer.error_code or answer.responses[0].partitions[0].error_code:
            code = answer.error_code or answer.responses[0].partitions[0].error_code
            if code == ErrorCode.OFFSET_OUT_OF_RANGE:
                raise Violation(f"{self._place} ends before {self.position}, which was read")
            self._session.forget_leaders()
            return False
        partition = answer.responses[0].partitions[0]
        aborted = sorted(
            (one.first_offset, one.producer_id) for one in partition.aborted_transactions or ()
        )
        data = memoryview(partition.records or b"")
        for position, header in iterate_batches(data, allow_partial=True):
            while aborted and aborted[0][0] <= header.last_offset:
                self._aborting.add(aborted.pop(0)[1])
            if header.last_offset < self.position:
                continue
            records = list(iterate_records(data[position:], max_size=1 << 20))
            if header.is_control:
                # Key: version, type; 0 is an abort.
                if (records[0].key or b"")[3:4] == b"\x00":
                    self._aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in self._aborting):
                self.values += [
                    record.value or b"" for record in records if record.offset >= self.position
                ]
            self.position = header.next_offset
        return True
