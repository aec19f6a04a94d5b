"""The kinds of work that the released Java client does; see `tests.checker.worker`."""

import time
from collections.abc import Sequence
from typing import Any, Final

from tests.checker.clients.client_process import (
    CLASSIC,
    CLIENT_PATIENCE_S,
    CONSUMER,
    INPUTS,
    KEYS,
    TRANSACTION_TIMEOUT_MS,
    WRITABLE,
    Worker,
    name,
)
from tests.checker.clients.java_client import JavaClient, JavaError
from tests.checker.clients.raw import Partition

Polls = dict[str, list[tuple[int, str]]]

_PRODUCER: Final = {
    "enable.idempotence": "true",
    "acks": "all",
    "linger.ms": "1",
    # Each of several sends may wait so long for metadata, all within `ANSWER_S`.
    "max.block.ms": "4000",
    "request.timeout.ms": "4000",
    "delivery.timeout.ms": "25000",
}
_CONSUMER: Final = {
    "isolation.level": "read_committed",
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": "100",
    "request.timeout.ms": "4000",
    "default.api.timeout.ms": "15000",
}
_SESSIONS: Final[dict[str, dict[str, str]]] = {
    CLASSIC: {
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        # The one that librdkafka's members of these groups have, too.
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
    },
    CONSUMER: {},
}


def jsend(worker: Worker) -> None:
    """Idempotent sends, some in flight at a time."""
    draw, recorder = worker.random, worker.recorder
    java = JavaClient(worker)
    while not worker.stopping:
        java.ask("producer", settings=_PRODUCER)
        alive = True
        while alive and not worker.stopping:
            planned = [(draw.choice(WRITABLE), worker.value()) for _ in range(draw.randint(1, 8))]
            ops = [recorder.invoke("send", sends=[[name(k), v, None]]) for k, v in planned]
            try:
                java.ask("send", records=[[*key, value] for key, value in planned])
                answer = java.ask("flush")
            except JavaError as error:
                for i in ops:
                    recorder.complete(i, "info", "send", error=str(error))
                alive = False
                continue
            outcomes = zip(ops, planned, answer["offsets"], answer["errors"], strict=True)
            for i, (key, value), offset, reason in outcomes:
                if reason is None:
                    recorder.complete(i, "ok", "send", sends=[[name(key), value, offset]])
                else:
                    recorder.complete(i, "info", "send", error=reason)
                    alive = False
            worker.pause()
    java.close()


class Transactions:
    """The Java client's producer with a transactional id, and what the end of a one means."""

    def __init__(self, worker: Worker, java: JavaClient, transactional_id: str) -> None:
        self._worker = worker
        self._java = java
        self._settings = {
            **_PRODUCER,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
        }
        self.renew()

    def renew(self) -> None:
        """A new producer that has its producer id; it is tried for ever."""
        while True:
            try:
                self._java.ask("producer", settings=self._settings)
            except JavaError:
                if self._worker.stopping:
                    raise SystemExit(0) from None
                continue
            return

    def end(self, *, commit: bool) -> tuple[str, bool]:
        """Commit or abort; returns the outcome and whether the producer can go on."""
        if not commit:
            return "fail", self._abort()
        deadline = time.monotonic() + CLIENT_PATIENCE_S
        while True:
            try:
                self._java.ask("commit")
            except JavaError as error:
                if error.kind == "TimeoutException":
                    if time.monotonic() < deadline:
                        continue
                    return "info", False
                # Whoever may still abort has not committed.
                return ("fail", True) if self._abort() else ("info", False)
            return "ok", True

    def _abort(self) -> bool:
        deadline = time.monotonic() + CLIENT_PATIENCE_S
        while True:
            try:
                self._java.ask("abort")
            except JavaError as error:
                if error.kind == "TimeoutException" and time.monotonic() < deadline:
                    continue
                return False
            return True


def jtxn(worker: Worker) -> None:
    """Transactions over several keys: some sends, a poll, the other sends."""
    draw, recorder = worker.random, worker.recorder
    java = JavaClient(worker)
    producer = Transactions(worker, java, f"jtxn-{worker.options.slot}")
    begin_reading(worker, java)
    while not worker.stopping:
        planned = [(draw.choice(WRITABLE), worker.value()) for _ in range(draw.randint(1, 4))]
        sends: list[list[Any]] = [[name(key), value, None] for key, value in planned]
        first = draw.randint(1, len(planned))
        polls: Polls = {}
        i = recorder.invoke("txn", sends=sends)
        try:
            java.ask("begin")
            records = [[*key, value] for key, value in planned]
            java.ask("send", records=records[:first])
            offsets = java.ask("flush")["offsets"]
            dwell_s, is_early = worker.dwell_s(), draw.random() < 0.5
            if draw.random() < 0.7:
                time.sleep(dwell_s if is_early else 0.0)
                polls = keyed(java.ask("poll", ms=50)["records"])
            java.ask("send", records=records[first:])
            offsets += java.ask("flush")["offsets"]
            for one, offset in zip(sends, offsets, strict=True):
                one[2] = offset
            time.sleep(0.0 if is_early else dwell_s)
        except JavaError:
            # Nobody has asked for a commit; what the poll had is in no later one.
            outcome, alive = producer.end(commit=False)
        else:
            outcome, alive = producer.end(commit=draw.random() < 0.8)
        recorder.complete(i, outcome, "txn", sends=sends, polls=polls)
        if not alive:
            producer.renew()
        worker.pause()
    java.close()


