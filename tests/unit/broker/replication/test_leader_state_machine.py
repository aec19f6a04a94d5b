"""The leader's rules against a model that goes by sets, with a controller that may have agreed.

The model is Kafka's text, not its code: who is waited for, who may join, who has to leave. The
controller's ISR is what it would be if each proposal that is under way had been made, or had not:
what is committed must be on every member of either.
"""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.controller.images.partition_image import PartitionImage
from broker.replication.followers.followed_partition import FollowedPartition
from broker.replication.leader_state import LeaderState
from broker.replication.terms import ReplicationTerms
from protocol.hot.fetch import FetchPartition
from tests.effort import examples

LEADER = 1
FOLLOWERS = (2, 3, 4)
LAG_MS = 1_000.0
SILENCE_MS = 600.0
WAIT_MS = 100.0
MIN_ISR = 2
START = 10

followers = st.sampled_from(FOLLOWERS)


class Session:
    """A follower's: when its requests came, and since when they can have been sent."""

    def __init__(self) -> None:
        self.fetched_ms = self.confirmed_ms = float("-inf")

    def changed_at(self, followed: FollowedPartition, *, has_records: bool) -> None:
        """Nothing is parked."""


class Follower:
    """What the model has of one follower."""

    def __init__(self, caught_up_ms: float | None) -> None:
        self.end: int | None = None
        self.epoch: int | None = None
        self.fetched_ms: float | None = None
        self.confirmed_ms = float("-inf")
        self.session = Session()
        self.followed = FollowedPartition(self.session, b"", FetchPartition(0, 5, 0, -1, 0, 100))
        self.leader_end: int | None = None
        self.caught_up_ms = caught_up_ms


