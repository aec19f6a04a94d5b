"""Transactional producers on raw connections: as many transactions as a broker takes, or a rate.

Every producer has a connection of its own and one transaction at a time:

    InitProducerId -> [ AddPartitionsToTxn ] -> Produce to k partitions -> EndTxn --+
                             ^   (transaction version 1 alone)                      |
                             +----------- next transaction, next epoch <------------+

A job that reads, processes and writes also fetches its input, and before EndTxn commits offsets
in the transaction. Where the broker says CONCURRENT_TRANSACTIONS the request is sent again after
20 ms, as clients do; this counts in full. At a rate every transaction is timed from the moment it
was due, even when its producer was still busy with the one before.

Source: KIP-98, KIP-890; Kafka's TransactionManager.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench import flexible, transaction_wire, wire
from bench.coordinator_lookup import RETRIABLE, TRANSACTION, find_coordinator
from bench.generator import GeneratorError, percentile
from bench.pipeline import Connection, Loop
from bench.process import cpu_seconds
from bench.transaction_wire import Producer, Versions

CONCURRENT_TRANSACTIONS = 51
_SEND_AGAIN = RETRIABLE | {CONCURRENT_TRANSACTIONS}
RETRY_S = 0.02
_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionLoad:
    """`producers`, each with `partitions` of `topic` in every transaction."""

    port: int
    pid: int
    topic: str
    producers: int
    partitions: tuple[int, ...]
    duration_s: float
    versions: Versions = transaction_wire.TV2
    value: bytes = b"t" * 100
    records: int = 1
    source: str | None = None
    """A topic with one partition per producer; set, every transaction reads a batch from it."""
    rate_per_s: float | None = None
    """Of all producers together; None: each begins the next as soon as it may."""
    name: str = "bench"
    host: str = "127.0.0.1"


@dataclass(slots=True)
class TransactionResult:
    """Only transactions whose commit was acknowledged count."""

    transactions: int
    seconds: float
    broker_cpu_s: float
    commit_p50_ms: float
    commit_p99_ms: float
    """EndTxn alone."""
    transaction_p50_ms: float
    transaction_p99_ms: float
    """From when a transaction was due, or its first request, to the answer to its EndTxn."""
    retries: int
    generator_busy: float
    consumed: list[int]
    """By producer: the source's offset after the last transaction."""
    by_producer: list[int]


@dataclass(slots=True)
class _Laps:
    commits: list[float] = field(default_factory=list)
    transactions: list[float] = field(default_factory=list)