def begin_reading(worker: Worker, java: JavaClient) -> None:
    """Three keys, from their beginning or from their end."""
    keys, at_end = worker.random.sample(WRITABLE, 3), worker.random.random() < 0.7
    java.ask("consumer", settings=_CONSUMER, assign=[[*key, at_end] for key in keys])
    worker.recorder.note("seek" if at_end else "assign", keys=[name(key) for key in keys])


def keyed(records: Sequence[Sequence[Any]]) -> Polls:
    """The records of an answer as polls."""
    polls: Polls = {}
    for topic, partition, offset, value in records:
        polls.setdefault(f"{topic}-{partition}", []).append((offset, value))
    return polls


def _join(worker: Worker, java: JavaClient, group: str, protocol: str, topics: list[str]) -> None:
    settings = {
        **_CONSUMER,
        "group.id": group,
        "group.protocol": protocol,
        "max.poll.records": "20",
        **_SESSIONS[protocol],
    }
    while True:
        try:
            java.ask("consumer", settings=settings, topics=topics)
        except JavaError:
            if worker.stopping:
                raise SystemExit(0) from None
            continue
        return


def _poll(worker: Worker, java: JavaClient) -> Polls:
    """What is there; a rebalance is noted before it."""
    answer = java.ask("poll", ms=200)
    _note_moved(worker, answer)
    return keyed(answer["records"])


def _note_moved(worker: Worker, answer: dict[str, Any]) -> None:
    if answer["moved"]:
        worker.recorder.note("seek", keys=[f"{t}-{i}" for t, i in answer["moved"]])


def _placed(offsets: dict[str, int]) -> list[list[Any]]:
    placed = []
    for key, offset in offsets.items():
        topic, _, index = key.rpartition("-")
        placed.append([topic, int(index), offset])
    return placed


def jsubscribe(worker: Worker, group: str, protocols: Sequence[str]) -> None:
    """A member that commits after every poll; each time it joins it draws a protocol."""
    draw, recorder = worker.random, worker.recorder
    java = JavaClient(worker)
    while not worker.stopping:
        _join(worker, java, group, draw.choice(protocols), ["jepsen"])
        until = time.monotonic() + draw.uniform(10, 40)
        while time.monotonic() < until and not worker.stopping:
            try:
                polls = _poll(worker, java)
            except JavaError:
                break
            if not polls:
                continue
            recorder.note("poll", polls=polls)
            offsets = {key: found[-1][0] + 1 for key, found in polls.items()}
            i = recorder.invoke("commit", group=group, offsets=offsets)
            try:
                java.ask("commitOffsets", offsets=_placed(offsets))
            except JavaError as error:
                # Nor here does a refusal say what became of an attempt before it.
                recorder.complete(i, "info", "commit", error=str(error))
                break
            recorder.complete(i, "ok", "commit")
    java.close()


def jjob(worker: Worker, group: str, protocol: str, sink: str) -> None:
    """Each input makes one output, and its offset is committed with it."""
    recorder, draw = worker.recorder, worker.random
    outputs = [f"{sink}-{index}" for index in range(KEYS[sink])]
    recorder.note("pipeline", group=group, inputs=INPUTS, outputs=outputs)
    java = JavaClient(worker)
    producer = Transactions(worker, java, f"j{group}-{worker.options.slot}")
    while not worker.stopping:
        _join(worker, java, group, protocol, ["in"])
        while not worker.stopping:
            try:
                polls = _poll(worker, java)
            except JavaError:
                break
            if not polls:
                continue
            planned: list[tuple[Partition, str]] = [
                ((sink, draw.randrange(KEYS[sink])), f"{worker.value()}|{value}")
                for found in polls.values()
                for _, value in found
            ]
            outcome, alive = _job_transaction(worker, java, producer, (group, polls, planned))
            if not alive:
                producer.renew()
                break
            if outcome != "ok":
                try:
                    _note_moved(worker, java.ask("rewind"))
                except JavaError:
                    break
    java.close()


def _job_transaction(
    worker: Worker,
    java: JavaClient,
    producer: Transactions,
    step: tuple[str, Polls, list[tuple[Partition, str]]],
) -> tuple[str, bool]:
    group, polls, planned = step
    sends: list[list[Any]] = [[name(key), value, None] for key, value in planned]
    offsets = {key: found[-1][0] + 1 for key, found in polls.items()}
    i = worker.recorder.invoke("txn", polls=polls, sends=sends, group=group, offsets=offsets)
    commit = worker.random.random() < 0.85
    try:
        java.ask("begin")
        java.ask("send", records=[[*key, value] for key, value in planned])
        for one, offset in zip(sends, java.ask("flush")["offsets"], strict=True):
            one[2] = offset
        java.ask("offsetsToTransaction", offsets=_placed(offsets))
    except JavaError:
        commit = False
    outcome, alive = producer.end(commit=commit)
    worker.recorder.complete(i, outcome, "txn", sends=sends)
    return outcome, alive
