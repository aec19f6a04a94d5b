"""What all clients of the workload share: topics, groups, options, the history, their end."""

import faulthandler
import itertools
import json
import os
import random
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaException,
    Message,
    Producer,
)

from tests.checker.clients.raw import (
    Partition,
)
from tests.checker.history import Recorder

KEYS: Final = {"jepsen": 4, "in": 3, "out": 2, "nextout": 2, "rawout": 2, "long": 1}
"""Topics and their partitions; `in` has the inputs of all jobs, `long` transactions that last."""

INPUTS: Final = [f"in-{index}" for index in range(KEYS["in"])]
WRITABLE: Final = [(t, i) for t in ("jepsen", "in") for i in range(KEYS[t])]
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""Values of `group.protocol`; the second is KIP-848's."""

SUBSCRIBE_GROUP: Final = "subscribers"
NEXT_SUBSCRIBE_GROUP: Final = "nextsubscribers"
MIXED_GROUP: Final = "mixed"
"""Its members speak now one protocol, now the other."""

JOB_GROUP: Final = "job"
NEXT_JOB_GROUP: Final = "nextjob"
RAW_JOB_GROUP: Final = "rawjob"
GROUP_TOPICS: Final = {
    SUBSCRIBE_GROUP: "jepsen",
    NEXT_SUBSCRIBE_GROUP: "jepsen",
    MIXED_GROUP: "jepsen",
    JOB_GROUP: "in",
    NEXT_JOB_GROUP: "in",
    RAW_JOB_GROUP: "in",
}
SHARE_GROUP: Final = "sharers"
SHARE_TOPIC: Final = "jepsen"
TRANSACTION_TIMEOUT_MS: Final = 10_000
CLIENT_PATIENCE_S: Final = 15.0
HANG_S: Final = 40
DWELL_SHARE: Final = 0.1


LASTING: Final = {"metadata.recovery.strategy": "none"}
"""For clients that send offsets to transactions.

When librdkafka (2.16 and before) has lost its only broker, it takes up its bootstrap addresses
anew and forgets the brokers it knew, but not that one of them was a group's coordinator: the next
send_offsets_to_transaction waits for that one, for ever, as it looks at no timeout either. Source:
its issues 5511 and 5456; `test_librdkafka_hang` shows it. Without that strategy it goes on.
"""


@dataclass(slots=True)
class WorkerOptions:
    """What a process is told."""

    kind: str
    slot: int
    proc: str
    history: str
    address: str
    seed: int
    rate_per_s: float = 40.0
    topics: dict[str, int] = field(default_factory=lambda: dict(KEYS))

    def as_argument(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


def name(partition: Partition) -> str:
    """The key's name in histories."""
    return f"{partition[0]}-{partition[1]}"


class Worker:
    """What all kinds share."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.recorder = Recorder(Path(options.history), options.proc)
        self.stopping = False
        self._values = itertools.count()
        signal.signal(signal.SIGTERM, self._stop)
        faulthandler.register(signal.SIGALRM, chain=True)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def step(self) -> None:
        """Say that the client is alive; one that says nothing for `HANG_S` is ended by SIGALRM.

        The call it is in goes to its log: see `LASTING`.
        """
        signal.alarm(HANG_S)

    def value(self) -> str:
        """One that nobody else sends."""
        return f"{self.options.proc}:{next(self._values)}"

    def dwell_s(self) -> float:
        """How long to stay in a transaction: now and then so long that a fault finds it open."""
        return self.random.uniform(0.1, 1.5) if self.random.random() < DWELL_SHARE else 0.0

    def pause(self) -> None:
        """Keep to the rate."""
        time.sleep(self.random.expovariate(self.options.rate_per_s))

    @property
    def answer_s(self) -> float:
        """How long to wait for an answer: it may be swallowed on a connection that lives on.

        Where there are several brokers another may serve by then.
        """
        return 3.0 if "," in self.options.address else 10.0

    def client(self, **more: Any) -> dict[str, Any]:
        """Settings of every librdkafka client."""
        return {
            "bootstrap.servers": self.options.address,
            "socket.timeout.ms": int(self.answer_s * 1000),
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 500,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 300,
            "error_cb": _ignore,
            **self._logging(),
            **more,
        }

    @staticmethod
    def _logging() -> dict[str, Any]:
        """Silence, or what `VARVE_CHECKER_DEBUG=eos,cgrp` asks librdkafka to tell."""
        contexts = os.environ.get("VARVE_CHECKER_DEBUG")
        return {"debug": contexts} if contexts else {"log_level": 0}

    def consumer(self, **more: Any) -> Consumer:
        """A read_committed one without automatic commits."""
        return Consumer(
            self.client(
                **{
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 100,
                    "group.id": f"none-{self.options.proc}",
                    **more,
                }
            )
        )

    def transactional(self, transactional_id: str, **more: Any) -> Producer:
        """A producer that has its producer id; None is never returned, it is tried for ever."""
        while True:
            producer = Producer(
                self.client(
                    **{
                        "transactional.id": transactional_id,
                        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                        "linger.ms": 1,
                        **more,
                    }
                )
            )
            self.step()
            try:
                producer.init_transactions(CLIENT_PATIENCE_S)
            except KafkaException:
                if self.stopping:
                    raise SystemExit(0) from None
                continue
            return producer


def _ignore(_: object) -> None:
    """Refused connections are what the workload is about."""


NO_OFFSETS: Final = "Failed to fetch committed offset"
"""How librdkafka begins to say that it has given up on partitions, which it then keeps."""


def has_given_up(messages: list[Message]) -> bool:
    """Whether a member is among those that read no more, give nothing back, and heartbeat.

    librdkafka (2.16 and before) asks once for the offsets that its partitions begin at. Told
    NOT_COORDINATOR it looks for the coordinator and does not ask again: the partitions count as
    asked for, so neither do they start nor does any later rebalance end. Source: its issue 5586;
    `test_librdkafka_hang` shows it. Whoever leaves and joins again goes on.
    """
    errors = [message.error() for message in messages]
    return any(error is not None and error.str().startswith(NO_OFFSETS) for error in errors)


def read(messages: list[Message]) -> dict[str, list[tuple[int, str]]]:
    """Messages as polls; what is an error is none."""
    polls: dict[str, list[tuple[int, str]]] = {}
    for message in messages:
        if message.error() is None:
            key = f"{message.topic()}-{message.partition()}"
            offset, value = message.offset(), message.value()
            assert offset is not None
            assert value is not None
            polls.setdefault(key, []).append((offset, value.decode()))
    return polls
