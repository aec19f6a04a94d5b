"""Faults of a simulated cluster: a plan drawn by the seed, each fault with its own end.

A plan is a list, so that faults can be left out of it: what is left still makes sense.
"""

import asyncio
import errno
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Final, NamedTuple

from broker.broker import Broker
from broker.controller.images.cluster_image import ClusterImage
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.elect_leaders import ElectLeadersRequest
from storage.log.directory_pace import HELD_UP_MS
from tests.fakes.filesystem import KEEP_ALL
from tests.simulation.brokers import SimBroker
from tests.simulation.clients.session import LOST, TOPIC, Session
from tests.simulation.faults.moves import elsewhere, moves_of, replicas_at
from tests.simulation.faults.reassignments import Reassigner
from tests.simulation.faults.scripts import MIN_ISR, Script
from tests.simulation.faults.steps import ASKS, alter_topic
from tests.simulation.faults.throttles import lifting, throttling
from tests.simulation.oracles.assignments import Assignments
from tests.simulation.store import HOST
from tests.simulation.world import Place, World


class Fault(NamedTuple):
    """One fault.

    Attributes:
        at_s: When it begins, from the start of the faults.
        kind: Of KINDS.
        target: A broker.
        other: Another broker, for faults between two.
        lasts_s: When it ends after that.
        salt: For what is drawn when it happens.
    """

    at_s: float
    kind: str
    target: int
    other: int
    lasts_s: float
    salt: int


KINDS: Final = {
    "kill": 4,
    "crash": 2,
    "stop": 2,
    "pause": 2,
    "cut one way": 2,
    "cut": 2,
    "isolate": 1,
    "cut from store": 2,
    "pause store": 1,
    "end leases": 2,
    "compact": 1,
    "slow link": 1,
    "reset": 1,
    "lose answers": 2,
    "elect in store": 1,
    "disk fails": 1,
    "disk full": 1,
    "old disk": 1,
    "reassign": 2,
    "prefer": 1,
    "min isr changes": 2,
    "leader comes back": 2,
    "eligible loses its log": 1,
    "leader alone": 1,
    "two changes": 2,
    "deaf heir": 2,
    "leader in doubt": 2,
    "minimum goes down": 2,
    "deaf leader": 1,
    "throttle": 2,
    "add partitions": 2,
    "move given up": 5,
}
"""Each with how often it is drawn.

kill            kill -9; started again when it ends
crash           the machine loses its power and what was not synced; only while every partition has
                all its replicas in sync, and nothing else is dead: else it is a kill
stop            SIGTERM
pause           SIGSTOP
cut one way     from one broker to another
cut             both ways
isolate         from all brokers; clients and store are there
cut from store  one way or both
pause store     the store's server stands still, and ends leases when it wakes
end leases      some leases end before their time
compact         the store forgets its history
slow link       what one broker sends to another takes up to half a second longer
reset           connections between two brokers end
lose answers    of the store: outcomes are unknown
elect in store  the store's server stands still, and gives all leases their full time when it wakes
disk fails      a broker's disk refuses to write, to sync or to open; then the broker is killed, has
                another disk controller, and starts again. Only while everything is whole
disk full       a broker's disk has no room for records; mostly it was slow before
old disk        a broker's disk is copied, and the copy is put in its place when the fault ends: all
                since then is gone, and nothing on it says so. Only while everything is whole
reassign        a partition gets other replicas, and a full set in another order when it ends
prefer          preferred leaders are elected
min isr changes  `min.insync.replicas` of a topic is one, two or three until it ends
throttle        replicas that are out of sync get few bytes a second, or none, until it ends; mostly
                those of a broker that was killed, and starts again meanwhile
add partitions  the topic that clients write to gets one more, up to six
others          scripts of several steps (`scripts.py`), which end by themselves
"""

