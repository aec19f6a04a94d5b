"""What connections to peers say of the peers' processes: evidence for fencing."""

from typing import Protocol


class PeerObserver(Protocol):
    """Gets every connect and end of a connection; called on the loop, does not raise.

    Each call names the life of the peer's process that the connection was made to.
    """

    def on_peer_connected(self, node_id: int, epoch: int) -> None:
        """A connection was made."""
        ...

    def on_peer_ended(self, node_id: int, epoch: int, error: OSError | None) -> None:
        """The peer's side has ended an open connection; `error` None: in order, no reset."""
        ...

    def on_peer_refused(self, node_id: int, epoch: int) -> None:
        """The peer's machine answers, and nothing listens there."""
        ...

    def on_peer_unreachable(self, node_id: int, epoch: int, error: OSError) -> None:
        """A connect failed in any other way, a time-out among them: no evidence of anything."""
        ...


class PeerObservers:
    """All observers of a broker's connections, in the order in which they were added."""

    __slots__ = ("_observers",)

    def __init__(self) -> None:
        self._observers: list[PeerObserver] = []

    def add(self, observer: PeerObserver) -> None:
        """Call it from now on."""
        self._observers.append(observer)

    def on_peer_connected(self, node_id: int, epoch: int) -> None:
        """See `PeerObserver`."""
        for observer in self._observers:
            observer.on_peer_connected(node_id, epoch)

    def on_peer_ended(self, node_id: int, epoch: int, error: OSError | None) -> None:
        """See `PeerObserver`."""
        for observer in self._observers:
            observer.on_peer_ended(node_id, epoch, error)

    def on_peer_refused(self, node_id: int, epoch: int) -> None:
        """See `PeerObserver`."""
        for observer in self._observers:
            observer.on_peer_refused(node_id, epoch)

    def on_peer_unreachable(self, node_id: int, epoch: int, error: OSError) -> None:
        """See `PeerObserver`."""
        for observer in self._observers:
            observer.on_peer_unreachable(node_id, epoch, error)
