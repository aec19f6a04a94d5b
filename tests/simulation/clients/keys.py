"""A compacted topic in a simulated cluster: the newest value of each key stays, whoever cleans.

    write a key ──> write another ──> ...          by two, of whom one does not wait for followers
    read all from the start, again and again       what was acknowledged by then is there, or newer

K   of each key a reader of the whole log finds the last value that was acknowledged with acks=all
    before the read began, or one behind it; what it finds stands in the order in which its writer
    wrote it, each record where it was acknowledged, and there is none that nobody wrote.

Each broker cleans its own replica, when it sees fit: so replicas differ in bytes, and a leader that
follows another one begins with a log that is cleaned otherwise. What is written with acks=1 may be
cut off again: nothing that it seems to replace may be cleaned away before it is committed.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from protocol.error_codes import ErrorCode
from protocol.records.batch import iterate_batches
from protocol.records.builder import build_batch
from tests.fakes.network.client import RefusedError, produce_request, read_of
from tests.simulation.clients.history import History
from tests.simulation.clients.session import BACK_OFF_S, BROKEN_PROMISE, LOST, Session, within
from tests.simulation.world import Place, Violation

KEYED: Final = "keyed"
PLACE: Final = Place(KEYED, 0)

CONFIGS: Final = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0.1",
    "segment_ms": "3000",
}
SETTINGS: Final[dict[str, object]] = {"log_cleaner_backoff_ms": 1_000, "log_segment_bytes": 2_000}
"""Small segments, cleaned soon."""

KEYS: Final = 6


class Written(NamedTuple):
    """Who wrote a value, and to which key."""

    writer: str
    key: int


class KeyHistory:
    """What was written to the topic, and what of it was acknowledged.

    Attributes:
        reads: Reads of the whole log.
        cleaned: Records that were acknowledged and missing in a read, as they should be.
        written: By value; values are numbers that grow.
        acked: Value at each offset that was acknowledged with acks=all.
    """

    def __init__(self, history: History) -> None:
        """`history`: of all clients, which is told how far the topic is acknowledged."""
        self._history = history
        self.reads = 0
        self.cleaned = 0
        self.written: dict[int, Written] = {}
        self.acked: dict[int, int] = {}
        self._newest: dict[int, int] = {}

    @property
    def end(self) -> int:
        """Behind the last offset that was acknowledged."""
        return max(self.acked, default=-1) + 1

    def ack(self, offset: int, values: Sequence[int]) -> None:
        """A batch was acknowledged with acks=all."""
        for at, value in enumerate(values, offset):
            key = self.written[value].key
            self._newest[key] = max(self._newest.get(key, -1), at)
            self.acked[at] = value
        self._history.ack_up_to(PLACE, offset + len(values))

    def newest(self) -> dict[int, int]:
        """By key, the last offset of it that was acknowledged."""
        return dict(self._newest)

    def judge(self, newest: dict[int, int], log: dict[int, tuple[int, int]]) -> None:
        """A whole log was read.

        Args:
            newest: As it was when the read began.
            log: By offset, key and value, as a reader found them.

        Raises:
            Violation: K does not hold.
        """
        self.reads += 1
        found: dict[int, int] = {}
        last: dict[str, int] = {}
        for offset, (key, value) in sorted(log.items()):
            written = self.written.get(value)
            if written is None or written.key != key:
                raise Violation(f"K {PLACE} offset {offset}: {key}={value}, which nobody wrote")
            if self.acked.get(offset, value) != value:
                raise Violation(
                    f"K {PLACE} offset {offset}: {value} is there, {self.acked[offset]} was written"
                )
            if last.get(written.writer, -1) >= value:
                raise Violation(
                    f"K {PLACE} offset {offset}: {value} of {written.writer} is behind "
                    f"{last[written.writer]}"
                )
            last[written.writer] = value
            found[key] = offset
        for key, offset in newest.items():
            if found.get(key, -1) < offset:
                raise Violation(
                    f"K {PLACE}: {key} is found at {found.get(key)}, and was acknowledged at "
                    f"{offset} before"
                )
        self.cleaned += sum(offset not in log for offset in self.acked)


class KeyWriter:
    """Writes to the topic, one batch after the other.

    With acks=all it is idempotent, and repeats a batch until it is acknowledged; with acks=1 a
    batch is sent once.
    """

    def __init__(self, session: Session, history: KeyHistory, pause_s: float, acks: int) -> None:
        self._session = session
        self._history = history
        self._pause_s = pause_s
        self._acks = acks
        self._producer = (-1, -1)
        self._sequence = 0

    async def run(self) -> None:
        """Until the session is over."""
        session, history = self._session, self._history
        random = session.world.loop.random
        while self._acks < 0 and self._producer[0] < 0 and not session.is_over:
            node_id = session.any_broker()
            try:
                client = await session.client(node_id)
                self._producer = await within(client.init_producer_id())
            except RefusedError:
                await session.pause(BACK_OFF_S)
            except LOST:
                session.drop(node_id)
                await session.pause(BACK_OFF_S)
        while not session.is_over:
            first = len(history.written)
            values = range(first, first + random.randint(1, 4))
            for value in values:
                history.written[value] = Written(session.name, random.randrange(KEYS))
            await self._write(values)
            await session.rest(self._pause_s)

    async def _write(self, values: Sequence[int]) -> None:
        now_ms, written = self._session.world.now_ms(), self._history.written
        batch = build_batch(
            [(b"%d" % written[one].key, b"%d" % one, (), now_ms) for one in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequence if self._acks < 0 else -1,
        )
        self._sequence += len(values)
        while not self._session.is_over:
            request = produce_request(*PLACE, bytearray(batch), acks=self._acks, timeout_ms=3000)
            code, offset = None, -1
            try:
                leader = await self._session.leader(PLACE)
                answer = await self._session.call(leader, request)
                partition = answer.responses[0].partition_responses[0]
                code, offset = ErrorCode(partition.error_code), partition.base_offset
            except LOST:
                pass
            if self._acks > 0:
                return
            if code is ErrorCode.NONE and offset >= 0:
                self._history.ack(offset, values)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                return
            if code in BROKEN_PROMISE:
                raise Violation(f"K {PLACE}: {code.name} for a batch sent again: {values}")
            self._session.forget_leaders()
            await self._session.pause(BACK_OFF_S)


class KeyReader:
    """Reads the whole log, again and again."""

    def __init__(self, session: Session, history: KeyHistory, pause_s: float) -> None:
        self._session = session
        self._history = history
        self._pause_s = pause_s
        self._end = 0

    async def run(self) -> None:
        """Until the session is over."""
        while not self._session.is_over:
            await self.read()
            await self._session.rest(2 * self._pause_s)

    def _committed(self) -> int:
        """Behind all that is committed: there may be what has replaced a record that is gone."""
        for place in self._session.world.brokers.values():
            broker = place.broker if place.is_running else None
            replica = None if broker is None else broker.replicas.replica_of(*PLACE)
            if replica is not None:
                self._end = max(self._end, replica.log.high_watermark)
        return max(self._end, self._history.end)

    async def read(self) -> None:
        """From the start to behind what is committed by then."""
        session, history = self._session, self._history
        newest = history.newest()
        position, log = 0, dict[int, tuple[int, int]]()
        while position < self._committed():
            if session.is_over:
                return
            request = session.fetch_of(PLACE, position, session.world.pace.poll_ms)
            try:
                leader = await session.leader(PLACE)
                client = await session.client(leader)
                answer = await within(client.send(request), session.world.pace.poll_ms / 1e3)
                read = read_of(answer)
            except LOST:
                session.drop(session.known_leader(PLACE))
                await session.pause(BACK_OFF_S)
                continue
            if read.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise Violation(f"K {PLACE} lacks {position}, {self._committed()} is committed")
            if read.error is not ErrorCode.NONE:
                session.forget_leaders()
                await session.pause(BACK_OFF_S)
                continue
            for record in read.records:
                if record.offset >= position:
                    log[record.offset] = (int(record.key or b"-1"), int(record.value or b"-1"))
                    position = record.offset + 1
            # As Kafka's consumers do: of a batch whose records are all gone its end is left.
            position = max(position, _end_of(answer))
        history.judge(newest, log)


def _end_of(answer: Any) -> int:
    """Behind the last batch of a Fetch answer that is whole; -1: it has none."""
    data = memoryview(answer.responses[0].partitions[0].records or b"")
    batches = iterate_batches(data, allow_partial=True)
    return max((header.next_offset for _, header in batches), default=-1)
