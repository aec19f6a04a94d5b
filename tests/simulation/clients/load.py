"""Clients of a simulated cluster: who works on what, and what all of them were told."""

import asyncio
from typing import Final

from broker.controller.images.cluster_image import ClusterImage
from tests.simulation.clients.groups import Committed, GroupHistory, GroupMember
from tests.simulation.clients.history import History
from tests.simulation.clients.keys import CONFIGS as KEY_CONFIGS
from tests.simulation.clients.keys import KEYED, KeyHistory, KeyReader, KeyWriter
from tests.simulation.clients.latest import LatestReader
from tests.simulation.clients.leavers import LeavingProducer
from tests.simulation.clients.lives import TopicLives
from tests.simulation.clients.losses import LOOSE, LossHistory, LossyProducer, LossyReader
from tests.simulation.clients.session import (
    TOPIC,
    Consumer,
    HistoryReader,
    Producer,
    Session,
    create_topic,
)
from tests.simulation.clients.shares import ShareHistory, ShareMember, begin_at_the_start
from tests.simulation.clients.transactions import (
    CommittedReader,
    TransactionalProducer,
    TransactionHistory,
)
from tests.simulation.clients.trimmer import Trimmer
from tests.simulation.shape import Shape
from tests.simulation.world import Place, World

GROUP: Final = "readers"
BOOT_S: Final = 60.0
TIERED: Final = {
    "remote_storage_enable": "true",
    "local_retention_ms": "2000",
}
"""What the topic is told when it is copied to the bucket."""


