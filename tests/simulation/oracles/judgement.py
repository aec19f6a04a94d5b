"""What is asked at the end of a run: logs, and what clients were told.

replicas are equal ──> whole logs are read ──> what each kind of clients goes by: transactions,
groups, keys, losses, shares, lives of a topic ──> the bucket, directories
"""

from collections.abc import Iterator
from typing import Final

from storage.types.partition_directory import DirectoryState, parse_directory
from tests.simulation.clients.groups import Committed, OffsetReader
from tests.simulation.clients.history import History
from tests.simulation.clients.keys import KeyReader
from tests.simulation.clients.lives import FLEETING, TopicLives
from tests.simulation.clients.lives import PLACE as FLEETING_PLACE
from tests.simulation.clients.load import GROUP, Load
from tests.simulation.clients.losses import PLACE as LOSSY_PLACE
from tests.simulation.clients.losses import LossyReader
from tests.simulation.clients.session import Consumer
from tests.simulation.clients.transactions import CommittedReader
from tests.simulation.oracles.invariants import Invariants
from tests.simulation.remote.coverage import RemoteCoverage
from tests.simulation.world import Place, Violation

WHOLE_S: Final = 60.0
READ_S: Final = 120.0
OVER_S: Final = 60.0
"""Beyond the longest time-out of a transaction, and a look for those that have met it."""

SUCCEEDED_S: Final = 60.0
CLEAN_S: Final = 300.0

KEPT: Final = tuple(f"-{one.value}" for one in (DirectoryState.STRAY, DirectoryState.FUTURE))
"""How folders end that a broker keeps of a topic it does not know: its log, and a copy of it."""


