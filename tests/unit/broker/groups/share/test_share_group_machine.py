"""Share groups against their rules: whatever happens, in whatever order.

- The log says what the memory says.
- A member owns only partitions of topics that it asks for, in an epoch that it was told.
- What members own has state in the share coordinator, and what has state is known to the group.
- When nothing fails any more, every partition that somebody asks for is worked on.
"""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.groups.share.share_group import ShareGroup
from protocol.error_codes import ErrorCode
from tests.fakes.broker.offsets_partition import topic_image
from tests.harness.share_groups import FOO, SESSION_MS, ShareHarness

MEMBERS = st.sampled_from(["m1", "m2", "m3"])
TOPICS = st.sets(st.sampled_from(["foo", "bar"]), min_size=1).map(sorted)
FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE


class ShareGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shard = ShareHarness()
        self.next_id = 3
        self.topics = {"foo": (1, 4), "bar": (2, 2)}
        # What each client was told last.
        self.epochs: dict[str, int] = {}

    @property
    def group(self) -> object:
        return self.shard.shard.group("g", ShareGroup)

    # -- members --

    @rule(member=MEMBERS, topics=TOPICS)
    def join(self, member: str, topics: list[str]) -> None:
        reply = self.shard.enter(member, *topics)
        if reply.error is ErrorCode.NONE:
            assert reply.response is not None
            assert reply.response.assignment is not None
            self.epochs[member] = reply.epoch
        else:
            assert reply.error is FAILED  # The group is being changed.

    @rule(member=MEMBERS, topics=st.none() | TOPICS)
    def beat(self, member: str, topics: list[str] | None) -> None:
        epoch = self.epochs.get(member, 1)
        reply = self.shard.beat(member, epoch, topics=topics)
        if member in self.epochs:
            assert reply.epoch >= epoch
            self.epochs[member] = reply.epoch
        else:
            assert reply.error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        reply = self.shard.exit(member)
        assert (reply.error is ErrorCode.NONE) == (member in self.epochs)
        self.epochs.pop(member, None)

    @rule(member=MEMBERS)
    def fall_silent(self, member: str) -> None:
        """Everybody else goes on."""
        for step_ms in (0, SESSION_MS - 1, 2):
            self.shard.timer.advance(step_ms)
            for other in [one for one in self.epochs if one != member]:
                self.beat(other, None)
        self.epochs.pop(member, None)

    # -- around them --

    @rule(hold=st.booleans())
    def hold(self, hold: bool) -> None:
        self.shard.persister.hold = hold
        if not hold:
            self.shard.persister.release()

    @rule(partitions=st.sets(st.integers(0, 3), max_size=2))
    def fail(self, partitions: set[int]) -> None:
        self.shard.persister.fail_with = dict.fromkeys(partitions, FAILED)

    @rule(ms=st.sampled_from([1, 1_000, 31_000]))
    def wait(self, ms: int) -> None:
        """Everybody is alive."""
        for step_ms in (0, ms):
            self.shard.timer.advance(step_ms)
            for member in self.epochs:
                self.beat(member, None)

    @rule()
    def restart(self) -> None:
        self.shard.restart()

    @rule(name=st.sampled_from(["foo", "bar"]), count=st.integers(0, 5))
    def change_topic(self, name: str, count: int) -> None:
        """Create it, extend it, or delete it."""
        known = self.topics.get(name)
        if known is not None and count == 0:
            del self.topics[name]
            # Its state goes with it: the share coordinator looks at the image, too.
            self.shard.persister.states = {
                key: state
                for key, state in self.shard.persister.states.items()
                if key.topic_id.int != known[0]
            }
        elif known is None and count:
            self.topics[name] = (self.next_id, count)
            self.next_id += 1
        elif known is not None and count > known[1]:
            self.topics[name] = (known[0], count)
        else:
            return
        self.shard.set_topics(*(topic_image(n, i, c) for n, (i, c) in self.topics.items()))

    @precondition(lambda self: not self.shard.persister.hold)
    @rule(partition=st.integers(0, 1), offset=st.integers(0, 9))
    def alter(self, partition: int, offset: int) -> None:
        ids = {self.shard.image.topics[name].topic_id for name in self.topics}
        if FOO in ids:
            answers = self.shard.alter({FOO: {partition: offset}})
            if self.epochs:
                assert answers == [ErrorCode.NON_EMPTY_GROUP]

    @precondition(lambda self: not self.shard.persister.hold and self.group is not None)
    @rule()
    def delete_offsets(self) -> None:
        ids = [self.shard.image.topics[name].topic_id for name in self.topics]
        self.shard.delete_offsets(*ids)

    @precondition(lambda self: not self.shard.persister.hold and self.group is not None)
    @rule()
    def delete_group(self) -> None:
        (code,) = self.shard.delete_state()
        if code is ErrorCode.NONE:
            self.shard.offsets.delete_group("g", lambda code: None)
            assert self.group is None
            assert not self.shard.states() or self.shard.persister.fail_with
        elif self.epochs:
            assert code is ErrorCode.NON_EMPTY_GROUP

    @precondition(lambda self: self.epochs)
    @rule()
    def settle(self) -> None:
        """Nothing fails any more."""
        self.fail(set())
        self.hold(False)
        self.wait(31_000)
        for _ in range(4):
            for member in self.epochs:
                self.beat(member, None)
        group = self.shard.share_group()
        for name, (number, count) in self.topics.items():
            if name in group.name_counts:
                owned = {
                    partition
                    for member in group.members.values()
                    for topic_id, partitions in member.assigned.items()
                    for partition in partitions
                    if topic_id.int == number
                }
                assert owned == set(range(count))

    # -- what always holds --

    @invariant()
    def the_log_is_true(self) -> None:
        self.shard.check()

    @invariant()
    def members_are_those_who_were_told(self) -> None:
        group = self.shard.shard.group("g", ShareGroup)
        assert set(self.epochs) == (set() if group is None else set(group.members))

    @invariant()
    def owned_partitions_have_state(self) -> None:
        group = self.shard.shard.group("g", ShareGroup)
        for member in () if group is None else group.members.values():
            for topic_id, partitions in member.assigned.items():
                topic = self.shard.image.topics_by_id.get(topic_id)
                if topic is None:
                    continue
                assert topic.name in member.subscribed_topic_names
                for partition in partitions:
                    assert self.shard.key(topic_id, partition) in self.shard.persister.states


TestShareGroup = ShareGroupMachine.TestCase
