"""The peer of a connection."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """Who is at the other end; shared by all requests of a connection."""

    listener_name: str
    peer_host: str
    peer_port: int = 0
    principal: str = "User:ANONYMOUS"
