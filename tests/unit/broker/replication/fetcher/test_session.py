"""A session tells the leader what has changed, and of everything that has."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.replication.fetcher.followed_partition import FollowedPartition
from broker.replication.fetcher.session import EPOCH_MAX, PARTITIONS_MAX, FollowerSession
from protocol.hot.fetch import decode_request
from protocol.hot.follower_fetch import VERSION, encode_request
from tests.unit.broker.replication.fetcher.fetcher_world import LEADER, FakeFollower

INDEXES = st.integers(0, 3)


class SessionMachine(RuleBasedStateMachine):
    """A leader that keeps what it was told: after each request it knows what the follower wants."""

    def __init__(self) -> None:
        super().__init__()
        self.session = FollowerSession(1000)
        self.partitions = [FakeFollower(index) for index in range(4)]
        self.followed: dict[int, FollowedPartition] = {}
        # The leader's.
        self.known: dict[int, tuple[int, int, int]] = {}
        self.session_id = 0
        self.epoch = 0
        self.requests = 0

    @rule(index=INDEXES)
    def follow(self, index: int) -> None:
        self.unfollow(index)
        self.followed[index] = FollowedPartition(self.partitions[index], LEADER)
        self.session.add(self.followed[index])

    @rule(index=INDEXES)
    def unfollow(self, index: int) -> None:
        if index in self.followed:
            self.session.remove(self.followed.pop(index))

    @rule(index=INDEXES)
    def append(self, index: int) -> None:
        self.partitions[index].lead(b"x")
        if index in self.followed:
            self.session.look_at(self.followed[index])

    @rule(outcome=st.sampled_from(["kept", "kept", "kept", "no session", "lost"]))
    def request(self, outcome: str) -> None:
        (session_id, epoch), topics, forgotten = self.session.next_request()
        body = encode_request(
            replica_id=1,
            replica_epoch=1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1,
            session=(session_id, epoch),
            topics=topics,
            forgotten=forgotten,
        )
        request = decode_request(memoryview(body), 0, VERSION)
        if epoch == 0:
            self.known.clear()
        else:
            assert (session_id, epoch) == (self.session_id, self.epoch)
        for _, indexes in request.forgotten:
            for index in indexes:
                self.known.pop(index)
        for topic in request.topics:
            for one in topic.partitions:
                self.known[one.partition] = (
                    one.fetch_offset,
                    one.last_fetched_epoch,
                    one.log_start_offset,
                )
        assert self.known == {
            index: (
                followed.partition.log.log_end_offset,
                followed.partition.log.latest_leader_epoch,
                followed.partition.log.log_start_offset,
            )
            for index, followed in self.followed.items()
        }
        if outcome == "lost":
            self.session.reset()
            return
        self.requests += 1
        if epoch == 0:
            self.session_id = 0 if outcome == "no session" else self.requests
            self.epoch = 0
        self.epoch += 1
        self.session.answered(self.session_id)

    @invariant()
    def members_are_what_is_followed(self) -> None:
        assert {index for _, index in self.session.members} == set(self.followed)


TestSessionMachine = SessionMachine.TestCase


def test_many_partitions_are_sent_in_several_requests() -> None:
    """No more than brokers take."""
    session = FollowerSession(1000)
    partition = FakeFollower(0)
    for index in range(PARTITIONS_MAX + 1):
        followed = FollowedPartition(partition, LEADER)
        followed.key = (followed.key[0], index)
        session.add(followed)
    _, topics, _ = session.next_request()
    assert sum(map(len, topics.values())) == PARTITIONS_MAX
    assert session.has_changes
    session.answered(5)
    assert session.is_open
    _, topics, _ = session.next_request()
    assert sum(map(len, topics.values())) == 1
    assert not session.has_changes


def test_session_epochs_begin_again_at_one() -> None:
    """0 would open a new session."""
    session = FollowerSession(1000)
    session.next_request()
    session.answered(5)
    session._epoch = EPOCH_MAX
    assert session.next_request()[0] == (5, EPOCH_MAX)
    assert session.next_request()[0] == (5, 1)


def test_partition_that_has_another_role_does_not_remove_its_successor() -> None:
    """The same key, followed anew."""
    session = FollowerSession(1000)
    old = FollowedPartition(FakeFollower(0), LEADER)
    new = FollowedPartition(FakeFollower(0), LEADER)
    session.add(old)
    session.add(new)
    session.remove(old)
    assert list(session.members.values()) == [new]
