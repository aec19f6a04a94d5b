"""A network namespace for each server of a cluster, so that real packets are lost between them.

    this process ── bridge ─┬─ veth ── namespace of broker 1     10.77.0.11
    (a namespace            ├─ veth ── namespace of broker 2     10.77.0.12
     of its own,            ├─ ...
     10.77.0.1, where       └─ veth ── namespace of etcd's m0    10.77.0.31
     clients are)

All of it hangs on this process, which `enter` puts into a namespace first: nothing outside can
reach a server, and nothing is left behind. Who is not root gets a user namespace too, where the
machine allows it.

    net.cut(1, 2)              no packet passes between 1 and 2
    net.cut_one_way(1, STORE)  none passes from 1 to the store; what the store sends arrives
    net.isolate(3)             broker 3 and all others, the store too; clients still reach it
    net.unplug(3)              the link of broker 3 goes down: its cable is out
    net.heal()                 all is well; TCP sends again what was lost

Nothing is refused or reset, and no error comes before somebody's time is over: packets go to a link
address that nobody has. (A blackhole route, which also cuts living connections, tells new ones
EINVAL at once, which no network does.) Beside `bench.cluster.links`, whose proxies end connections
on both sides: here TCP itself decides when it sends again and when it gives up.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cluster.network import CLIENTS, STORE, Place
from bench.node import NodeError
from bench.process import Host

HUB_ADDRESS: Final = "10.77.0.1"
_NOBODY: Final = "02:00:00:00:ff:ff"
_ENTERED: Final = "VARVE_BENCH_NETWORK_NAMESPACE"
_PROGRAMS: Final = ("ip", "nsenter", "unshare")


class NamespaceError(NodeError):
    """The machine has no namespaces for us, or a command of ip(8) failed."""


def _unshare() -> list[str]:
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ["unshare", *user, "--net", "--"]


def why_not() -> str:
    """What this machine lacks; empty when it has all."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"not on this machine: {', '.join(missing)} (iproute2, util-linux)"
    tried = subprocess.run(
        [*_unshare(), "ip", "link", "add", "varve0", "type", "bridge"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no network namespaces: {tried.stderr.strip()}" if tried.returncode else ""


def is_entered() -> bool:
    """Whether this process is in a namespace of its own already."""
    return _ENTERED in os.environ


def enter(module: str, arguments: Sequence[str]) -> None:
    """Start this program anew in a namespace of its own; returns when it is there.

    Raises:
        NamespaceError: The machine has none for us.
    """
    if is_entered():
        return
    reason = why_not()
    if reason:
        raise NamespaceError(reason)
    command = [*_unshare(), sys.executable, "-m", module, *arguments]
    os.execvpe(command[0], command, {**os.environ, _ENTERED: "1"})


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a place is: its address, its link address, and the process that keeps its namespace."""

    address: str
    link_address: str
    holder: subprocess.Popen[bytes] | None

    @property
    def prefix(self) -> tuple[str, ...]:
        """What runs a command there."""
        if self.holder is None:
            return ()
        return ("nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--")


class Namespaces:
    """See the module; made before the servers, closed after them.

    Places are those of `bench.cluster.network`.
    """

    def __init__(self) -> None:
        """The bridge, and this process on it.

        Raises:
            NamespaceError: This process has not entered a namespace of its own.
        """
        if not is_entered():
            raise NamespaceError("the bridge belongs into a namespace of its own: enter() first")
        self._spots: dict[str, _Spot] = {}
        self._lost: set[tuple[str, str]] = set()
        self._unplugged: set[str] = set()
        hub = _Spot(HUB_ADDRESS, "02:00:00:00:00:01", None)
        _run(hub, "ip link set lo up")
        with contextlib.suppress(NamespaceError):
            _run(hub, "ip link del varve0")  # of the cluster before
        _run(hub, f"ip link add varve0 address {hub.link_address} type bridge")
        _run(hub, f"ip addr add {hub.address}/24 dev varve0")
        _run(hub, "ip link set varve0 up")
        self._spots[CLIENTS] = hub

    def add(self, place: Place) -> Host:
        """A namespace for a server."""
        number = len(self._spots) + 10
        holder = subprocess.Popen(
            ["unshare", "--net", "cat"],  # it ends with this process, by the end of its input
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        if not holder.stdout.readline():
            raise NamespaceError(f"no namespace for {place}")
        spot = _Spot(f"10.77.0.{number}", f"02:00:00:00:00:{number:02x}", holder)
        hub, device = self._spots[CLIENTS], f"varve{number}"
        _run(hub, f"ip link add {device} type veth peer name eth0 netns {holder.pid}")
        _run(hub, f"ip link set {device} master varve0 up")
        _run(spot, "ip link set lo up")
        _run(spot, f"ip link set eth0 address {spot.link_address} up")
        _run(spot, f"ip addr add {spot.address}/24 dev eth0")
        self._spots[str(place)] = spot
        for other in self._spots:
            if other != str(place):
                self._show(str(place), other)
                self._show(other, str(place))
        return Host(spot.address, spot.prefix)

    def close(self) -> None:
        """Give all of it back; servers in it are to be dead."""
        for place, spot in self._spots.items():
            if spot.holder is not None:
                # By itself it would go some time after its namespace.
                _run(self._spots[CLIENTS], f"ip link del {self._device_of(place)}")
                spot.holder.kill()
                spot.holder.communicate()
        self._spots.clear()

    # Faults.

    def cut(self, first: Place, second: Place) -> None:
        """No packet passes between two places."""
        self._lose([*self._pairs(first, second), *self._pairs(second, first)])

    def cut_one_way(self, source: Place, target: Place) -> None:
        """No packet passes from one place to the other."""
        self._lose(self._pairs(source, target))

    def isolate(self, place: int, *, from_store: bool = True) -> None:
        """Cut a broker off from all others, and from the store."""
        for other in self._spots:
            if other not in (str(place), CLIENTS) and (from_store or not other.startswith(STORE)):
                self._lose([(str(place), other), (other, str(place))])

    def unplug(self, place: Place) -> None:
        """Take the link of a place down."""
        self._unplugged.add(str(place))
        self._set_link(str(place), "down")

    def heal(self) -> None:
        """Take all of that back."""
        lost, self._lost = self._lost, set()
        for source, target in lost:
            self._show(source, target)
        for place in self._unplugged:
            self._set_link(place, "up")
        self._unplugged.clear()

    @property
    def is_whole(self) -> bool:
        """Whether every packet passes."""
        return not (self._lost or self._unplugged)

    def _set_link(self, place: str, state: str) -> None:
        _run(self._spots[CLIENTS], f"ip link set {self._device_of(place)} {state}")

    def _device_of(self, place: str) -> str:
        """The bridge's end of a place's link."""
        return f"varve{self._spots[place].address.rpartition('.')[2]}"

    def _pairs(self, source: Place, target: Place) -> Iterable[tuple[str, str]]:
        return itertools.product(self._ends(source), self._ends(target))

    def _ends(self, place: Place) -> list[str]:
        if place == STORE:
            return [name for name in self._spots if name.startswith(STORE)]
        return [str(place)]

    def _lose(self, pairs: Iterable[tuple[str, str]]) -> None:
        for source, target in pairs:
            self._lost.add((source, target))
            self._tell(source, target, _NOBODY)

    def _show(self, source: str, target: str) -> None:
        self._tell(source, target, self._spots[target].link_address)

    def _tell(self, source: str, target: str, link_address: str) -> None:
        """Who `source` takes for `target`; permanent, so that nobody asks by broadcast."""
        spot = self._spots[source]
        device = "varve0" if source == CLIENTS else "eth0"
        _run(
            spot,
            f"ip neigh replace {self._spots[target].address} lladdr {link_address}"
            f" dev {device} nud permanent",
        )


def _run(spot: _Spot, command: str) -> None:
    done = subprocess.run(
        [*spot.prefix, *command.split()], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NamespaceError(f"{command}: {done.stderr.strip()}")