class Load:
    """See the module."""

    def __init__(self, world: World, history: History, shape: Shape) -> None:
        self.world = world
        self.history = history
        self.shape = shape
        self.places = [Place(TOPIC, index) for index in range(shape.partitions)]
        self.transactions = TransactionHistory()
        self.groups = GroupHistory()
        self.shares = ShareHistory()
        self.keys = KeyHistory(history)
        self.losses = LossHistory(history)
        self.lives: TopicLives | None = None
        self.lives_task: asyncio.Task[None] | None = None
        self.sessions: list[Session] = []
        self.leavers: list[LeavingProducer] = []
        self.committed: dict[Place, CommittedReader] = {}
        self.transactions.stable_end = world.stable_end
        self.added: list[Place] = []
        self._has_begun = False

    def session(self, name: str) -> Session:
        """A client."""
        session = Session(self.world, name)
        self.sessions.append(session)
        return session

    def make_topics(self) -> None:
        """Until the topics are there, and whole."""
        world = self.world
        admin = self.session("admin")
        configs: dict[str, object] = {"retention_ms": self.shape.retention_ms}
        configs = configs | TIERED if self.shape.is_tiered else {}
        made = admin.begin(create_topic(admin, TOPIC, self.shape.partitions, **configs))
        world.until(
            lambda: made.done() and world.is_whole(), limit_s=BOOT_S, what="the topic is whole"
        )
        if self.shape.has_keys:
            keyed = admin.begin(create_topic(admin, KEYED, 1, **KEY_CONFIGS))
            world.until(
                lambda: keyed.done() and world.is_whole(),
                limit_s=BOOT_S,
                what="the compacted topic is whole",
            )
        if self.shape.losses:
            losses = self.shape.losses | (TIERED if self.shape.is_tiered else {})
            loose = admin.begin(create_topic(admin, LOOSE, 1, **losses))
            world.until(
                lambda: loose.done() and world.is_whole(),
                limit_s=BOOT_S,
                what="the topic that may lose records is whole",
            )
        if self.shape.sharers:
            told = admin.begin(admin.call(1, begin_at_the_start()))
            world.until(told.done, limit_s=BOOT_S, what="the share group has its settings")

    def begin(self) -> None:
        """Clients begin."""
        self._has_begun = True
        for place in self.places:
            self.begin_at(place)
        self._begin_lives()
        self._begin_members()
        self._begin_keys()
        self._begin_losses()
        for number in range(self.shape.sharers):
            self.begin_sharing(f"sharer{number}")
        for number in range(self.shape.transactional):
            session = self.session(f"txn{number}")
            worker = TransactionalProducer(
                session, self.transactions, self.places, pause_s=self.shape.pause_s
            )
            session.begin(worker.run())
        for number in range(self.shape.leavers):
            leaver = LeavingProducer(
                f"leaver{number}",
                self.session,
                self.transactions,
                self.places,
                pause_s=self.shape.pause_s,
            )
            self.leavers.append(leaver)
            session = self.session(leaver.name)
            session.begin(leaver.run(session))

    def begin_at(self, place: Place) -> None:
        """Clients of one partition begin."""
        at = place.partition
        for name, acks in (
            (f"idempotent{at}", -1),
            (f"second-idempotent{at}", -1),
            (f"lone{at}", 1),
        ):
            session = self.session(name)
            producer = Producer(session, self.history, place, acks=acks, pause_s=self.shape.pause_s)
            session.begin(producer.run())
        session = self.session(f"consumer{at}")
        session.begin(Consumer(session, self.history, place).run())
        if self.shape.is_tiered:
            session = self.session(f"from the start{at}")
            session.begin(HistoryReader(session, self.history, place, self.shape.pause_s).run())
        if self.shape.is_trimmed:
            session = self.session(f"trimmer{at}")
            session.begin(Trimmer(session, self.history, place, self.shape.pause_s).run())
        if self.shape.transactional or self.shape.leavers:
            session = self.session(f"committed{at}")
            reader = CommittedReader(session, place, self.shape.pause_s)
            self.committed[place] = reader
            session.begin(reader.run())
        session = self.session(f"latest{at}")
        session.begin(LatestReader(session, place, pause_s=self.shape.pause_s).run())

    def look(self, image: ClusterImage) -> None:
        """Begin to work on partitions that were added to the topic."""
        topic = image.topics.get(TOPIC)
        if topic is None or not self._has_begun:
            return
        for index in range(len(self.places), len(topic.partitions)):
            place = Place(TOPIC, index)
            self.places.append(place)
            self.added.append(place)
            self.begin_at(place)

    def end(self) -> None:
        """Begin nothing new; what is under way comes to its end."""
        self._has_begun = False
        for session in self.sessions:
            session.is_over = True

    def is_used(self) -> bool:
        """Whether what was added is written to, and read by the group, if there is one."""
        return all(
            self.history.acked_end[place]
            and (not self.shape.members or self.groups.has_commits(Committed(GROUP, place)))
            for place in self.added
        )

    def _begin_lives(self) -> None:
        if self.shape.has_lives:
            session = self.session("lives")
            configs = TIERED if self.shape.is_tiered else {}
            self.lives = TopicLives(session, self.shape.pause_s, dict(configs))
            self.lives_task = session.begin(self.lives.run())

    def _begin_members(self) -> None:
        for number in range(self.shape.members):
            session = self.session(f"member{number}")
            member = GroupMember(
                session,
                self.history,
                self.groups,
                group=GROUP,
                topic=TOPIC,
                pause_s=self.shape.pause_s,
            )
            session.begin(member.run())

    def _begin_keys(self) -> None:
        if self.shape.has_keys:
            for name, acks in (("keyed", -1), ("lone-keyed", 1)):
                session = self.session(name)
                session.begin(KeyWriter(session, self.keys, self.shape.pause_s, acks).run())
            session = self.session("keys from the start")
            session.begin(KeyReader(session, self.keys, self.shape.pause_s).run())

    def _begin_losses(self) -> None:
        if self.shape.losses:
            for name, acks in (("loose-idempotent", -1), ("lone-loose", 1)):
                session = self.session(name)
                producer = LossyProducer(
                    session, self.history, self.losses, acks=acks, pause_s=self.shape.pause_s
                )
                session.begin(producer.run())
            session = self.session("loose reader")
            session.begin(LossyReader(session, self.losses, self.shape.pause_s).run())

    def begin_sharing(self, name: str) -> None:
        """One more member of the share group begins."""
        session = self.session(name)
        session.begin(ShareMember(session, self.shares, TOPIC, self.shape.pause_s).run())
