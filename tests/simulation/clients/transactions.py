"""Transactions in a simulated cluster: producers that commit and abort, and what readers may see.

A transaction writes to several partitions. Readers of committed records must see all records of a
committed one, once, and none of an aborted one; of one whose outcome the producer was not told, all
or none.
"""

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

TIMEOUT_MS: Final = 20_000
COMMITTED_SHARE: Final = 0.7
READ_COMMITTED: Final = 1

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


class TransactionHistory:
    """All transactions, and the judgement of what can be read in the end."""

    def __init__(self) -> None:
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
    """One transaction after the other, over several partitions."""

    def __init__(
        self,
        session: Session,
        history: TransactionHistory,
        places: list[Place],
        *,
        pause_s: float,
    ) -> None:
        self._session = session
        self._history = history
        self._places = places
        self._pause_s = pause_s
        self._coordinator = -1
        self._producer = (-1, -1)
        self._sequences: dict[Place, int] = {}

    async def run(self) -> None:
        """Until the session is over."""
        numbers = count()
        random = self._session.world.loop.random
        while not self._session.is_over:
            if self._producer[0] < 0 and not await self._begin():
                await self._session.pause(BACK_OFF_S)
                continue
            places = random.sample(self._places, random.randint(1, len(self._places)))
            written = {
                place: [
                    f"{self._session.name}-{next(numbers)}".encode()
                    for _ in range(random.randint(1, 3))
                ]
                for place in places
            }
            commits = random.random() < COMMITTED_SHARE
            whole = True
            for place, values in written.items():
                whole = whole and await self._write(place, values)
            if not whole:
                # Never committed: the next InitProducerId aborts what there is of it.
                self._history.add(Outcome.ABORTED, written)
                self._producer = (-1, -1)
                continue
            outcome = await self._end(commits)
            self._history.add(outcome, written)
            await self._session.rest(self._pause_s)

    async def _coordinator_of(self) -> int | None:
        if self._coordinator < 0:
            request = FindCoordinatorRequest(
                key_type=TRANSACTION, coordinator_keys=[self._session.name]
            )
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
            return None
        if answer.error_code in RETRIABLE:
            self._coordinator = -1
            return None
        return answer

    async def _begin(self) -> bool:
        answer = await self._ask(
            InitProducerIdRequest(
                transactional_id=self._session.name, transaction_timeout_ms=TIMEOUT_MS
            )
        )
        if answer is None or answer.error_code:
            return False
        self._producer = (answer.producer_id, answer.producer_epoch)
        self._sequences.clear()
        return True

    async def _write(self, place: Place, values: list[bytes]) -> bool:
        """Write a batch, sent again until it is acknowledged; False: it cannot be."""
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
                transactional_id=self._session.name,
                acks=-1,
                timeout_ms=3000,
                topic_data=[TopicProduceData(name=place.topic, partition_data=[data])],
            )
            try:
                answer = await self._session.call(await self._session.leader(place), request)
            except LOST:
                await self._session.pause(BACK_OFF_S)
                continue
            code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._sequences[place] = sequence + len(values)
                return True
            if code in (
                ErrorCode.INVALID_PRODUCER_EPOCH,
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.INVALID_TXN_STATE,
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ):
                # The coordinator has aborted it: it took too long.
                return False
            self._session.forget_leaders()
            await self._session.pause(BACK_OFF_S)
        return False

    async def _end(self, commits: bool) -> Outcome:
        request = EndTxnRequest(
            transactional_id=self._session.name,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commits,
        )
        for attempt in range(40):
            answer = await self._ask(request)
            if answer is None:
                await self._session.pause(BACK_OFF_S)
                continue
            if answer.error_code:
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

    def __init__(self, session: Session, place: Place) -> None:
        self._session = session
        self._place = place
        self.position = 0
        self.values: list[bytes] = []
        self._aborting: set[int] = set()

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            if not await self._read():
                await self._session.pause(BACK_OFF_S)

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
