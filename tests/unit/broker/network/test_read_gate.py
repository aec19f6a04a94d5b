"""The socket is watched exactly while nothing holds, and never before what came is handled."""

import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import sampled_from

from broker.network.read_gate import (
    PAUSED_BY_BACKLOG,
    PAUSED_BY_CHANNEL,
    PAUSED_BY_DISK,
    PAUSED_BY_MEMORY,
    PAUSED_BY_READ_BUDGET,
    PAUSED_BY_STOP,
    PAUSED_BY_TIME_LIMIT,
    GateState,
    ReadGate,
)
from tests.fakes.network.sockets import FakePoller

CLEARED = [
    PAUSED_BY_BACKLOG,
    PAUSED_BY_CHANNEL,
    PAUSED_BY_DISK,
    PAUSED_BY_MEMORY,
    PAUSED_BY_READ_BUDGET,
    PAUSED_BY_TIME_LIMIT,
]
FD = 100


def nothing() -> None:
    raise AssertionError("nothing is readable")


class Counting(FakePoller):
    """Refuses to watch a socket twice, or to stop what it does not watch."""

    def add_reader(self, fd: int, callback: object, *args: object) -> None:
        assert fd not in self.readers
        super().add_reader(fd, nothing)

    def remove_reader(self, fd: int) -> object:
        assert fd in self.readers
        return super().remove_reader(fd)


class GateMachine(RuleBasedStateMachine):
    """Beside a set of reasons; the poller is asked once for each change."""

    def __init__(self) -> None:
        super().__init__()
        self.poller = Counting()
        self.gate = ReadGate(self.poller, FD)
        self.held: set[int] = set()
        self.is_watched = False
        self.is_closed = False

    @rule(reason=sampled_from([*CLEARED, PAUSED_BY_STOP]))
    def pause(self, reason: int) -> None:
        self.gate.pause(reason)
        if not self.is_closed:
            self.held.add(reason)
            self.is_watched = False

    @rule(reason=sampled_from(CLEARED))
    def resume(self, reason: int) -> None:
        was_last = self.held == {reason}
        assert self.gate.resume(reason) is was_last
        self.held.discard(reason)

    @rule()
    def watch(self) -> None:
        self.gate.watch(nothing)
        self.is_watched = not self.held and not self.is_closed

    @precondition(lambda self: len(self.held) > 2)
    @rule()
    def close(self) -> None:
        self.gate.close()
        self.held.clear()
        self.is_closed = True
        self.is_watched = False

    @invariant()
    def state_is_told_by_reasons(self) -> None:
        assert (FD in self.poller.readers) is self.is_watched
        assert self.gate.reasons == sum(self.held)
        expected = GateState.RESUMED
        if self.is_closed:
            expected = GateState.CLOSED
        elif self.held:
            expected = GateState.PAUSED
        elif self.is_watched:
            expected = GateState.WATCHED
        assert self.gate.state is expected


TestGate = GateMachine.TestCase


def test_a_broker_that_stops_reads_no_more() -> None:
    gate = ReadGate(Counting(), FD)
    gate.pause(PAUSED_BY_STOP)
    with pytest.raises(ValueError, match="stops"):
        gate.resume(PAUSED_BY_STOP)
    assert gate.state is GateState.PAUSED


def test_a_watched_connection_that_closes_is_watched_no_more() -> None:
    poller = Counting()
    gate = ReadGate(poller, FD)
    gate.watch(nothing)
    gate.close()
    assert not poller.readers


@pytest.mark.parametrize("reason", [PAUSED_BY_TIME_LIMIT, PAUSED_BY_READ_BUDGET])
def test_brief_pauses_hide_no_peer_that_has_gone(reason: int) -> None:
    gate = ReadGate(Counting(), FD)
    gate.pause(reason)
    assert not gate.is_paused_for_long
    gate.pause(PAUSED_BY_BACKLOG)
    assert gate.is_paused_for_long
