"""The network between brokers, store and clients, as a test cuts it: places and what it can do.

A place is a broker's node id, `STORE`, a member of it (`store_member(0)`), or `CLIENTS`. There are
two: proxies (`bench.cluster.links`), which any user of any machine can have, and network namespaces
(`bench.cluster.namespaces`), where real packets are lost.
"""

from typing import Final, Protocol

STORE: Final = "store"
"""All members of the store."""

CLIENTS: Final = "clients"
"""Everybody who uses the listener for clients."""

Place = int | str


def store_member(number: int) -> str:
    """The name of one member of the store, counted from 0."""
    return f"{STORE}{number}"


class Network(Protocol):
    """What both kinds can do; a cut gives nobody an error before its own time is over."""

    def cut(self, first: Place, second: Place) -> None:
        """Nothing passes between two places."""
        ...

    def cut_one_way(self, source: Place, target: Place) -> None:
        """Nothing passes from one place to the other; what comes from there arrives."""
        ...

    def isolate(self, place: int, *, from_store: bool = True) -> None:
        """Cut a broker off from all others, and from the store; clients still reach it."""
        ...

    def heal(self) -> None:
        """Take all of that back; what was under way arrives late, as with TCP."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all is well."""
        ...