BUCKET_KINDS: Final = {
    "bucket away": 2,
    "bucket slow": 2,
    "bucket loses answers": 2,
    "tier dies": 2,
    "copies stop": 1,
    "deaf heir": 9,
    "leader in doubt": 6,
    "deaf leader": 3,
}
"""Of runs with a bucket, beside the others.

bucket away            requests are refused
bucket slow            requests and answers take up to three seconds
bucket loses answers   what was done is said to have failed
tier dies              kill -9 of a broker's tier process
copies stop            `remote.log.copy.disable` of a topic, until it ends
others                 as of all runs, and more often: a leader that knows too little does most harm
                       where what it removes does not come back
"""

DIRECTORY_KINDS: Final = {
    "move": 4,
    "dies while moving": 4,
    "directory fails": 2,
}
"""Of runs whose brokers have two log directories, beside the others.

move               replicas of a broker change their directory, and again when it ends; at times
                   it is cut from the controller meanwhile, which has to note where they are
dies while moving  script: a broker dies in the middle of that
directory fails    one of a broker's directories refuses to write, to sync or to open, and the other
                   does not; then the broker is killed, and starts again with a sound disk. Only
                   while everything is whole
"""

LOSSY_KINDS: Final = {"lagging heir": 6}
"""Of runs with a topic that may lose records, beside the others; a script."""

SYNCED_KINDS: Final = {"blackout": 8}
"""Of runs in which each batch is synced before it is acknowledged, beside the others.

blackout    the machines of all brokers lose their power and what was not synced, and start again
            one after the other
"""

SCRIPTS: Final = (
    "dies while moving",
    "lagging heir",
    "leader comes back",
    "eligible loses its log",
    "leader alone",
    "two changes",
    "deaf heir",
    "leader in doubt",
    "minimum goes down",
    "deaf leader",
    "move given up",
)

EVERY_S: Final = 6.0
LASTS_S: Final = 8.0

EPISODE: Final = 3
"""Faults in an episode, on average, which are half as far from each other."""

QUIET_S: Final = 700.0
"""Between two episodes, at most."""

PARTITIONS_MAX: Final = 6
THROTTLED_S: Final = 0.5
"""By then a throttle has come to the brokers."""

CATCHES_UP: Final = 0.6
"""With so many throttles a broker dies, and has to catch up while they last."""

LIFT_EVERY_S: Final = 1.0

BEFORE_S: Final = 3.0
AFTER_S: Final = 6.0
"""How long a cluster is busy before and after a fault."""


def draw_plan(
    seed: int,
    brokers: int,
    duration_s: float,
    *,
    quiet: bool = False,
    tiered: bool = False,
    directories: int = 1,
    lossy: bool = False,
    synced: bool = False,
) -> list[Fault]:
    """The faults of a seed, one after the other, or (`quiet`) in episodes."""
    random = Random(f"plan {seed}")
    drawn = KINDS
    for more, are_drawn in (
        (BUCKET_KINDS, tiered),
        (DIRECTORY_KINDS, directories > 1),
        (LOSSY_KINDS, lossy),
        (SYNCED_KINDS, synced),
    ):
        drawn = drawn | more if are_drawn else drawn
    kinds, weights = list(drawn), list(drawn.values())
    plan = []
    at_s = random.uniform(0, EVERY_S)
    while at_s < duration_s:
        (kind,) = random.choices(kinds, weights)
        target, other = random.sample(range(1, brokers + 1), 2) if brokers > 1 else (1, 1)
        lasts_s = random.uniform(0.1, LASTS_S)
        plan.append(Fault(at_s, kind, target, other, lasts_s, random.getrandbits(32)))
        if not quiet:
            at_s += random.expovariate(1 / EVERY_S)
        elif random.random() < 1 / EPISODE:
            at_s += random.uniform(LASTS_S, QUIET_S)
        else:
            at_s += random.expovariate(2 / EVERY_S)
    return plan


