"""The end of a share group's history: waits until the group has been given all that there is.

    new member ──> quiet for SHARE_QUIET_S ──> a mark to each key ──> the member has the marks
                        ^                                                  │      │
                        └──── and has been given something else, too ──────┘      └─ alone: done

Silence alone says nothing: of a member that has not begun, or of a machine that is busy. What
stands in front of a mark in its partition and may be acquired comes before it, as records are given
out from the lowest on. The silence is longer than locks and sessions last, so nobody else has any.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, Protocol

from confluent_kafka import KafkaError, Message, Producer

from tests.checker.clients.client_process import KEYS, SHARE_TOPIC
from tests.checker.clients.share_work import is_stubborn
from tests.checker.history import Recorder, read_lines

SHARE_QUIET_S: Final = 8.0
"""Longer than locks and sessions of share groups."""

TICK_S: Final = 0.2
SEND_S: Final = 30.0


class LastMember(Protocol):
    """A member that works on everything as it comes; the history that it writes."""

    def quiet_s(self) -> float:
        """For how long it has written nothing."""
        ...

    def values(self) -> Sequence[str]:
        """All it has been given so far, in this order."""
        ...


def drain(
    member: LastMember,
    mark: Callable[[], frozenset[str]],
    *,
    timeout_s: float,
    rest: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Wait until the member has all; returns what has not come to an end in time.

    Args:
        member: Of the group, the only one now.
        mark: Sends a new value to each key, and returns them.
        timeout_s: In all.
        rest: Passes the time between two looks.
        clock: In seconds.
    """
    deadline = clock() + timeout_s

    def comes(is_there: Callable[[], bool]) -> bool:
        while not is_there():
            if clock() > deadline:
                return False
            rest(TICK_S)
        return True

    while True:
        if not comes(lambda: member.quiet_s() >= SHARE_QUIET_S):
            return ["share group: still being delivered to"]
        before = len(member.values())
        marks = mark()
        if not comes(partial(_has, member, before, marks)):
            missing = sorted(marks.difference(member.values()))
            return [f"share group: {', '.join(missing)} sent and not delivered"]
        if marks.issuperset(member.values()[before:]):
            return []


def _has(member: LastMember, before: int, marks: frozenset[str]) -> bool:
    return marks.issubset(member.values()[before:])


def values_given(paths: Sequence[Path]) -> list[str]:
    """The values in all deliveries of histories, in the order of their lines."""
    return [
        value
        for line in read_lines(paths)
        if line["f"] == "deliver"
        for records in line["value"]["deliveries"].values()
        for _offset, value, _times in records
    ]


class Marker:
    """Sends marks, and says so in a history of its own: what was sent is judged as all is."""

    def __init__(self, address: str, path: Path) -> None:
        self._recorder = Recorder(path, path.stem)
        self._count = count()
        self._producer = Producer(
            {"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0}
        )

    def __call__(self) -> frozenset[str]:
        """One to each key."""
        marks = set()
        for index in range(KEYS[SHARE_TOPIC]):
            value = self._value()
            marks.add(value)
            key = f"{SHARE_TOPIC}-{index}"
            i = self._recorder.invoke("send", sends=[[key, value, None]])
            self._producer.produce(
                SHARE_TOPIC,
                value.encode(),
                partition=index,
                on_delivery=self._delivered(i, key, value),
            )
        self._producer.flush(SEND_S)
        return frozenset(marks)

    def _value(self) -> str:
        """One that the member accepts."""
        while True:
            value = f"{self._recorder.proc}:{next(self._count)}"
            if not is_stubborn(value):
                return value

    def _delivered(
        self, i: int, key: str, value: str
    ) -> Callable[[KafkaError | None, Message], None]:
        def callback(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                known = offset if offset is not None and offset >= 0 else None
                self._recorder.complete(i, "ok", "send", sends=[[key, value, known]])
            else:
                self._recorder.complete(i, "info", "send", error=str(error))

        return callback
