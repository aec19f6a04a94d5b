"""The address of the metadata store: this node's own file, a socket, or servers of etcd.

sqlite                          the node is alone
unix:/path/of/socket            served by the supervisor of this machine's brokers
etcd://host:port[,host:port]    servers of one etcd cluster; port 2379 if none is given
etcds://host:port[,host:port]   the same, with TLS
"""

from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from config.kinds import WireType, refusal
from config.listeners import Endpoint, parse_endpoint

UNIX: Final = "unix:"
ETCD_PORT: Final = 2379
ENDPOINTS_MAX: Final = 100
"""etcd clusters have three, five or seven members."""


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where it is: servers of etcd, or a socket; with neither it is a file of this node's own."""

    endpoints: tuple[Endpoint, ...] = ()
    with_tls: bool = False
    socket: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether several brokers may use it."""
        return bool(self.endpoints or self.socket)

    @override
    def __str__(self) -> str:
        if self.socket:
            return f"{UNIX}{self.socket}"
        if not self.endpoints:
            return "sqlite"
        return f"etcd{'s' * self.with_tls}://{','.join(map(str, self.endpoints))}"


SQLITE: Final = StoreAddress()


@dataclass(frozen=True, slots=True)
class StoreAddressKind:
    """Text of a `StoreAddress`."""

    @property
    def wire_type(self) -> WireType:
        """STRING."""
        return WireType.STRING

    @property
    def description(self) -> str:
        """The forms."""
        return "`sqlite`, `unix:/path`, `etcd://host:port,...` or `etcds://host:port,...`"

    def parse(self, name: str, text: str) -> StoreAddress:
        """Read the address; a server may not be named twice."""
        text = text.strip()
        if text == "sqlite":
            return SQLITE
        if text.startswith(UNIX):
            path = text.removeprefix(UNIX)
            if path.startswith("//"):
                path = path.removeprefix("//")
            if not path.startswith("/") or "\0" in path or path.endswith("/"):
                raise ValueError(refusal(name, text, "No absolute path of a socket"))
            return StoreAddress(socket=path)
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in ("etcd", "etcds"):
            raise ValueError(refusal(name, text, "Neither `sqlite`, a socket nor servers of etcd"))
        words = [word.strip() for word in rest.rstrip("/").split(",")]
        try:
            endpoints = tuple(map(_endpoint, words))
        except ValueError as error:
            raise ValueError(refusal(name, text, str(error))) from error
        if len(set(endpoints)) != len(endpoints):
            raise ValueError(refusal(name, text, "A server is named twice"))
        if len(endpoints) > ENDPOINTS_MAX:
            raise ValueError(refusal(name, text, f"More than {ENDPOINTS_MAX} servers"))
        return StoreAddress(endpoints, scheme == "etcds")

    def format(self, value: object) -> str:
        """The same form."""
        return str(value)


def _endpoint(word: str) -> Endpoint:
    if not word:
        raise ValueError("A server has no name")
    if ":" not in word.rpartition("]")[2]:
        word = f"{word}:{ETCD_PORT}"
    endpoint = parse_endpoint(word)
    if not endpoint.host or not endpoint.port:
        raise ValueError(f"`{word}` has no host or no port")
    return endpoint
