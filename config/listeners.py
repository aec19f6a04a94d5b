"""Listeners, and the addresses advertised to clients.

    listeners = NAME://host:port[,NAME://host:port...]      [::1]:9092 for IPv6

An empty host in `listeners` is every interface, in `advertised.listeners` this machine's name.
"""

import re
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SECURITY_PROTOCOLS: tuple[SecurityProtocol, ...] = (
    "PLAINTEXT",
    "SSL",
    "SASL_PLAINTEXT",
    "SASL_SSL",
)

_LISTENER = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://(?:\[(?P<ipv6>[0-9a-fA-F:.%]+)\]|(?P<host>[^:\[\]/\s]*)):(?P<port>[0-9]{1,5})"
)
_HOST_PORT = re.compile(
    r"(?:\[(?P<ipv6>[0-9a-fA-F:.%]+)\]|(?P<host>[^:\[\]/\s]*)):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port; port 0 lets the system choose one."""

    host: str
    port: int

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Listener:
    """One named address; names are upper case, as Kafka normalises them."""

    name: str
    host: str
    port: int

    @override
    def __str__(self) -> str:
        return f"{self.name}://{Endpoint(self.host, self.port)}"


def parse_endpoint(text: str) -> Endpoint:
    """Read `host:port`.

    Raises:
        ValueError: Not that form, or the port is above 65535.
    """
    match = _HOST_PORT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text.strip()}` is not host:port")
    return Endpoint(match["ipv6"] or match["host"], _port(match["port"]))


def parse_listener(text: str) -> Listener:
    """Read `NAME://host:port`.

    Raises:
        ValueError: Not that form, or the port is above 65535.
    """
    match = _LISTENER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text.strip()}` is not NAME://host:port")
    return Listener(match["name"].upper(), match["ipv6"] or match["host"], _port(match["port"]))


def _port(digits: str) -> int:
    port = int(digits)
    if port > 65535:
        raise ValueError(f"port {port} is above 65535")
    return port
