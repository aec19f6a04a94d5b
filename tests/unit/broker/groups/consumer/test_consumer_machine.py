"""Any order of joins, heartbeats, leaves, time and crashes keeps the promises of KIP-848.

- No two members own a partition: by the coordinator's books, and by what the members were told.
- The log says at every moment what the memory says.
- When everybody has gone on for long enough, the group is stable and every partition has an owner.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from protocol.error_codes import ErrorCode
from tests.fakes.offsets_partition import topic_image
from tests.unit.broker.groups.consumer.harness import REBALANCE_MS, ConsumerHarness, Reply

MEMBERS = st.integers(0, 2)
TOPICS = st.sampled_from((("foo",), ("foo", "bar")))
PARTITIONS = {"foo": 4, "bar": 3}


@dataclass
class Client:
    """A member as the client sees itself; what it is told to give back it owns for a while."""

    name: str
    topics: tuple[str, ...]
    instance: str | None
    epoch: int = 0
    owned: dict[str, list[int]] = field(default_factory=dict)
    told: dict[str, list[int]] = field(default_factory=dict)
    pending: Reply | None = None
    lives: int = 0

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"


class ConsumerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[int, Client] = {}

    @initialize(interval_ms=st.sampled_from((0, 1_000)))
    def start(self, interval_ms: int) -> None:
        self.h = ConsumerHarness(
            None,
            topic_image("foo", 1, PARTITIONS["foo"]),
            topic_image("bar", 2, PARTITIONS["bar"]),
            group_consumer_assignment_interval_ms=interval_ms,
        )

    @rule(number=MEMBERS, topics=TOPICS, is_static=st.booleans())
    def join(self, number: int, topics: tuple[str, ...], is_static: bool) -> None:
        if number not in self.clients:
            lives = self.h.timer.clock.now_ms()
            client = Client(f"m{number}", topics, f"i{number}" if is_static else None, lives=lives)
            self.clients[number] = client
            self._send(client)

    @rule(number=MEMBERS, reports=st.booleans())
    def beat(self, number: int, reports: bool) -> None:
        client = self.clients.get(number)
        if client is not None and client.pending is None:
            self._send(client, reports=reports)

    @rule(number=MEMBERS)
    def give_back(self, number: int) -> None:
        client = self.clients.get(number)
        if client is not None:
            client.owned = client.told

    @rule(number=MEMBERS, topics=TOPICS)
    def subscribe(self, number: int, topics: tuple[str, ...]) -> None:
        client = self.clients.get(number)
        if client is not None and client.pending is None and client.epoch > 0:
            client.topics = topics
            self._send(client, topics=topics)

    @rule(number=MEMBERS)
    def answer_gets_lost(self, number: int) -> None:
        client = self.clients.get(number)
        if client is not None and client.pending is None and client.epoch > 0:
            self.h.beat(
                client.member_id, client.epoch, instance=client.instance, owned=client.owned
            )

    @rule(number=MEMBERS, returns=st.booleans())
    def leave(self, number: int, returns: bool) -> None:
        client = self.clients.pop(number, None)
        if client is None or client.pending is not None or client.epoch <= 0:
            return
        epoch = -2 if returns and client.instance else -1
        self.h.beat(client.member_id, epoch, instance=client.instance)

    @rule(ms=st.sampled_from((60, 1_100, 10_000)))
    def time_passes(self, ms: int) -> None:
        self.h.timer.advance(ms)

    @rule()
    def crash(self) -> None:
        self.h.restart()

    @rule(count=st.integers(4, 6))
    def extend(self, count: int) -> None:
        if count > len(self.h.image.topics["foo"].partitions):
            self.h.set_topics(topic_image("foo", 1, count), topic_image("bar", 2, 3))

    def _send(
        self, client: Client, *, reports: bool = True, topics: tuple[str, ...] | None = None
    ) -> None:
        if client.epoch == 0:
            client.owned = client.told = {}
            reply = self.h.beat(
                client.member_id,
                0,
                topics=client.topics,
                instance=client.instance,
                owned={},
                rebalance_ms=REBALANCE_MS,
            )
        else:
            reply = self.h.beat(
                client.member_id,
                client.epoch,
                topics=topics,
                instance=client.instance,
                owned=client.owned if reports else None,
            )
        client.pending = reply
        self._hear(client)

    def _hear(self, client: Client) -> None:
        reply = client.pending
        if reply is None or reply.is_parked:
            return
        client.pending = None
        if reply.error is not ErrorCode.NONE:
            # Whatever is wrong, a client gives up what it has and joins again, if it may.
            client.epoch = 0
            client.owned = client.told = {}
            if reply.error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                client.lives += 1_000_000
            return
        client.epoch = reply.epoch
        if reply.assignment is not None:
            client.told = reply.assignment
        if all(set(p) <= set(client.told.get(t, [])) for t, p in client.owned.items()):
            client.owned = client.told

    @invariant()
    def log_is_memory(self) -> None:
        if hasattr(self, "h"):
            for client in self.clients.values():
                self._hear(client)
            self.h.check()
            self._check_clients()

    def _check_clients(self) -> None:
        """Nobody has what the books do not give it; and these give nothing to two."""
        group = self.h.shard.consumer_group("g")
        for client in self.clients.values():
            member = None if group is None else group.members.get(client.member_id)
            if member is None:
                continue
            given = [self.h.named(a) for a in (member.assigned, member.pending_revocation)]
            for name, partitions in client.owned.items():
                assert set(partitions) <= {p for a in given for p in a.get(name, [])}

    def teardown(self) -> None:
        """Everybody goes on for long enough."""
        if not hasattr(self, "h") or not self.clients:
            return
        for _ in range(40):
            for client in self.clients.values():
                self._hear(client)
                client.owned = client.told
                if client.pending is None:
                    self._send(client)
            self.h.timer.advance(4_000)
            self.h.check()
        group = self.h.consumer_group()
        assert group.state_name == "Stable"
        for name, topic in self.h.image.topics.items():
            readers = [c for c in self.clients.values() if name in c.topics]
            owned = sorted(p for c in readers for p in c.owned.get(name, []))
            assert owned == (list(range(len(topic.partitions))) if readers else [])


ConsumerMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None
)
TestConsumerMachine = ConsumerMachine.TestCase
