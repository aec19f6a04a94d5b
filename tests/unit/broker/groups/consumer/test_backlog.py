"""Heartbeats that come faster than they may change groups."""

from collections.abc import Sequence

import pytest

from broker.groups.consumer import backlog as backlog_module
from broker.groups.consumer.backlog import PER_TICK, Backlog
from broker.groups.consumer.protocol import ConsumerProtocol
from broker.groups.consumer.responses import Heartbeat
from broker.groups.modern.member import LEAVE_EPOCH
from protocol.error_codes import ErrorCode
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer
from tests.harness.consumer_groups import ConsumerHarness


class Server:
    """Notes what it serves, by call."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.takes_ms, self.clock = 0.0, ManualClock()

    def serve(self, requests: Sequence[int]) -> None:
        self.clock.advance(self.takes_ms)
        self.calls.append(list(requests))

    @property
    def served(self) -> list[int]:
        return [one for call in self.calls for one in call]


def test_few_are_served_where_they_are_read() -> None:
    timer, server = ManualTimer(), Server()
    backlog = Backlog[int](timer, timer.clock)
    for number in range(PER_TICK):
        assert backlog.offer(server, number)
    assert server.calls == [[number] for number in range(PER_TICK)]
    assert len(backlog) == 0


def test_others_wait_for_ticks_in_order_and_share_a_call() -> None:
    timer, server = ManualTimer(), Server()
    backlog = Backlog[int](timer, timer.clock)
    count = 3 * PER_TICK + 1
    for number in range(count):
        assert backlog.offer(server, number)
    assert len(server.served) == PER_TICK
    assert len(backlog) == 2 * PER_TICK + 1
    timer.advance(0)
    assert server.served == list(range(count))
    assert [len(call) for call in server.calls[PER_TICK:]] == [PER_TICK, PER_TICK, 1]
    timer.advance(0)
    assert not timer.pending


def test_who_comes_while_others_wait_comes_after_them() -> None:
    timer, first, second = ManualTimer(), Server(), Server()
    backlog = Backlog[int](timer, timer.clock)
    for number in range(PER_TICK + 1):
        backlog.offer(first, number)
    backlog.offer(second, 0)
    assert not second.calls
    timer.advance(0)
    assert first.served[-1] == PER_TICK
    assert second.calls == [[0]]


def test_allowance_is_there_again_after_a_tick() -> None:
    timer, server = ManualTimer(), Server()
    backlog = Backlog[int](timer, timer.clock)
    for number in range(PER_TICK):
        backlog.offer(server, number)
    timer.advance(0)
    backlog.offer(server, -1)
    assert server.served[-1] == -1


def test_late_tick_serves_as_many_as_there_is_time_for() -> None:
    timer, server = ManualTimer(), Server()
    backlog = Backlog[int](timer, timer.clock)
    count = 6 * PER_TICK
    for number in range(count):
        backlog.offer(server, number)
    server.takes_ms, server.clock = 2.0, timer.clock
    # The loop was busy for twelve milliseconds: six are for those who wait.
    timer.clock.advance(12.0)
    timer.advance(0)
    assert server.served == list(range(4 * PER_TICK))
    timer.advance(20)
    assert server.served == list(range(count))


def test_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "WAITING_MAX", 1)
    backlog = Backlog[int](timer := ManualTimer(), timer.clock)
    server = Server()
    assert all(backlog.offer(server, number) for number in range(PER_TICK + 1))
    assert not backlog.offer(server, -1)


def test_trouble_of_one_shard_is_not_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Server):
        def serve(self, requests: Sequence[int]) -> None:
            raise RuntimeError("no")

    timer, full, broken, server = ManualTimer(), Server(), Broken(), Server()
    backlog = Backlog[int](timer, timer.clock)
    for number in range(PER_TICK):
        backlog.offer(full, number)
    for number in range(2 * PER_TICK):
        backlog.offer(server if number % 2 else broken, number)
    timer.advance(0)
    assert len(server.served) == PER_TICK
    assert "RuntimeError" in caplog.text
    timer.advance(0)
    assert not timer.pending


class BusyHarness(ConsumerHarness):
    """With a backlog, as in a broker."""

    def __init__(self) -> None:
        super().__init__(group_consumer_assignment_interval_ms=1_000)
        self.backlog = Backlog[Heartbeat](self.timer, self.clock)
        self.consumers = ConsumerProtocol(
            self.shard,
            settings=self.settings,
            environment=self.environment,
            offload=self.offload,
            image=lambda: self.image,
            group_settings=lambda _: self.group_settings,
            backlog=self.backlog,
        )


def test_members_of_a_large_group_are_written_together() -> None:
    h = BusyHarness()
    replies = [h.enter(f"m{number}") for number in range(PER_TICK + 10)]
    assert len(h.consumer_group().members) == PER_TICK
    batches = len(h.log.batches[0])
    h.timer.advance(0)
    assert len(h.consumer_group().members) == PER_TICK + 10
    assert len(h.log.batches[0]) == batches + 1
    h.timer.advance(2_000)
    assert {reply.error for reply in replies} == {ErrorCode.NONE}
    h.settle_members()
    h.check()


def test_one_that_is_refused_does_not_keep_others_from_joining() -> None:
    h = BusyHarness()
    for number in range(PER_TICK):
        h.enter(f"m{number}")
    bad = h.beat("nobody", 5)
    good = h.enter("good")
    h.timer.advance(2_000)
    assert bad.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert good.error is ErrorCode.NONE


def test_one_that_fails_does_not_keep_others_from_joining(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    h = BusyHarness()
    for number in range(PER_TICK):
        h.enter(f"m{number}")
    bad, good = h.enter("bad"), h.enter("good")
    serve = h.consumers._serve

    def failing(heartbeat: Heartbeat) -> None:
        if heartbeat.request.member_id == "bad":
            raise RuntimeError("no")
        serve(heartbeat)

    monkeypatch.setattr(h.consumers, "_serve", failing)
    h.timer.advance(2_000)
    assert bad.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert good.error is ErrorCode.NONE


def test_who_waits_when_the_shard_goes_is_told_so() -> None:
    h = BusyHarness()
    replies = [h.enter(f"m{number}") for number in range(PER_TICK + 2)]
    h.consumers.close()
    h.timer.advance(0)
    assert replies[-1].error is ErrorCode.NOT_COORDINATOR


def test_quiet_heartbeats_do_not_wait() -> None:
    h = BusyHarness()
    h.enter("quiet")
    h.timer.advance(2_000)
    epoch = h.member("quiet").member_epoch
    for number in range(PER_TICK + 1):
        h.enter(f"m{number}", group="other")
    assert len(h.backlog) == 1
    assert h.beat("quiet", epoch).epoch == epoch


def test_heartbeats_of_groups_that_are_not_there_take_nobodys_place() -> None:
    h = BusyHarness()
    for epoch in range(-1, 2 * PER_TICK):
        if epoch:
            assert h.beat("nobody", epoch, group="gone").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert not h.timer.pending
    h.enter("m1")
    assert "m1" in h.consumer_group().members


def test_who_leaves_before_it_was_served_has_left() -> None:
    """A client that is closed at once does not wait for the answer to its joining."""
    h = BusyHarness()
    for number in range(PER_TICK):
        h.enter(f"m{number}")
    joining = h.enter("short", group="new")
    leaving = h.beat("short", LEAVE_EPOCH, group="new")
    h.timer.advance(2_000)
    assert leaving.error is ErrorCode.NONE
    assert not joining.is_parked
    assert not h.consumer_group("new").members


def test_too_many_members_are_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_module, "WAITING_MAX", 0)
    h = BusyHarness()
    replies = [h.enter(f"m{number}") for number in range(PER_TICK + 1)]
    assert replies[-1].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
