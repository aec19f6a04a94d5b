"""Observers of connections to peers get all that happens, each the same."""

from broker.peers.observer import PeerObservers
from tests.fakes.network.peers import SeenPeers


def test_every_observer_gets_everything_from_when_it_was_added() -> None:
    """In order; one that came later sees what comes later."""
    observers, first, second = PeerObservers(), SeenPeers(), SeenPeers()
    observers.add(first)
    observers.on_peer_connected(2, 7)
    observers.add(second)
    observers.on_peer_ended(2, 7, ConnectionResetError())
    observers.on_peer_refused(2, 7)
    observers.on_peer_unreachable(3, 8, TimeoutError())
    later = [
        ("ended", 2, 7, "ConnectionResetError"),
        ("refused", 2, 7),
        ("unreachable", 3, 8, "TimeoutError"),
    ]
    assert second.seen == later
    assert first.seen == [("connected", 2, 7), *later]
