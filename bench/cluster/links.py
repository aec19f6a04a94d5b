"""The network between brokers, store and clients of one machine: cut, stalled, reset, slow at will.

Every broker is reached through a proxy, by the other brokers and, if asked for, by clients; every
broker has a proxy of its own to each member of the store. All of them live in one process,
`bench.cluster.link_proxy`, which this module starts and commands.

Places are those of `bench.cluster.network`.

    links.cut(1, 2)              nothing passes between brokers 1 and 2
    links.cut_one_way(1, STORE)  nothing passes from 1 to the store; what comes from it arrives
    links.isolate(3)             broker 3 and all others, the store too; clients still reach it
    links.delay(1, 2, 50.0)      each way 50 ms later, in order
    links.reset(1, 2)            their connections end by a reset; new ones may be made
    links.heal()                 all is well; what was under way arrives late, as with TCP

Through a cut bytes stall, as on a network that loses packets: nobody gets an error before its own
time is over. A connection that is made meanwhile is accepted and silent.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from bench.cluster.network import STORE, Place
from bench.node import REPOSITORY, NodeError, free_ports


@dataclass(frozen=True, slots=True)
class Route:
    """One proxy: who connects to it, where it listens, what it stands for.

    Attributes:
        source: A place; empty: brokers, which say in their requests' heads who they are.
        target: A place.
        port: Of the proxy, on loopback.
        to: `host:port` of what is behind it.
    """

    source: str
    target: str
    port: int
    to: str


class LinkError(NodeError):
    """The process of the proxies does not answer."""


class Links:
    """See the module; `start` before the brokers, `stop` after them."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.routes: list[Route] = []
        self._one_way: set[tuple[str, str]] = set()
        self._delays: dict[tuple[str, str], float] = {}

    def add(self, source: Place | None, target: Place, to: str) -> str:
        """A proxy more, before the start; `host:port` where it listens."""
        (port,) = free_ports(1)
        name = "" if source is None else str(source)
        self.routes.append(Route(name, str(target), port, to))
        return f"127.0.0.1:{port}"

    def start(self) -> None:
        """Start the process; all that was added listens when this returns."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.cluster.link_proxy"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=REPOSITORY,
                start_new_session=True,
            )
        self._say({"routes": [asdict(route) for route in self.routes]})

    def stop(self) -> None:
        """End the process, and with it every connection; harmless when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    # Faults.

    def cut(self, first: Place, second: Place) -> None:
        """Nothing passes between two places."""
        self._cut([*self._pairs(first, second), *self._pairs(second, first)])

    def cut_one_way(self, source: Place, target: Place) -> None:
        """Nothing passes from one place to the other."""
        self._cut(self._pairs(source, target))

    def isolate(self, place: int, *, from_store: bool = True) -> None:
        """Cut a broker off from all others, and from the store."""
        for other in self.brokers:
            if other != place:
                self._one_way |= {(str(place), str(other)), (str(other), str(place))}
        if from_store:
            self._one_way |= {
                pair for pair in self._all_pairs() if str(place) in pair and self._is_store(pair)
            }
        self._tell()

    def delay(self, first: Place, second: Place, delay_ms: float) -> None:
        """Everything between two places arrives so much later, each way."""
        for pair in (*self._pairs(first, second), *self._pairs(second, first)):
            self._delays[pair] = delay_ms
        self._tell()

    def delay_all(self, delay_ms: float) -> None:
        """Everything between brokers arrives so much later, each way."""
        for pair in self._all_pairs():
            if all(end.isdigit() for end in pair):
                self._delays[pair] = delay_ms
        self._tell()

    def reset(self, first: Place, second: Place) -> None:
        """End all connections between two places by a reset."""
        self._say({"reset": [*self._pairs(first, second), *self._pairs(second, first)]})

    def heal(self) -> None:
        """Take all cuts and delays away; harmless when the process does not run."""
        self._one_way.clear()
        self._delays.clear()
        if self._process is not None:
            self._tell()

    @property
    def is_whole(self) -> bool:
        """Whether there is neither a cut nor a delay."""
        return not (self._one_way or self._delays)

    @property
    def brokers(self) -> list[int]:
        """Node ids of those that are reached through proxies."""
        return sorted({int(route.target) for route in self.routes if route.target.isdigit()})

    def counts(self) -> dict[str, int]:
        """Bytes that have passed, by `source>target`."""
        answer = self._say({"counts": True})
        found = answer.get("counts")
        assert isinstance(found, dict)
        return {str(name): int(count) for name, count in found.items()}

    # The process.

    def _all_pairs(self) -> list[tuple[str, str]]:
        """Every ordered pair of places with a proxy between them."""
        found: set[tuple[str, str]] = set()
        brokers = [str(node_id) for node_id in self.brokers]
        for route in self.routes:
            sources = [route.source] if route.source else brokers
            for source in sources:
                if source != route.target:
                    found |= {(source, route.target), (route.target, source)}
        return sorted(found)

    @staticmethod
    def _is_store(pair: tuple[str, str]) -> bool:
        return any(end.startswith(STORE) for end in pair)

    def _pairs(self, source: Place, target: Place) -> list[tuple[str, str]]:
        """The ordered pairs that two places stand for."""
        known = set(self._all_pairs())
        found = [
            pair for pair in itertools.product(_ends(source, known), _ends(target, known))
            if pair in known
        ]  # fmt: skip
        if not found:
            raise LinkError(f"no proxy between {source} and {target}")
        return found

    def _cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._one_way |= set(pairs)
        self._tell()

    def _tell(self) -> None:
        self._say({"cut": sorted(self._one_way), "delay_ms": [
            [*pair, delay] for pair, delay in sorted(self._delays.items())
        ]})  # fmt: skip

    def _say(self, command: dict[str, object]) -> dict[str, object]:
        if self._process is None:
            raise LinkError("the proxies do not run")
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            _write(stdin, command)
            line = stdout.readline()
        except OSError as error:
            raise LinkError(f"the proxies have ended: {error}; see {self._log}") from None
        if not line:
            raise LinkError(f"the proxies have ended; see {self._log}")
        answer = json.loads(line)
        if not isinstance(answer, dict) or "error" in answer:
            raise LinkError(f"the proxies say: {answer}")
        return answer


def _ends(place: Place, known: set[tuple[str, str]]) -> Sequence[str]:
    """`STORE` is all of its members."""
    if place != STORE:
        return [str(place)]
    return sorted({end for pair in known for end in pair if end.startswith(STORE)})


def _write(stdin: IO[bytes], command: dict[str, object]) -> None:
    stdin.write(json.dumps(command).encode() + b"\n")
    stdin.flush()
