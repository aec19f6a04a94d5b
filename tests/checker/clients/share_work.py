"""Members of a share group: the released KafkaShareConsumer; see `tests.checker.worker`.

    poll ──> deliver (a note) ──> acknowledge (one operation for each key) ──> its outcome
                                  told by commitSync, or with the next poll

Most records are accepted, some released or rejected, and one in two hundred is always released,
until the broker gives it up. Now and then a member takes longer than its lock lasts, or leaves
without a word of what it has.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol
from zlib import crc32

from tests.checker.clients.client_process import KEYS, SHARE_GROUP, SHARE_TOPIC, Worker
from tests.checker.clients.java_client import JavaClient, JavaError
from tests.checker.history import Recorder

LOCK_MS: Final = 2_000
DELIVERIES_MAX: Final = 8
"""More than are lost with answers that nobody gets, so that only what is released reaches it."""

PROPERTIES: Final = {
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.delivery.count.limit": str(DELIVERIES_MAX),
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "200",
}
GROUP_SETTINGS: Final = {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
}
BUFFERED_NS: Final = 6_000_000_000
"""What a poll returns was acquired at most so long ago: the client waits 5 s for an answer."""

STANDING_STILL_NS: Final = 1_000_000_000

_MEMBER: Final = {
    "group.id": SHARE_GROUP,
    "share.acknowledgement.mode": "explicit",
    "fetch.max.wait.ms": "100",
    "request.timeout.ms": "5000",
    "default.api.timeout.ms": "10000",
}


class Asked(Protocol):
    """A process that is told what to do: `JavaClient`."""

    def ask(self, do: str, **task: Any) -> dict[str, Any]:
        """Have it do something."""


Deliveries = dict[str, list[tuple[int, str, int]]]
"""By key: offsets, values, delivery counts."""

Pending = dict[tuple[str, int], int]
"""Key and offset to the operation that acknowledged it and has not been answered."""


def is_stubborn(value: str) -> bool:
    """Whether nobody ever accepts it."""
    return crc32(value.encode()) % 200 == 0


class Acquisitions:
    """The earliest time at which what a poll returns can have been acquired.

    A fetch is sent in a poll, and its answer returned by that poll or one soon after. Times at
    which the process stood still do not count.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._steps: deque[int] = deque([clock()], 10_000)

    def step(self) -> None:
        """Between two calls of the client."""
        self._steps.append(self._clock())

    def since_ns(self) -> int:
        """For what is returned now."""
        lived, later = 0, self._clock()
        for step in reversed(self._steps):
            if later - step < STANDING_STILL_NS:
                lived += later - step
            if lived > BUFFERED_NS:
                return step
            later = step
        return self._steps[0]


class Member:
    """One member and what it has said without an answer."""

    def __init__(self, recorder: Recorder, java: Asked) -> None:
        self._recorder = recorder
        self._java = java
        self._pending: Pending = {}
        self._left: dict[int, int] = {}
        self._acquisitions = Acquisitions()
        self._polled_ns = time.monotonic_ns()
        java.ask("share", settings=_MEMBER, topics=[SHARE_TOPIC])

    def poll(self, milliseconds: int) -> Deliveries:
        """What is delivered: by key, offsets, values and delivery counts."""
        self._acquisitions.step()
        previous_ns, self._polled_ns = self._polled_ns, time.monotonic_ns()
        answer = self._java.ask("sharePoll", ms=milliseconds)
        since_ns = self._acquisitions.since_ns()
        self._take(answer["said"])
        deliveries: Deliveries = {}
        for topic, index, offset, value, count in answer["records"]:
            deliveries.setdefault(f"{topic}-{index}", []).append((offset, value, count))
        if deliveries:
            self._recorder.note(
                "deliver",
                group=SHARE_GROUP,
                deliveries=deliveries,
                since=since_ns,
                previous=previous_ns,
            )
        return deliveries

    def say(self, key: str, acks: list[tuple[int, str]]) -> None:
        """Acknowledge records of a key; a poll or a commit sends it."""
        i = self._recorder.invoke("acknowledge", group=SHARE_GROUP, key=key, acks=acks)
        topic, _, index = key.rpartition("-")
        self._java.ask("acknowledge", acks=[[topic, int(index), o, kind] for o, kind in acks])
        if any((key, offset) in self._pending for offset, _ in acks):
            # Had before, and not answered: nobody could tell which of the two an answer is for.
            for offset, _ in acks:
                self._left.pop(self._pending.pop((key, offset), -1), None)
            return
        self._left[i] = len(acks)
        for offset, _ in acks:
            self._pending[key, offset] = i

    def commit(self) -> None:
        """Send what was said and wait for the answer."""
        self._acquisitions.step()
        self._take(self._java.ask("shareCommit", ms=8_000)["said"])

    def close(self) -> None:
        """Leave the group."""
        self._take(self._java.ask("close")["said"])

    def _take(self, said: list[Any]) -> None:
        """An operation is ok when all of it is; of a refusal it may be the second try."""
        for topic, index, offsets, reason in said:
            for offset in offsets:
                i = self._pending.pop((f"{topic}-{index}", offset), None)
                if i is None or i not in self._left:
                    continue
                if reason is not None:
                    del self._left[i]
                    self._recorder.complete(i, "info", "acknowledge", error=reason)
                    continue
                self._left[i] -= 1
                if not self._left[i]:
                    del self._left[i]
                    self._recorder.complete(i, "ok", "acknowledge")


def jshare(worker: Worker, *, accepts_all: bool = False) -> None:
    """A member; it joins anew now and then."""
    draw = worker.random
    worker.recorder.note(
        "sharing",
        group=SHARE_GROUP,
        keys=[f"{SHARE_TOPIC}-{index}" for index in range(KEYS[SHARE_TOPIC])],
        deliveries_max=DELIVERIES_MAX,
    )
    java = JavaClient(worker)
    while not worker.stopping:
        try:
            java.ask("group", name=SHARE_GROUP, settings=GROUP_SETTINGS)
            member = Member(worker.recorder, java)
            until = time.monotonic() + draw.uniform(15, 60)
            while not worker.stopping and (time.monotonic() < until or accepts_all):
                if not _work(worker, member, accepts_all=accepts_all):
                    break
            member.close()
        except JavaError as error:
            worker.recorder.note("crash", error=str(error))
            worker.pause()
    java.close()


def _work(worker: Worker, member: Member, *, accepts_all: bool) -> bool:
    """A poll and what is said of it; False when the member is to leave with it unsaid."""
    draw = worker.random
    deliveries = member.poll(500)
    if not accepts_all and deliveries and draw.random() < 0.06:
        time.sleep(draw.uniform(0.5, 1.5) * LOCK_MS / 1000)
    if not accepts_all and deliveries and draw.random() < 0.03:
        return False
    for key, records in deliveries.items():
        acks = []
        for offset, value, _count in records:
            kind = "ACCEPT"
            if is_stubborn(value):
                kind = "RELEASE"
            elif not accepts_all:
                kind = draw.choices(("ACCEPT", "RELEASE", "REJECT"), (90, 8, 2))[0]
            acks.append((offset, kind))
        member.say(key, acks)
    if deliveries and draw.random() < 0.5:
        member.commit()
    return True