class Judgement:
    """See the module."""

    def __init__(self, load: Load, invariants: Invariants) -> None:
        self._load = load
        self._world = load.world
        self._invariants = invariants

    def judge(self) -> None:
        """Compare logs, and what clients were told."""
        world = self._world
        self._load.end()
        world.until(self._are_equal, limit_s=WHOLE_S, what="I13 replicas are equal")
        readers = []
        for place in self._load.places:
            session = self._load.session(f"judge{place.partition}")
            consumer = Consumer(session, History(), place)
            session.begin(consumer.run())
            readers.append((consumer, place))
        world.until(
            lambda: all(reader.position >= self._end(place) for reader, place in readers),
            limit_s=READ_S,
            what="all records can be read",
        )
        for reader, place in readers:
            seen = dict(sorted(reader.history.seen[place].items()))
            self._load.history.judge(place, seen, world.log_start(place))
        self._judge_transactions()
        self._judge_groups()
        if self._load.shape.has_keys:
            session = self._load.session("judge of keys")
            read = session.begin(
                KeyReader(session, self._load.keys, self._load.shape.pause_s).read()
            )
            self._world.until(read.done, limit_s=READ_S, what="K the compacted topic can be read")
        if self._load.shape.losses:
            self._judge_losses()
        if self._load.shape.sharers:
            self._judge_shares()
        if self._load.lives is not None:
            self._judge_lives(self._load.lives)
        if self._invariants.remote is not None:
            self._judge_bucket(self._invariants.remote)
        self._judge_directories()

    def _judge_directories(self) -> None:
        """J: each replica lies once, where the store says, and nothing else of any partition."""
        try:
            self._world.until(
                lambda: not any(self._misplaced()),
                limit_s=CLEAN_S,
                what="J each replica lies where the store says",
            )
        except Violation as violation:
            raise Violation(f"{violation}: {list(self._misplaced())}") from None

    def _misplaced(self) -> Iterator[str]:
        image = self._world.image
        for node_id, place in self._world.brokers.items():
            broker = place.broker
            assert broker is not None
            ids = {one.path: one.id for one in broker.local.log_manager.directories}
            lies: dict[str, list[str]] = {}
            for directory, name in place.folders():
                parsed = parse_directory(name)
                if parsed is not None and parsed.state is DirectoryState.CURRENT:
                    lies.setdefault(name, []).append(directory)
                elif name.endswith(KEPT[1]) and not name.startswith(FLEETING):
                    yield f"{node_id}:{directory}/{name} is a copy that is not made any more"
            for topic in image.topics.values():
                for one in topic.partitions:
                    if node_id not in one.replicas:
                        continue
                    name = f"{topic.name}-{one.index}"
                    found, said = lies.pop(name, []), one.directory_on(node_id)
                    if [ids[directory] for directory in found] != [said]:
                        yield f"{node_id}: {name} is in {found}, and is said to be in {said}"
            yield from (f"{node_id}: {name} is nobody's" for name in lies)

    def _judge_bucket(self, remote: RemoteCoverage) -> None:
        """I14: the bucket has what the metadata says, once garbage was collected."""
        leaders = []
        for place in (*self._load.places, FLEETING_PLACE, LOSSY_PLACE):
            image = self._world.image.partition(*place)
            if image is None:
                continue
            broker = self._world.brokers[image.leader].broker
            assert broker is not None
            led = broker.replicas.leader_of(*place)
            assert led is not None
            leaders.append(led)
        try:
            self._world.until(
                lambda: not remote.leftovers(leaders),
                limit_s=CLEAN_S,
                what="I14 the bucket has what the metadata says",
            )
        except Violation as violation:
            raise Violation(f"{violation}: {remote.leftovers(leaders)}") from None

    def _judge_lives(self, lives: TopicLives) -> None:
        """Who was deleted is gone, from the disks in time; the last life is whole."""
        world = self._world
        assert self._load.lives_task is not None
        world.until(
            self._load.lives_task.done, limit_s=READ_S, what="the topic's last step is done"
        )
        topic = world.image.topics.get(FLEETING)
        if topic is not None and topic.topic_id in lives.deleted:
            raise Violation(f"I16 {FLEETING} {topic.topic_id} was deleted, and is there again")
        life = lives.life
        if life is not None:
            if topic is None or topic.topic_id != life.topic_id:
                raise Violation(f"I16 {life} was not deleted, and is gone: {topic}")
            session = self._load.session("judge of lives")
            read = session.begin(lives.read(session, life, lambda: False))
            world.until(read.done, limit_s=READ_S, what=f"I16 {life} can be read")
        try:
            world.until(
                lambda: not any(self._folders_left()),
                limit_s=CLEAN_S,
                what="I16 no folder of a deleted topic is left",
            )
        except Violation as violation:
            raise Violation(f"{violation}: {list(self._folders_left())}") from None

    def _folders_left(self) -> Iterator[str]:
        """Folders of the topic that is made anew which are not those of its replicas.

        A broker that was away when a topic was deleted keeps its folder as a stray: what the store
        does not know may have been lost. So it does with a copy that was made of it.
        """
        image = self._world.image.partition(*FLEETING_PLACE)
        replicas = () if image is None else image.replicas
        for node_id, place in self._world.brokers.items():
            for directory, name in place.folders():
                is_its = name == f"{FLEETING}-0" and node_id in replicas
                is_known = is_its or name.endswith(KEPT)
                if name.startswith(FLEETING) and not is_known:
                    yield f"{node_id}:{directory}/{name}"

    def _judge_losses(self) -> None:
        """U: of the topic that may lose records is there what it may not."""
        session = self._load.session("judge of losses")
        reader = LossyReader(session, self._load.losses, 0.0)
        session.begin(reader.run())
        self._world.until(
            lambda: reader.position >= self._end(LOSSY_PLACE),
            limit_s=READ_S,
            what="U all records can be read",
        )
        session.is_over = True
        self._load.losses.judge(reader.values)

    def _judge_groups(self) -> None:
        """I11, and that a coordinator is there again."""
        readers = []
        for place in self._load.places if self._load.groups.commits else ():
            session = self._load.session(f"committed offset{place.partition}")
            reader = OffsetReader(session, self._load.groups, Committed(GROUP, place))
            session.begin(reader.run())
            readers.append(reader)
        self._world.until(
            lambda: all(reader.is_done for reader in readers),
            limit_s=READ_S,
            what="I11 committed offsets can be read",
        )

    def _judge_shares(self) -> None:
        """S: each record has come to somebody, who has accepted it."""
        shares, acked = self._load.shares, self._load.history.acked
        shares.may_release = False
        self._load.begin_sharing("last sharer")
        try:
            self._world.until(
                lambda: not any(shares.left(place, acked[place]) for place in self._load.places),
                limit_s=READ_S,
                what="S all records are accepted",
            )
        except Violation as violation:
            left = {place: shares.left(place, acked[place])[:5] for place in self._load.places}
            raise Violation(f"{violation}: not {left}") from None

    def _judge_transactions(self) -> None:
        """Transactions are whole or not there, and T: all are over, and who comes next goes on."""
        load, world = self._load, self._world
        world.until(
            lambda: all(world.stable_end(place) >= self._end(place) for place in load.places),
            limit_s=OVER_S,
            what="T what was left open is over",
        )
        following = [
            load.session(f"last {leaver.name}").begin(leaver.succeed()) for leaver in load.leavers
        ]
        world.until(
            lambda: all(task.done() for task in following),
            limit_s=SUCCEEDED_S,
            what="T another of a transactional id goes on",
        )
        readers = {}
        for place in load.places if load.transactions.transactions else ():
            session = load.session(f"last committed{place.partition}")
            readers[place] = CommittedReader(session, place)
            session.begin(readers[place].run())
        world.until(
            lambda: all(reader.position >= self._end(place) for place, reader in readers.items()),
            limit_s=READ_S,
            what="all transactions are over and can be read",
        )
        load.transactions.judge({place: reader.values for place, reader in readers.items()})
        for place, reader in load.committed.items():
            seen, last = reader.values, readers[place].values if place in readers else []
            if seen != last[: len(seen)]:
                raise Violation(f"T {place}: committed records were read that are others now")

    def _end(self, place: Place) -> int:
        image = self._world.image.partition(*place)
        assert image is not None
        broker = self._world.brokers[image.leader].broker
        led = None if broker is None else broker.replicas.leader_of(*place)
        return 1 << 62 if led is None else led.log.log_end_offset

    def _are_equal(self) -> bool:
        places = [*self._load.places, *([LOSSY_PLACE] if self._load.shape.losses else [])]
        return all(
            self._end(place) == end for place in places for end in self._ends(place)
        ) and all(
            len(
                {
                    tuple(self._world.batches(node, place, start, 1 << 62).items())
                    for node in self._of(place)
                }
            )
            == 1
            for place in places
            for start in [self._common_start(place)]
        )

    def _common_start(self, place: Place) -> int:
        """From where on all replicas have a partition on their disks."""
        starts = [0]
        for node in self._of(place):
            broker = self._world.brokers[node].broker
            replica = None if broker is None else broker.replicas.replica_of(*place)
            if replica is not None:
                starts.append(replica.log.local_log_start_offset)
        return max(starts)

    def _ends(self, place: Place) -> Iterator[int]:
        for node in self._of(place):
            broker = self._world.brokers[node].broker
            replica = None if broker is None else broker.replicas.replica_of(*place)
            yield -1 if replica is None else replica.log.log_end_offset

    def _of(self, place: Place) -> tuple[int, ...]:
        image = self._world.image.partition(*place)
        assert image is not None
        return image.replicas
