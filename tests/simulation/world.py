"""A whole simulated cluster: loop, network, store, brokers; and what went wrong in it."""

import gc
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

from broker.controller.images.cluster_image import ClusterImage
from protocol.records.batch import iterate_batches
from tests.simulation.brokers import SimBroker
from tests.simulation.clock import WALL_START_MS
from tests.simulation.loop import SimLoop
from tests.simulation.network import SimNetwork
from tests.simulation.pace import Pace, seldom_timers
from tests.simulation.remote.bucket import Bucket
from tests.simulation.store import StoreServer

RESTART_S: Final = 1.0
KNOWN_S: Final = 15.0
"""Longer than a session: by then who was replaced knows, or answers nothing."""

TRUNCATED: Final = "committed records are truncated"
"""What a follower logs that cuts its log below its own high watermark."""


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Mark(NamedTuple):
    """Where in a replica's files a look has ended: a batch of this offset begins there, or will."""

    offset: int
    segment: str
    position: int


class Violation(AssertionError):
    """Something that must never be; the run ends with it."""


class _Problems(logging.Handler):
    """Exceptions that a broker has logged: those that it did not expect."""

    def __init__(self, world: "World") -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.logged(record)


class World:
    """See the module; `close` it.

    Attributes:
        exits: Brokers that ended by themselves, and why.
        pace: How busy it is.
        problems: Exceptions that nobody expected.
        lines: Of the brokers' logs, warnings and above, with time and process.
        lossy: A topic that may lose what was committed.
    """

    def __init__(self, seed: int, *, brokers: int, **settings: object) -> None:
        self.seed = seed
        self.loop = SimLoop(seed)  # type: ignore[abstract]  # what a broker needs of a loop
        self.began_s = self.loop.time()
        self.network = SimNetwork(self.loop)
        self.server = StoreServer(self.network)
        self.bucket = Bucket(self.loop)
        self.brokers: Final = {
            node_id: SimBroker(node_id, self.network, self.server, self.bucket, **settings)
            for node_id in range(1, brokers + 1)
        }
        self.pace = Pace(self.loop, lambda: list(self.brokers.values()))
        for place in self.brokers.values():
            place.on_exit = self._exited
            place.on_started = self.pace.settle
        self._timers = ExitStack()
        self._timers.enter_context(seldom_timers())
        self._image = ClusterImage.empty()
        self._log_starts: dict[Place, int] = {}
        self._led_since: dict[Place, tuple[int, float]] = {}
        self.exits: list[str] = []
        self.problems: list[str] = []
        self.lines: list[str] = []
        self.lossy = ""
        self._handler = _Problems(self)
        root = logging.getLogger()
        self._level = root.level
        self._others = list(root.handlers)
        root.handlers = [self._handler]

    def close(self, *, collects: bool = True) -> None:
        """End the run; give the log back.

        `collects` unless the process ends with the run: nothing of it must run later.
        """
        self._timers.close()
        logging.getLogger().handlers = self._others
        if not collects:
            return
        # What is cut off in the middle complains: of waiting in `finally`, of never having begun.
        hook, sys.unraisablehook = sys.unraisablehook, lambda _unraisable: None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.loop.bury()
                for place in self.brokers.values():
                    place.broker = None
                gc.collect()
        finally:
            sys.unraisablehook = hook

    def logged(self, record: logging.LogRecord) -> None:
        """Keep a line of a broker's log; not of one that died in this handle."""
        if self.loop.current.is_dead:
            return
        line = f"{self.loop.time():.6f} {self.loop.current.name} {record.getMessage()}"
        self.lines.append(line)
        if record.getMessage().startswith(TRUNCATED) and f"partition={self.lossy}-" not in line:
            self.fail(f"I12 {line}")
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            self.fail(f"{line}\n{text}")

    def fail(self, problem: str) -> None:
        """Something is wrong: the run ends."""
        self.problems.append(problem)
        self.loop.is_over = True

    def start(self, node_id: int) -> None:
        """Start a broker, unless it runs; one that is stopping, when it has ended."""
        place = self.brokers[node_id]
        if not place.is_running:
            place.start()
        elif place.is_stopping:
            place.is_wanted = True

    def _exited(self, node_id: int, reason: str) -> None:
        """A supervisor starts again what has ended by itself."""
        self.exits.append(f"{self.loop.time():.6f} broker {node_id}: {reason}")
        self.loop.call_in_later(RESTART_S, self.loop.outside, self.start, node_id)

    @property
    def image(self) -> ClusterImage:
        """What the store holds now."""
        if self._image.revision != self.server.store.disk.revision:
            disk = self.server.store.disk
            self._image = ClusterImage.loaded(disk.items.values(), disk.revision)
        return self._image

    def log_start(self, place: Place) -> int:
        """The highest log start that a partition's replicas had when asked about: below it is none.

        Replicas hear of it one after the other, and one that has heard may end.
        """
        start = self._log_starts.get(place, 0)
        for one in self.brokers.values():
            broker = one.broker if one.is_running else None
            replica = None if broker is None else broker.replicas.replica_of(*place)
            if replica is not None:
                start = max(start, replica.log.log_start_offset)
        self._log_starts[place] = start
        return start

    def note_leaders(self) -> None:
        """Note since when partitions are led by whom, of a store that may have changed."""
        for topic in self.image.topics.values():
            for partition in topic.partitions:
                place = Place(topic.name, partition.index)
                known = self._led_since.get(place)
                if known is None or known[0] != partition.leader_epoch:
                    self._led_since[place] = (partition.leader_epoch, self.loop.time())

    def is_long_led(self, place: Place) -> bool:
        """Whether a partition's leader is one that all have heard of, also the one before."""
        since_s = self._led_since.get(place, (0, float("-inf")))[1]
        return self.loop.time() - since_s > KNOWN_S

    def now_ms(self) -> int:
        """By a clock that is right; brokers' are off by up to two seconds."""
        return WALL_START_MS + int((self.loop.time() - self.began_s) * 1000)

    def is_whole(self) -> bool:
        """Whether all brokers run and are let in, all replicas are in sync, and none moves."""
        image = self.image
        return (
            all(place.is_ready for place in self.brokers.values())
            and {one.node_id for one in image.brokers.values() if one.is_live and not one.is_fenced}
            == set(self.brokers)
            and all(
                partition.leader >= 0
                and sorted(partition.isr) == sorted(partition.replicas)
                and not partition.is_reassigning
                for topic in image.topics.values()
                for partition in topic.partitions
            )
        )

    def is_sound(self) -> bool:
        """Whether all is whole, and nothing is cut, slow or paused."""
        network, server = self.network, self.server
        return (
            self.is_whole()
            and not network.cut
            and not network.slow
            and not server.lost_answers
            and not server.process.is_paused
            and not any(place.process.is_paused for place in self.brokers.values())
        )

    def stable_end(self, place: Place) -> int:
        """The last stable offset of a partition, as its leader has it; -1 without one."""
        image = self.image.partition(*place)
        broker = None if image is None else self.brokers.get(image.leader)
        if broker is None or not broker.is_running or broker.broker is None:
            return -1
        led = broker.broker.replicas.leader_of(*place)
        return -1 if led is None else led.log.last_stable_offset

    def describe(self) -> list[str]:
        """The state of everything, for a report."""
        image = self.image
        lines = [
            f"store revision {image.revision}, controller {image.controller_id} "
            f"epoch {image.controller_epoch}, cut {sorted(self.network.cut)}"
        ]
        for node_id, place in self.brokers.items():
            broker = place.broker
            own = "no image"
            if broker is not None and broker.controller is not None:
                own = f"revision {broker.controller.image.revision}"
            lines.append(
                f"broker {node_id} {place.process.name} running {place.is_running} "
                f"ready {place.is_ready} paused {place.process.is_paused} {own} "
                f"{image.brokers.get(node_id)}"
            )
            for partition in broker.replicas.partitions() if broker is not None else ():
                log = partition.log
                lines.append(
                    f"  {partition.topic_partition} leads {partition.is_leader} leader "
                    f"{partition.leader_id} epoch {partition.leader_epoch} "
                    f"[{log.log_start_offset}, {log.high_watermark}, {log.log_end_offset})"
                )
        for topic in image.topics.values():
            lines += [f"{topic.name} {partition}" for partition in topic.partitions]
        return lines

    def segments(
        self, node_id: int, place: Place, start: int = 0
    ) -> Iterator[tuple[str, memoryview]]:
        """The segment files of a replica from that of an offset on, as they lie on its disk."""
        disk = self.brokers[node_id].filesystem
        folder = self.brokers[node_id].folder(*place)
        if folder is None or not disk.exists(folder):
            return
        names = sorted(e.name for e in disk.list_directory(folder) if e.name.endswith(".log"))
        first = max((name for name in names if int(name[:-4]) <= start), default="")
        for name in names:
            if name >= first:
                yield name, memoryview(disk.peek(f"{folder}/{name}"))

    def batches(self, node_id: int, place: Place, start: int, end: int) -> dict[int, bytes]:
        """Batches of a replica from one offset on and before another, by their base offsets."""
        return self.batches_from(None, node_id, place, start, end)[0]

    def batches_from(
        self, mark: Mark | None, node_id: int, place: Place, start: int, end: int
    ) -> tuple[dict[int, bytes], Mark]:
        """As `batches`, and where the look has ended: a mark for one that starts there.

        A mark behind which the batch of its offset is not is not used.
        """
        found: dict[int, bytes] = {}
        segment, at = "", 0
        for segment, memory in self.segments(node_id, place, start):
            skipped = 0
            if mark is not None and mark.segment == segment and mark.offset == start:
                head = memory[mark.position :][:8]
                skipped = mark.position if int.from_bytes(head, "big") == start else 0
            at = len(memory)
            for position, header in iterate_batches(memory[skipped:], allow_partial=True):
                if header.base_offset >= end:
                    return found, Mark(end, segment, skipped + position)
                if header.base_offset >= start:
                    found[header.base_offset] = bytes(memory[skipped + position :][: header.size])
        return found, Mark(end, segment, at)

    def until(self, condition: Callable[[], bool], *, limit_s: float, what: str) -> None:
        """Run until the condition holds.

        Raises:
            Violation: It does not within so much virtual time.
        """
        if not self.loop.run(lambda: bool(self._wrong()) or condition(), limit_s=limit_s):
            raise Violation(f"not within {limit_s} s: {what}")
        self.check()

    def run_for(self, duration_s: float) -> None:
        """Run for so much virtual time."""
        loop = self.loop
        loop.run(lambda: loop.is_over and bool(self._wrong()), limit_s=duration_s)
        self.check()

    def _wrong(self) -> list[object]:
        return [*self.problems, *self.loop.errors, *self.server.store.unguarded]

    def check(self) -> None:
        """Raise what went wrong, if anything did."""
        wrong = self._wrong()
        if wrong:
            raise Violation(f"seed {self.seed}: {wrong[0]}")