class LeaderRules(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.live: dict[int, int] = {node: node * 10 for node in (LEADER, *FOLLOWERS)}
        self.isr: frozenset[int] = frozenset({LEADER, 2, 3})
        self.proposed: frozenset[int] | None = None
        self.partition_epoch = 0
        self.end = START
        self.hw = 0
        self.model = {node: Follower(0.0 if node in self.isr else None) for node in FOLLOWERS}
        terms = ReplicationTerms(
            lag_time_max_ms=LAG_MS, fetch_wait_max_ms=WAIT_MS, live_epoch=self.live.get
        )
        self.listening = terms.listening
        self.listening.silence_max_ms = SILENCE_MS
        self.listening.tick(self.now_ms)
        self.awake_since_ms = self.now_ms
        self.state = LeaderState(
            self.record(), terms, epoch_start_offset=START, own_end_offset=START, now_ms=0.0
        )

    def record(self) -> PartitionImage:
        return PartitionImage(
            0, LEADER, 5, self.partition_epoch, (LEADER, *FOLLOWERS), tuple(sorted(self.isr))
        )

    # -- what happens ----------------------------------------------------------------------------

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.end += count
        self.state.own_end_offset = self.end

    @rule(
        node=followers,
        back=st.integers(0, 12),
        is_old_life=st.booleans(),
        sent_ago_ms=st.sampled_from([0.0, 100.0, 700.0, float("inf")]),
    )
    def fetch(self, node: int, back: int, is_old_life: bool, sent_ago_ms: float) -> None:
        offset = max(self.end - back, 0)
        epoch = node * 10 - 1 if is_old_life else node * 10
        progress = self.state.follower(node)
        assert progress is not None
        model = self.model[node]
        model.session.fetched_ms = self.now_ms
        model.session.confirmed_ms = self.now_ms - sent_ago_ms
        model.confirmed_ms = max(model.confirmed_ms, model.session.confirmed_ms)
        model.followed.is_listed = False
        progress.followed = model.followed
        progress.fetched(offset, 0, epoch, self.end, self.now_ms)
        if offset >= self.end:
            model.caught_up_ms = self.now_ms
        elif model.leader_end is not None and offset >= model.leader_end:
            assert model.fetched_ms is not None
            model.caught_up_ms = max(model.caught_up_ms or 0.0, model.fetched_ms)
        model.end, model.epoch = offset, epoch
        model.fetched_ms, model.leader_end = self.now_ms, self.end

    @rule(ms=st.sampled_from([50.0, 150.0, 400.0, 900.0, 1_500.0]))
    def time_passes(self, ms: float) -> None:
        for _ in range(int(ms / 50.0)):
            self.now_ms += 50.0
            self.tick()

    def tick(self) -> None:
        self.listening.tick(self.now_ms)
        self.awake_since_ms = min(self.awake_since_ms, self.now_ms)

    @rule(ms=st.sampled_from([400.0, 900.0]), is_seen=st.booleans())
    def this_broker_stands_still(self, ms: float, is_seen: bool) -> None:
        """`is_seen`: by its next tick; else something else comes first."""
        self.now_ms += ms
        self.awake_since_ms = float("inf")
        if is_seen:
            self.tick()

    @rule(node=followers)
    def fence(self, node: int) -> None:
        self.live.pop(node, None)

    @rule(node=followers)
    def let_in(self, node: int) -> None:
        self.live[node] = node * 10

    @rule()
    def propose(self) -> None:
        wanted = self.state.wanted_isr(self.hw, self.end, self.now_ms, MIN_ISR)
        if self.proposed is not None:
            assert wanted is None
            return
        joining = {node for node in FOLLOWERS if self.may_be_proposed(node)}
        leaving = {
            node
            for node in FOLLOWERS
            if node in self.isr and not self.is_caught_up(self.model[node])
        }
        silent = {node for node in self.isr - leaving - {LEADER} if self.is_silent(node)}
        if len(self.isr - leaving - silent) >= MIN_ISR:
            leaving |= silent
        expected = (self.isr | joining) - leaving
        assert wanted is None if expected == self.isr else frozenset(wanted or ()) == expected
        if wanted is not None:
            assert LEADER in wanted
            self.state.propose(wanted, (1,) * len(wanted))
            self.proposed = frozenset(wanted)

    @precondition(lambda self: self.proposed is not None)
    @rule()
    def agree(self) -> None:
        assert self.proposed is not None
        self.isr, self.proposed = self.proposed, None
        self.partition_epoch += 1
        self.state.update(self.record())

    @precondition(lambda self: self.proposed is not None)
    @rule()
    def refuse(self) -> None:
        self.proposed = None
        self.state.withdraw(self.now_ms)

    @rule(node=followers)
    def controller_takes_out(self, node: int) -> None:
        """A fenced broker leaves by the controller's own change; that settles what is under way."""
        if node in self.isr:
            self.isr -= {node}
            self.proposed = None
            self.partition_epoch += 1
            self.state.update(self.record())

    @rule()
    def an_old_record_comes_late(self) -> None:
        self.state.update(PartitionImage(0, LEADER, 5, self.partition_epoch, (LEADER,), (LEADER,)))

    # -- what holds ------------------------------------------------------------------------------

    def is_caught_up(self, follower: Follower) -> bool:
        if follower.end == self.end:
            return True
        return follower.caught_up_ms is not None and self.now_ms - follower.caught_up_ms <= LAG_MS

    def is_silent(self, node: int) -> bool:
        """Records wait for it, it has fetched in this epoch, and not while this broker listened."""
        model = self.model[node]
        return (
            model.end is not None
            and model.fetched_ms is not None
            and model.end < self.end
            and self.now_ms - max(model.fetched_ms, self.awake_since_ms) > SILENCE_MS
        )

    def may_join(self, node: int) -> bool:
        """It has fetched in this epoch, in the life that is let in."""
        return self.model[node].end is not None and self.model[node].epoch == self.live.get(node)

    def may_be_proposed(self, node: int) -> bool:
        end = self.model[node].end
        seen_ms = self.model[node].fetched_ms
        return (
            node not in self.isr
            and self.may_join(node)
            and end is not None
            and end >= max(self.hw, START)
            and seen_ms is not None
            and self.now_ms - seen_ms <= LAG_MS
        )

    @invariant()
    def high_watermark(self) -> None:
        before = self.hw
        self.hw = self.state.high_watermark(before, MIN_ISR, self.now_ms)
        waited_for = (self.isr | (self.proposed or frozenset())) - {LEADER}
        waited_for |= {
            node
            for node in FOLLOWERS
            if self.may_join(node)
            and self.is_caught_up(self.model[node])
            and not (node not in self.isr and self.is_silent(node))
        }
        ends = [self.model[node].end for node in waited_for]
        least = min([self.end, *(-1 if end is None else end for end in ends)])
        expected = max(before, least) if len(self.isr) >= MIN_ISR else before
        assert self.hw == expected
        if self.hw > before:
            for isr in (self.isr, self.proposed or self.isr):
                for node in isr - {LEADER}:
                    end = self.model[node].end
                    assert end is not None
                    assert end >= self.hw

    @invariant()
    def committed_isr_is_the_controllers(self) -> None:
        assert frozenset(self.state.isr) == self.isr
        assert self.state.is_under_min_isr(MIN_ISR) == (len(self.isr) < MIN_ISR)

    @invariant()
    def confirmed_by_all_that_could_be_elected(self) -> None:
        others = (self.isr | (self.proposed or frozenset())) - {LEADER}
        confirmed = [self.model[node].confirmed_ms for node in others]
        recent = [self.now_ms - ms <= 2 * WAIT_MS for ms in confirmed]
        expected = all(recent) and (bool(others) or len(self.isr) >= MIN_ISR)
        assert self.state.is_confirmed(MIN_ISR, self.now_ms) == expected
        is_alone_for_certain = not others and len(self.isr) >= MIN_ISR
        for since_ms in {self.now_ms, *confirmed}:
            led = all(ms >= since_ms for ms in confirmed) if others else is_alone_for_certain
            assert self.state.is_confirmed_since(MIN_ISR, since_ms) == led


LeaderRules.TestCase.settings = examples(150, steps=40)
TestLeaderRules = LeaderRules.TestCase
