"""The peer of a connection."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """The peer of a connection, shared by all its requests."""

    listener_name: str
    peer_host: str
    peer_port: int = 0
    principal: str = "User:ANONYMOUS"
