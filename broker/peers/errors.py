"""What a request to another broker fails with."""


class PeerUnavailableError(ConnectionError):
    """A peer did not answer: it is not in the image, cannot be reached, is silent, or has ended.

    Attributes:
        node_id: The peer.
        sent: Bytes of the request have left, so that the peer may have acted on it: the outcome is
            unknown. False: it has certainly not.
        reason: In words, for the log.
    """

    def __init__(self, node_id: int, *, sent: bool, reason: str) -> None:
        super().__init__(f"broker {node_id}: {reason}")
        self.node_id = node_id
        self.sent = sent
        self.reason = reason