class TransactionalProducer:
    """One producer; `committed` is how many transactions were acknowledged."""

    def __init__(self, loop: Loop, load: TransactionLoad, index: int) -> None:
        self.index = index
        self.producer = Producer(f"{load.name}-{index}")
        self.is_ready = self.is_idle = False
        self.committed = self.retries = 0
        self.offset = 0
        """The source's next."""
        self.laps = _Laps()
        self._loop, self._load = loop, load
        self._connection: Connection = loop.connect(load.host, load.port, self._start)
        self._sequences = dict.fromkeys(load.partitions, 0)
        self._due = self._end_s = 0.0
        self._number = 0
        self._begun = self._ended = 0.0
        self._input: list[bytes] = []
        self._input_end = 0

    # -- before ----------------------------------------------------------------------------

    def _start(self) -> None:
        find_coordinator(
            self._loop,
            self._connection,
            self.producer.transactional_id,
            self._initialise,
            kind=TRANSACTION,
        )

    def _initialise(self) -> None:
        frame = transaction_wire.init_producer_id_frame(
            self.producer.transactional_id, _TIMEOUT_MS, 0
        )

        def on_answer(answer: bytes) -> None:
            code, producer_id, epoch = transaction_wire.read_producer_id(answer)
            if code in _SEND_AGAIN:
                self._loop.call_at(time.perf_counter() + 0.1, self._initialise)
                return
            self._expect(code, "InitProducerId")
            self.producer = Producer(self.producer.transactional_id, producer_id, epoch)
            self.is_ready = True

        self._connection.send(frame, on_answer)

    # -- a transaction ---------------------------------------------------------------------

    def run(self, begin: float, end: float) -> None:
        """One transaction after the other, none of them begun or due after `end`."""
        self._end_s = end
        self.is_idle = False
        rate = self._load.rate_per_s
        self._due = begin if rate is None else begin + self.index / rate
        self._plan()

    def _plan(self) -> None:
        now = time.perf_counter()
        if self._load.rate_per_s is None:
            self._due = now
        if self._due >= self._end_s:
            self.is_idle = True
        elif self._due <= now:
            # Late because of the broker: it is charged for that.
            self._begin(self._due)
        else:
            # Idle when it is due: a timer's own milliseconds are not the broker's.
            self._loop.call_at(self._due, lambda: self._begin(time.perf_counter()))

    def _begin(self, begun: float) -> None:
        self._begun = begun
        if self._load.rate_per_s is not None:
            self._due += self._load.producers / self._load.rate_per_s
        if self._load.source is None:
            self._input = [self._load.value] * self._load.records
            self._register()
        else:
            self._fetch()

    def _fetch(self) -> None:
        """The next batch of the source, whole: one is what `max_bytes` has room for."""
        assert self._load.source is not None
        frame = wire.fetch_frame(
            self._load.source,
            self.index,
            self.offset,
            max_bytes=1,
            max_wait_ms=0,
            correlation_id=self._next_number(),
            isolation_level=transaction_wire.ISOLATION_COMMITTED,
        )

        def on_answer(answer: bytes) -> None:
            records = wire.parse_fetch(answer).records
            batch = next(iter(wire.whole_batches(records)), None)
            if batch is None:
                # All is read: there is nothing to transform.
                self.is_idle = True
                return
            base_offset, count, data = batch
            self._input = list(wire.plain_values(data))
            self._input_end = base_offset + count
            self._register()

        self._connection.send(frame, on_answer)

    def _register(self) -> None:
        if self._load.versions.registers_itself:
            self._produce()
            return
        self._send(
            lambda number: transaction_wire.add_partitions_frame(
                self.producer, self._load.topic, self._load.partitions, number
            ),
            flexible.partition_codes,
            self._produce,
            "AddPartitionsToTxn",
        )

    def _produce(self) -> None:
        now_ms = int(time.time() * 1000)
        batches = {
            index: transaction_wire.transactional_batch(
                self._input, self.producer, self._sequences[index], now_ms
            )
            for index in self._load.partitions
        }
        self._send(
            lambda number: transaction_wire.produce_frame(
                self.producer, self._load.topic, batches, self._load.versions, number
            ),
            lambda answer: set(transaction_wire.produce_errors(answer).values()),
            self._on_produced,
            "Produce",
        )

    def _on_produced(self) -> None:
        for index in self._load.partitions:
            self._sequences[index] += len(self._input)
        if self._load.source is None:
            self._end()
        elif self._load.versions.registers_itself:
            self._commit_offsets()
        else:
            self._send(
                lambda number: transaction_wire.add_offsets_frame(
                    self.producer, self.group, number
                ),
                lambda answer: {transaction_wire.error_after_throttle(answer)},
                self._commit_offsets,
                "AddOffsetsToTxn",
            )

    @property
    def group(self) -> str:
        """The consumer group of its input."""
        return f"{self.producer.transactional_id}-in"

    def _commit_offsets(self) -> None:
        source = self._load.source
        assert source is not None
        self._send(
            lambda number: transaction_wire.txn_offset_commit_frame(
                self.producer,
                self.group,
                source,
                {self.index: self._input_end},
                self._load.versions,
                number,
            ),
            flexible.partition_codes,
            self._end,
            "TxnOffsetCommit",
        )

    def _end(self) -> None:
        self._ended = time.perf_counter()
        found: list[tuple[int, int]] = []

        def codes(answer: bytes) -> set[int]:
            if not self._load.versions.registers_itself:
                return {transaction_wire.error_after_throttle(answer)}
            code, *who = transaction_wire.read_producer_id(answer)
            found[:] = [(who[0], who[1])]
            return {code}

        def on_committed() -> None:
            now = time.perf_counter()
            self.laps.commits.append(now - self._ended)
            self.laps.transactions.append(now - self._begun)
            self.committed += 1
            self.offset = self._input_end
            for producer_id, epoch in found:
                before = self.producer
                if (producer_id, epoch) != (before.producer_id, before.epoch):
                    # Another epoch begins with sequence 0.
                    self.producer = Producer(before.transactional_id, producer_id, epoch)
                    self._sequences = dict.fromkeys(self._sequences, 0)
            self._plan()

        self._send(
            lambda number: transaction_wire.end_txn_frame(
                self.producer, self._load.versions, number, commit=True
            ),
            codes,
            on_committed,
            "EndTxn",
        )

    # -- requests --------------------------------------------------------------------------

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _send(
        self,
        frame: Callable[[int], bytes],
        codes: Callable[[bytes], set[int]],
        then: Callable[[], None],
        what: str,
    ) -> None:
        """Send until it is answered without an error that a client tries again after."""

        def once() -> None:
            self._connection.send(frame(self._next_number()), on_answer)

        def on_answer(answer: bytes) -> None:
            found = codes(answer) - {0}
            if not found:
                then()
            elif found <= _SEND_AGAIN:
                self.retries += 1
                self._loop.call_at(time.perf_counter() + RETRY_S, once)
            else:
                raise GeneratorError(f"{self.producer.transactional_id}, {what}: errors {found}")

        once()

    def _expect(self, code: int, what: str) -> None:
        if code:
            raise GeneratorError(f"{self.producer.transactional_id}, {what}: error {code}")


def run_transactions(load: TransactionLoad) -> TransactionResult:
    """Start the producers, let them go for the time given, wait for the last commit."""
    loop = Loop()
    producers = [TransactionalProducer(loop, load, index) for index in range(load.producers)]
    loop.run_until(lambda: all(one.is_ready for one in producers), 120.0, "InitProducerId")
    cpu_before, own_before = cpu_seconds(load.pid), time.process_time()
    begin = time.perf_counter()
    end = begin + load.duration_s
    for one in producers:
        one.run(begin, end)
    loop.run_until(
        lambda: all(one.is_idle for one in producers), load.duration_s + 60.0, "transactions"
    )
    seconds = time.perf_counter() - begin
    own, cpu = time.process_time() - own_before, cpu_seconds(load.pid) - cpu_before
    loop.close()
    commits = sorted(lap for one in producers for lap in one.laps.commits)
    whole = sorted(lap for one in producers for lap in one.laps.transactions)
    if not commits:
        raise GeneratorError("no transaction was committed")
    return TransactionResult(
        len(commits),
        seconds,
        cpu,
        percentile(commits, 0.5) * 1e3,
        percentile(commits, 0.99) * 1e3,
        percentile(whole, 0.5) * 1e3,
        percentile(whole, 0.99) * 1e3,
        sum(one.retries for one in producers),
        own / seconds,
        [one.offset for one in producers],
        [one.committed for one in producers],
    )
