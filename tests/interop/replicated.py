"""Three brokers in the place of one, for tests that know of one: one of them dies during each test.

`VARVE_INTEROP_BROKERS=3 make test-clients`: the programs of `tests/interop/libraries` that are
marked `clients` run unchanged. They are given the address of one broker that stays; which of the
others is killed, and comes back some seconds later, goes round. What they create has three
replicas.
"""

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from typing_extensions import override

from bench.cluster.cluster import Cluster
from bench.cluster.kinds import KafkaCluster, VarveCluster
from bench.node import OwnedNode

BEFORE_KILL_S: Final = 0.4
"""The quickest of the programs ends within a second."""

DEAD_S: Final = 4.0
STAYS: Final = 1


class ReplicatedNode(OwnedNode):
    """A cluster that is started, killed and stopped as one broker is.

    Attributes:
        kills: How many of its brokers were killed.
    """

    name = "cluster"

    def __init__(self, kind: str, directory: Path, properties: Mapping[str, str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.cluster: Cluster
        if kind == "kafka":
            self.cluster = KafkaCluster(directory, properties)
        else:
            self.cluster = VarveCluster(directory, properties)
        self.directory = directory
        self.port = self.cluster.nodes[STAYS].port
        self.kills = 0
        self._is_started = False
        self._victims = itertools.cycle(n for n in sorted(self.cluster.nodes) if n != STAYS)

    @override
    def start(self, timeout_s: float = 120.0) -> float:
        begin = time.monotonic()
        if self._is_started:
            self.cluster.heal()
            self.cluster.wait_for_all(timeout_s)
        else:
            self._is_started = True
            self.cluster.start(timeout_s)
        self.pid = self.cluster.nodes[STAYS].pid
        return time.monotonic() - begin

    @override
    def kill(self) -> None:
        """SIGKILL to one of those that do not stay."""
        self.cluster.kill(next(self._victims))
        self.kills += 1

    @property
    @override
    def is_running(self) -> bool:
        return self.cluster.nodes[STAYS].is_running

    @override
    def stop(self, timeout_s: float = 60.0) -> int:
        self.cluster.heal()
        try:
            return max(self.cluster.stop().values())
        finally:
            self.cluster.close()

    @override
    def log_tail(self, lines: int = 40) -> str:
        return self.cluster.log_tails(lines)

    @contextmanager
    def losing_one(self) -> Iterator[None]:
        """Kill one of them after a moment, and start it again some seconds later; then all."""
        is_over = threading.Event()

        def strike() -> None:
            if is_over.wait(BEFORE_KILL_S):
                return
            self.kill()
            is_over.wait(DEAD_S)
            self.cluster.heal()

        striker = threading.Thread(target=strike, name="kill", daemon=True)
        striker.start()
        try:
            yield
        finally:
            is_over.set()
            striker.join()
            self.start()