def quiet_times(plan: list[Fault], duration_s: float) -> list[tuple[float, float]]:
    """From when to when there is nothing to see: no fault, and none soon."""
    times = []
    since_s = BEFORE_S
    for fault in plan:
        if fault.at_s - BEFORE_S > since_s:
            times.append((since_s, fault.at_s - BEFORE_S))
        since_s = max(since_s, fault.at_s + fault.lasts_s + AFTER_S)
    if duration_s - BEFORE_S > since_s:
        times.append((since_s, duration_s - BEFORE_S))
    return times


class Nemesis:
    """Carries out a plan.

    Attributes:
        may_forget: Disks may lose what was not synced: others have it.
        is_over: No fault begins any more.
        done: What was done, with times: for a report.
        struck: How many faults have happened.
        assignments: What was asked for of partitions' replicas, and what they are.
    """

    def __init__(self, world: World, plan: list[Fault]) -> None:
        self._world = world
        self._plan = plan
        self._operator = Session(world, "operator")
        self.assignments = Assignments(world)
        self._reassigner = Reassigner(self._operator, self.assignments)
        self.done: list[str] = []
        self.struck = 0
        self._under_way = 0
        self.may_forget = True
        self.is_over = False
        self._script: asyncio.Task[None] | None = None

    def begin(self, quiet: list[tuple[float, float]]) -> None:
        """Schedule all faults from now on, and quiet times."""
        loop, pace = self._world.loop, self._world.pace
        now_s = loop.time()
        for start_s, end_s in quiet:
            loop.call_in_later(start_s, loop.outside, self._be_quiet, now_s + end_s)
            loop.call_in_later(end_s, loop.outside, pace.set_quiet, False)
        for fault in self._plan:
            loop.call_in_later(fault.at_s, loop.outside, self._strike, fault)

    def _be_quiet(self, end_s: float) -> None:
        """Begin quiet time, once a script that takes longer than its fault has ended.

        Where it is quiet followers are to fetch seldom, and by that a leader goes that was cut off:
        it would be certain again.
        """
        loop = self._world.loop
        if self._script is None or self._script.done():
            self._world.pace.set_quiet(True)
        elif loop.time() + BEFORE_S < end_s:
            loop.call_in_later(BEFORE_S, loop.outside, self._be_quiet, end_s)

    async def end(self) -> None:
        """Nothing more happens; what a script has begun is undone."""
        self.is_over = True
        self._operator.is_over = True
        if self._script is not None and not self._script.done():
            self._script.cancel()
            await asyncio.wait([self._script])

    async def lift_throttles(self) -> None:
        """Until there are none; all is mended by then."""
        while (request := lifting(self._world.image)) is not None:
            self._ask(request)
            await asyncio.sleep(LIFT_EVERY_S)

    def _note(self, text: str) -> None:
        self.done.append(f"{self._world.loop.time():.3f} {text}")

    def _strike(self, fault: Fault) -> None:
        loop = self._world.loop
        if self.is_over:
            return
        if fault.kind in SCRIPTS:
            if self._script is None or self._script.done():
                script = Script(
                    self._world,
                    fault.salt,
                    self._note,
                    self._ask,
                    self._reassigner,
                    may_forget=self.may_forget,
                )
                self._script = loop.spawn(loop.outside, script.run(fault.kind))
                self.struck += 1
            return
        undo = getattr(self, "_" + fault.kind.replace(" ", "_"))(fault)
        if undo is not None:
            self.struck += 1
            self._under_way += 1
            self._note(f"{fault.kind} {fault.target} {fault.other} for {fault.lasts_s:.1f} s")

            def end() -> None:
                self._note(f"end of {fault.kind} {fault.target}")
                self._under_way -= 1
                undo()

            loop.call_in_later(fault.lasts_s, loop.outside, end)

    # Each returns what ends it; None: nothing was done.

    def _kill(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        if not place.is_running:
            return None
        place.kill()
        return self._starter(fault.target)

    def _starter(self, node_id: int) -> object:
        def start() -> None:
            self._world.start(node_id)

        return start

    def _crash(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        if not place.is_running:
            return None
        if not self.may_forget or not self._world.is_whole():
            place.kill()
        else:
            place.crash(Random(fault.salt) if fault.salt % 3 else None)
        return self._starter(fault.target)

    def _blackout(self, fault: Fault) -> object:
        random, loop = Random(fault.salt), self._world.loop
        for node_id, place in self._world.brokers.items():
            if place.is_running:
                place.crash(random if random.random() < 0.5 else None)
            loop.call_in_later(
                random.uniform(0.1, fault.lasts_s), loop.outside, self._world.start, node_id
            )
        return lambda: None

    def _stop(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        if not place.is_ready or place.process.is_paused:
            return None
        self._world.loop.spawn(place.process, place.stop())
        return self._starter(fault.target)

    def _pause(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        process = place.process
        if not place.is_running or process.is_paused:
            return None
        self._world.loop.pause(process)
        return lambda: self._world.loop.resume(process)

    def _cut_links(self, *links: tuple[str, str]) -> Callable[[], None] | None:
        network = self._world.network
        fresh = [link for link in links if link not in network.cut]
        network.cut.update(fresh)
        return (lambda: network.heal(*fresh)) if fresh else None

    def _cut_one_way(self, fault: Fault) -> object:
        brokers = self._world.brokers
        return self._cut_links((brokers[fault.target].host, brokers[fault.other].host))

    def _cut(self, fault: Fault) -> object:
        one, other = (self._world.brokers[node].host for node in (fault.target, fault.other))
        return self._cut_links((one, other), (other, one))

    def _isolate(self, fault: Fault) -> object:
        one = self._world.brokers[fault.target].host
        others = [place.host for place in self._world.brokers.values() if place.host != one]
        return self._cut_links(*((one, other) for other in others), *((o, one) for o in others))

    def _cut_from_store(self, fault: Fault) -> object:
        host = self._world.brokers[fault.target].host
        links = [(host, HOST), (HOST, host)]
        which = fault.salt % 4
        return self._cut_links(*(links if which > 1 else [links[which]]))

    def _pause_store(self, fault: Fault) -> object:
        loop, process = self._world.loop, self._world.server.process
        if process.is_paused:
            return None
        loop.pause(process)
        return lambda: loop.resume(process)

    def _end_leases(self, fault: Fault) -> object:
        server = self._world.server
        leases = sorted(server.leases)
        count = Random(fault.salt).randint(0, len(leases))
        chosen = Random(fault.salt).sample(leases, count)
        self._world.loop.spawn(server.process, server.end_leases(chosen))
        return lambda: None

    def _slow_link(self, fault: Fault) -> object:
        brokers, slow = self._world.brokers, self._world.network.slow
        link = (brokers[fault.target].host, brokers[fault.other].host)
        if link in slow:
            return None
        slow[link] = Random(fault.salt).uniform(0.01, 0.5)
        return lambda: slow.pop(link, None)

    def _reset(self, fault: Fault) -> object:
        brokers = self._world.brokers
        self._world.network.reset(brokers[fault.target].host, brokers[fault.other].host)
        return lambda: None

    def _lose_answers(self, fault: Fault) -> object:
        server = self._world.server
        server.lost_answers = Random(fault.salt).choice((0.1, 0.5, 1.0))

        def end() -> None:
            server.lost_answers = 0.0

        return end

    def _elect_in_store(self, fault: Fault) -> object:
        loop, server = self._world.loop, self._world.server
        if server.process.is_paused:
            return None
        loop.pause(server.process)

        def end() -> None:
            server.renew_leases()
            loop.resume(server.process)

        return end

    def _disk_fails(self, fault: Fault) -> object:
        if not self.may_forget or not self._world.is_whole():
            return None
        place = self._world.brokers[fault.target]
        kind = ("write", "sync", "open")[fault.salt % 3]
        for directory in place.directories:
            place.filesystem.fail(kind, errno.EIO, path=directory, times=1 << 30)
        return self._sound_again(place)

    def _sound_again(self, place: SimBroker) -> object:
        def end() -> None:
            if place.is_running:
                place.kill()
            place.filesystem.heal()
            self._world.loop.call_in_later(
                1.0, self._world.loop.outside, self._world.start, place.node_id
            )

        return end

    def _directory_fails(self, fault: Fault) -> object:
        if not self.may_forget or not self._world.is_whole():
            return None
        place = self._world.brokers[fault.target]
        kind = ("write", "sync", "open")[fault.salt % 3]
        directory = place.directories[fault.salt // 8 % len(place.directories)]
        place.filesystem.fail(kind, errno.EIO, path=directory, times=1 << 30)
        return self._sound_again(place)

    def _move(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        random = Random(fault.salt)

        def move() -> None:
            replicas = replicas_at(place)
            for one in random.sample(replicas, min(len(replicas), random.randint(1, 3))):
                self._ask(moves_of([one], elsewhere(place, one, random)), at=fault.target)

        if not replicas_at(place):
            return None
        controller = self._world.brokers.get(self._world.image.controller_id, place)
        links = [(place.host, controller.host), (controller.host, place.host)]
        heal = self._cut_links(*links) if fault.salt % 2 and controller is not place else None
        move()

        def end() -> None:
            if heal is not None:
                heal()
            move()

        return end

    def _disk_full(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        if not place.is_running:
            return None
        if fault.salt % 4:
            self._slow_down(place.broker)
        for kind in ("write", "allocate"):
            place.filesystem.fail(kind, errno.ENOSPC, path=".log", times=1 << 30)
        return self._sound_again(place)

    def _old_disk(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        if not self.may_forget or not place.is_running:
            return None
        copy = place.filesystem.after_crash(KEEP_ALL if fault.salt % 2 else None)

        def end() -> None:
            if not self._world.is_whole():
                self._note("nothing is put back: not everything is whole")
                return
            place.restore(copy, boots=fault.salt % 4 < 2)
            self._world.loop.call_in_later(
                1.0, self._world.loop.outside, self._world.start, fault.target
            )

        return end

    @staticmethod
    def _slow_down(broker: Broker | None) -> None:
        """Its disk was slow before: what finds no room has offsets, and waits for a thread."""
        if broker is not None and broker.ready:
            for writer in broker.local.writers.all().values():
                writer.pace.wrote_inline(2 * HELD_UP_MS, 0)

    def _ask(self, request: Any, at: int | None = None) -> None:
        """Have an operator ask some broker, or that one; what comes of it is seen in the store."""

        async def ask() -> None:
            with suppress(*LOST):
                await self._operator.call(at or self._operator.any_broker(), request)

        self._operator.begin(ask())

    def _reassign(self, fault: Fault) -> object:
        random = Random(fault.salt)
        image = self._world.image
        places = sorted(
            (topic.name, partition.index, len(partition.replicas))
            for topic in image.topics.values()
            for partition in topic.partitions
        )
        if not places:
            return None
        name, index, count = random.choice(places)
        nodes = list(self._world.brokers)

        def give(replicas: list[int]) -> None:
            self._reassigner.give(Place(name, index), tuple(replicas))

        give(random.sample(nodes, random.randint(min(2, count), count)))
        return lambda: give(random.sample(nodes, min(max(count, 3), len(nodes))))

    def _throttle(self, fault: Fault) -> object:
        random = Random(fault.salt)
        names = sorted(self._world.image.topics)
        written = [name for name in names if not name.startswith("__")]
        if not written:
            return None
        topics = names if random.random() < 0.3 else written
        rate = random.choice((0, 1, 1, 100, 3_000))
        is_scripted = self._script is not None and not self._script.done()
        is_alone = not self._under_way and not is_scripted and self._world.is_sound()
        nodes = random.choice(([*self._world.brokers], [*self._world.brokers], [fault.target]))
        for _ in range(ASKS):
            self._ask(throttling(rate, nodes, topics))
        if random.random() >= CATCHES_UP:
            return self._lifting_alone() if is_alone else self._lift
        loop, place = self._world.loop, self._world.brokers[fault.target]

        def die() -> None:
            if place.is_running and not self.is_over:
                place.kill()
                down_s = random.uniform(1.0, 4.0)
                loop.call_in_later(down_s, loop.outside, self._world.start, fault.target)

        loop.call_in_later(THROTTLED_S, loop.outside, die)
        return self._lift

    def _lifting_alone(self) -> Callable[[], None]:
        """Q: a throttle makes nobody fall out of sync, where nothing else happens meanwhile."""
        before, struck = self._world.image, self.struck

        def end() -> None:
            if self.struck == struck + 1 and not self.is_over:
                self._check_in_sync(before)
            self._lift()

        return end

    def _check_in_sync(self, before: ClusterImage) -> None:
        for topic in self._world.image.topics.values():
            for partition in topic.partitions:
                place = Place(topic.name, partition.index)
                former = before.partition(*place)
                if (
                    former is not None
                    and former.replicas == partition.replicas
                    and set(partition.isr) != set(partition.replicas)
                ):
                    self._world.fail(f"Q {place}: {former} has become {partition} by a throttle")

    def _lift(self) -> None:
        request = lifting(self._world.image)
        if request is not None:
            self._ask(request)

    def _add_partitions(self, fault: Fault) -> object:
        topic = self._world.image.topics.get(TOPIC)
        if topic is None or len(topic.partitions) >= PARTITIONS_MAX:
            return None
        wanted = CreatePartitionsTopic(
            name=TOPIC, count=len(topic.partitions) + 1, assignments=None
        )
        self._ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=3000))
        return lambda: None

    def _prefer(self, fault: Fault) -> object:
        self._ask(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=3000))
        return lambda: None

    def _min_isr_changes(self, fault: Fault) -> object:
        names = sorted(name for name in self._world.image.topics if not name.startswith("__"))
        if not names:
            return None
        name = names[fault.salt % len(names)]
        value = str(1 + fault.salt // 8 % 3)
        self._ask(alter_topic(name, MIN_ISR, value))
        return lambda: self._ask(alter_topic(name, MIN_ISR, None))

    def _tier_dies(self, fault: Fault) -> object:
        place = self._world.brokers[fault.target]
        if place.tier is None or not place.is_running:
            return None
        place.tier.kill()
        return lambda: None

    def _copies_stop(self, fault: Fault) -> object:
        names = sorted(name for name in self._world.image.topics if not name.startswith("__"))
        if not names:
            return None

        def disable(value: str) -> None:
            self._ask(alter_topic(names[0], "remote.log.copy.disable", value))

        disable("true")
        return lambda: disable("false")

    def _bucket_away(self, fault: Fault) -> object:
        bucket = self._world.bucket
        bucket.is_away = True

        def end() -> None:
            bucket.is_away = False

        return end

    def _bucket_slow(self, fault: Fault) -> object:
        bucket = self._world.bucket
        bucket.is_slow = True

        def end() -> None:
            bucket.is_slow = False

        return end

    def _bucket_loses_answers(self, fault: Fault) -> object:
        bucket = self._world.bucket
        bucket.lost_answers = Random(fault.salt).choice((0.1, 0.5, 1.0))

        def end() -> None:
            bucket.lost_answers = 0.0

        return end

    def _compact(self, fault: Fault) -> object:
        server = self._world.server
        self._world.loop.spawn(server.process, server.compact())
        return lambda: None
