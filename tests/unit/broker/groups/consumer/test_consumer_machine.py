"""Any order of joins, heartbeats, leaves, time, lost answers and crashes keeps KIP-848's promises.

- No two members own a partition: by the coordinator's books, and by what the members were told.
- Nobody was told of anything that a crash undoes: writes may be committed late, or never.
- Epochs of the group only grow, as members see them, and no member is ahead of its group.
- The log says at every moment what the memory says, compacted or not.
- When everybody has gone on for long enough, the group is stable and every partition has an owner.

Clients are as the released ones are: after an answer that did not come they say everything again,
and one that was fenced drops what it has before it joins again.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.controller.images.cluster_image import TopicImage
from broker.groups.consumer.consumer_group import ConsumerGroup
from protocol.error_codes import ErrorCode
from tests.effort import examples
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.consumer_groups import IDS, REBALANCE_MS, ConsumerHarness, Reply

MEMBERS = st.integers(0, 3)
TOPICS = st.sampled_from((("foo",), ("foo", "bar"), ("bar",), ()))
PATTERNS = st.sampled_from((None, None, "", "foo.*", "ba."))
RETRIABLE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
NEW_ID = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)


@dataclass
class Client:
    """A member as the client sees itself; what it is told to give back it owns for a while."""

    name: str
    topics: tuple[str, ...]
    regex: str | None
    instance: str | None
    epoch: int = 0
    owned: dict[str, list[int]] = field(default_factory=dict)
    told: dict[str, list[int]] = field(default_factory=dict)
    pending: Reply | None = None
    has_missed_an_answer: bool = False
    lives: int = 0

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.lives}"


class ConsumerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[int, Client] = {}
        self.counts = {"foo": 4, "bar": 3}
        self.lives = 0
        # Of the log: the highest that anybody was told of.
        self.known_epoch = 0

    @initialize(interval_ms=st.sampled_from((0, 1_000)))
    def start(self, interval_ms: int) -> None:
        self.h = ConsumerHarness(
            None, *self._topics(), group_consumer_assignment_interval_ms=interval_ms
        )

    def _topics(self) -> list[TopicImage]:
        return [topic_image(name, IDS[name].int, count) for name, count in self.counts.items()]

    @rule(number=MEMBERS, topics=TOPICS, regex=PATTERNS, is_static=st.booleans())
    def join(
        self, number: int, topics: tuple[str, ...], regex: str | None, is_static: bool
    ) -> None:
        if number not in self.clients:
            self.lives += 1
            # One that takes another's place says that it has no pattern, or it has the other's.
            regex = regex or ("" if is_static else None)
            client = Client(
                f"m{number}", topics, regex, f"i{number}" if is_static else None, lives=self.lives
            )
            self.clients[number] = client
            self._send(client)

    @rule(number=MEMBERS, reports=st.booleans())
    def beat(self, number: int, reports: bool) -> None:
        client = self.clients.get(number)
        if client is not None and client.pending is None:
            self._send(client, reports=reports)

    @rule(number=MEMBERS)
    def take_and_give_back(self, number: int) -> None:
        client = self.clients.get(number)
        if client is not None and client.pending is None:
            client.owned = client.told

    @rule(number=MEMBERS, topics=TOPICS, regex=PATTERNS)
    def subscribe(self, number: int, topics: tuple[str, ...], regex: str | None) -> None:
        client = self.clients.get(number)
        if client is not None and client.pending is None and client.epoch > 0:
            client.topics = topics
            # One that says nothing of its pattern keeps it.
            client.regex = client.regex if regex is None else regex
            self._send(client, is_full=True)

    @rule(number=MEMBERS)
    def answer_gets_lost(self, number: int) -> None:
        client = self.clients.get(number)
        if client is not None:
            if client.pending is None:
                self._send(client)
            client.pending = None
            client.has_missed_an_answer = True

    @rule(number=MEMBERS, returns=st.booleans())
    def leave(self, number: int, returns: bool) -> None:
        client = self.clients.pop(number, None)
        if client is None or client.pending is not None or client.epoch <= 0:
            return
        epoch = -2 if returns and client.instance else -1
        self.h.beat(client.member_id, epoch, instance=client.instance)

    @rule(number=MEMBERS)
    def vanish(self, number: int) -> None:
        self.clients.pop(number, None)

    @rule(ms=st.sampled_from((60, 1_100, 10_000, 31_000, 46_000)))
    def time_passes(self, ms: int) -> None:
        self.h.timer.advance(ms)

    @rule(is_slow=st.booleans())
    def log_is_slow(self, is_slow: bool) -> None:
        if hasattr(self, "h"):
            self.h.log.hold = is_slow
            if not is_slow:
                self._commit()

    @rule(is_slow=st.booleans())
    def threads_are_slow(self, is_slow: bool) -> None:
        self.h.offload.hold = is_slow
        if not is_slow:
            self.h.offload.run_all()

    @rule()
    def crash(self) -> None:
        """Nothing is left but the log, without what was not committed."""
        self.h.log.hold = False
        self.h.log.held.clear()
        self._reload()

    @rule()
    def log_refuses(self) -> None:
        """What is under way will never be committed, so the log is read anew."""
        self.h.log.hold = False
        self.h.log.fail_held(ErrorCode.KAFKA_STORAGE_ERROR)
        if self.h.gave_up:
            self.h.lost.clear()
            self._reload()

    def _reload(self) -> None:
        for client in self.clients.values():
            self._hear(client)
        self.h.restart()
        self.h.offload.waiting.clear()
        for client in self.clients.values():
            if client.pending is not None:
                self._hear(client)
            if client.pending is not None:
                client.pending = None
                client.has_missed_an_answer = True

    def _commit(self) -> None:
        while self.h.log.held:
            self.h.log.commit_held()

    @rule(name=st.sampled_from(("foo", "bar")), count=st.integers(4, 6))
    def extend(self, name: str, count: int) -> None:
        if count > self.counts.get(name, 9):
            self.counts[name] = count
            self.h.set_topics(*self._topics())

    @rule()
    def create_or_delete_a_topic(self) -> None:
        if "foobar" in self.counts:
            del self.counts["foobar"]
        else:
            self.counts["foobar"] = 2
        self.h.set_topics(*self._topics())

    def _send(self, client: Client, *, reports: bool = True, is_full: bool = False) -> None:
        is_full = is_full or client.has_missed_an_answer or client.epoch == 0
        client.has_missed_an_answer = False
        if client.epoch == 0:
            client.owned = client.told = {}
        client.pending = self.h.beat(
            client.member_id,
            client.epoch,
            topics=client.topics if is_full else None,
            regex=client.regex if is_full else None,
            instance=client.instance,
            owned=client.owned if reports or is_full else None,
            rebalance_ms=REBALANCE_MS if is_full else -1,
        )
        self._hear(client)

    def _hear(self, client: Client) -> None:
        reply = client.pending
        if reply is None or reply.is_parked:
            return
        client.pending = None
        if reply.error in RETRIABLE:
            client.has_missed_an_answer = True
            return
        if reply.error is not ErrorCode.NONE:
            client.epoch = 0
            client.owned = client.told = {}
            if reply.error in NEW_ID:
                self.lives += 1
                client.lives = self.lives
            return
        assert reply.epoch >= client.epoch
        client.epoch = reply.epoch
        self.known_epoch = max(self.known_epoch, reply.epoch)
        if reply.assignment is not None:
            client.told = reply.assignment
        if all(set(p) <= set(client.told.get(t, [])) for t, p in client.owned.items()):
            client.owned = client.told

    @invariant()
    def promises_are_kept(self) -> None:
        if hasattr(self, "h"):
            for client in self.clients.values():
                self._hear(client)
            self.h.check()
            self._check_clients()

    def _check_clients(self) -> None:
        """Nobody has what the books do not give it; and these give nothing to two."""
        group = self.h.shard.group("g", ConsumerGroup)
        if group is not None:
            assert group.group_epoch >= self.known_epoch
            assert group.group_epoch >= group.assignment_epoch
        for client in self.clients.values():
            member = None if group is None else group.members.get(client.member_id)
            if group is None or member is None:
                continue
            assert client.epoch <= member.member_epoch or member.member_epoch == -2
            assert member.member_epoch <= group.group_epoch
            given = [self.h.named(a) for a in (member.assigned, member.pending_revocation)]
            for name, partitions in client.owned.items():
                assert set(partitions) <= {p for a in given for p in a.get(name, [])}

    def teardown(self) -> None:
        """Everybody goes on for long enough."""
        if not hasattr(self, "h") or not self.clients:
            return
        self.log_is_slow(is_slow=False)
        self.threads_are_slow(is_slow=False)
        for _ in range(60):
            for client in self.clients.values():
                self._hear(client)
                if client.pending is None:
                    client.owned = client.told
                    self._send(client)
            self.h.timer.advance(4_000)
            self.promises_are_kept()
        group = self.h.consumer_group()
        assert group.state_name == "Stable"
        for name, count in self.counts.items():
            readers = [c for c in self.clients.values() if self._reads(c, name)]
            owned = sorted(p for c in readers for p in c.owned.get(name, []))
            assert owned == (list(range(count)) if readers else [])
        for client in self.clients.values():
            assert all(self._reads(client, name) for name in client.owned)

    @staticmethod
    def _reads(client: Client, name: str) -> bool:
        pattern = client.regex or ""
        return name in client.topics or (
            name.startswith("foo") if pattern == "foo.*" else pattern != "" and name == "bar"
        )


ConsumerMachine.TestCase.settings = examples(100, steps=40)
TestConsumerMachine = ConsumerMachine.TestCase
