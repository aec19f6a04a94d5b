"""Transactions of librdkafka producers: what a service has that knows only the old protocol.

Each producer is a thread that begins, produces, commits and begins again. librdkafka registers
partitions itself (transaction version 1) and waits, when the transaction before is not complete,
for its own retry interval.
"""

import threading
import time
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer

from bench.generator import GeneratorError, percentile
from bench.process import cpu_seconds


@dataclass(frozen=True, slots=True)
class ClientTransactionLoad:
    """`producers` threads, each with `partitions` of `topic` in every transaction."""

    address: str
    pid: int
    topic: str
    producers: int
    partitions: tuple[int, ...]
    duration_s: float
    value: bytes = b"t" * 100


@dataclass(slots=True)
class ClientTransactionResult:
    """Only transactions whose commit returned count."""

    transactions: int
    seconds: float
    broker_cpu_s: float
    commit_p50_ms: float
    commit_p99_ms: float
    """`commit_transaction()` with its flush."""
    transaction_p99_ms: float
    generator_busy: float


def run_client_transactions(load: ClientTransactionLoad) -> ClientTransactionResult:
    """Start all producers, let them go for the time given."""
    producers = [
        Producer(
            {
                "bootstrap.servers": load.address,
                "transactional.id": f"{load.topic}-{index}",
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        for index in range(load.producers)
    ]
    commits: list[float] = []
    whole: list[float] = []
    trouble: list[str] = []
    ready = threading.Barrier(load.producers + 1)
    clock = time.perf_counter
    end = 0.0

    def work(producer: Producer) -> None:
        try:
            producer.init_transactions(60)
            ready.wait()
            ready.wait()
            while clock() < end:
                begin = clock()
                producer.begin_transaction()
                for partition in load.partitions:
                    producer.produce(load.topic, load.value, partition=partition)
                ending = clock()
                producer.commit_transaction(30)
                now = clock()
                # Appending to a list is atomic.
                commits.append(now - ending)
                whole.append(now - begin)
        except (KafkaException, threading.BrokenBarrierError) as error:
            trouble.append(str(error))
            ready.abort()

    threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in producers]
    for thread in threads:
        thread.start()
    try:
        ready.wait(120.0)
        cpu_before, own_before = cpu_seconds(load.pid), time.process_time()
        begin = clock()
        end = begin + load.duration_s
        ready.wait(10.0)
    except threading.BrokenBarrierError:
        raise GeneratorError(f"transactions did not start: {trouble}") from None
    for thread in threads:
        thread.join()
    seconds = clock() - begin
    own, cpu = time.process_time() - own_before, cpu_seconds(load.pid) - cpu_before
    if trouble or not commits:
        raise GeneratorError(f"{len(commits)} transactions, then {trouble}")
    commits.sort()
    whole.sort()
    return ClientTransactionResult(
        len(commits),
        seconds,
        cpu,
        percentile(commits, 0.5) * 1e3,
        percentile(commits, 0.99) * 1e3,
        percentile(whole, 0.99) * 1e3,
        own / seconds,
    )
