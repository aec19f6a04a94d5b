"""An address that other brokers cannot use is named in their logs, and not too often."""

import logging

import pytest

from broker.peers.unreachable_peers import (
    LOG_AFTER_MS,
    LOG_INTERVAL_MS,
    PAUSE_MS,
    UnreachablePeers,
)
from tests.fakes.clock import ManualClock

NO_NAME = OSError("nosuch.invalid: Name or service not known")


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_it_is_said_after_a_while_and_again_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    peers = UnreachablePeers(clock, lambda _node: True)
    for _ in range(int((LOG_AFTER_MS + LOG_INTERVAL_MS) / 500) + 1):
        peers.on_peer_unreachable(2, 7, NO_NAME)
        clock.advance(500)
    assert [message.split(" node=")[1] for message in caplog.messages] == [
        f"2 seconds={LOG_AFTER_MS / 1000:.0f} error={NO_NAME}",
        f"2 seconds={(LOG_AFTER_MS + LOG_INTERVAL_MS) / 1000:.0f} error={NO_NAME}",
    ]
    peers.on_peer_connected(2, 7)
    peers.on_peer_connected(2, 7)
    assert caplog.messages[2:] == ["broker can be reached again node=2"]


def test_a_short_outage_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    """Nor many of them, far apart."""
    clock = ManualClock()
    peers = UnreachablePeers(clock, lambda _node: True)
    for _ in range(3):
        peers.on_peer_refused(2, 7)
        clock.advance(PAUSE_MS + 1)
    peers.on_peer_refused(2, 7)
    clock.advance(LOG_AFTER_MS - 1)
    peers.on_peer_refused(2, 7)
    peers.on_peer_connected(2, 7)
    peers.on_peer_ended(2, 7, None)
    assert caplog.messages == []


def test_a_broker_that_is_fenced_is_not_missed(caplog: pytest.LogCaptureFixture) -> None:
    """It was stopped, perhaps for days."""
    clock = ManualClock()
    fenced = {2}
    peers = UnreachablePeers(clock, lambda node: node not in fenced)
    peers.on_peer_refused(2, 7)
    clock.advance(LOG_AFTER_MS)
    peers.on_peer_refused(2, 7)
    assert caplog.messages == []
    fenced.clear()
    peers.on_peer_refused(2, 7)
    clock.advance(LOG_AFTER_MS)
    peers.on_peer_refused(2, 7)
    assert len(caplog.messages) == 1
