"""Dependencies between transactions, and what runs in a circle.

    ww        T2's value stands next after T1's                    T1 ──> T2
    wr        T2 read a value that T1 sent                         T1 ──> T2
    rw        T2's value stands next after the last that T1 read   T1 ──> T2
    process   T2 comes next after T1 in one process                T1 ──> T2
    realtime  T2 began after T1 had ended                          T1 ──> T2

    G0        ww                   transactions interleave: Kafka's model
    G1c-ww    ww and wr            the same with a reader
    G-single  ww, wr and one rw    a poll sees what it gets to, not all there is: Kafka's model
    G2        ww, wr and more rw   the same
    G1c       wr                   each has seen the other before it was committed: never

Each also with process edges (`-process`), and with those and realtime edges (`-realtime`): `G1c` is
a mistake with all of them, as what a transaction read was committed before, so that nothing of it
can have read what came later. A finding contains no finding of its fewer edges.

Real time would take an edge for every pair; instead there is a chain of nodes, one for each end of
an operation, which operations lead into where they end and out of where they begin.

Source: Adya, Weak Consistency (1999); Jepsen's kafka workload, which has all of this but rw, and
Elle; the same are allowed there.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.anomalies.cycle_search import shortest_cycle, strongly_connected
from tests.checker.anomalies.versions import Versions

_WORK = frozenset({"send", "poll", "txn"})

Edges = list[set[int]]


class Dependencies:
    """All edges of a history; nodes from `time_nodes` on are points of time."""

    def __init__(self, versions: Versions) -> None:
        self.ops = [op for op in versions.ops if op.f in _WORK and op.outcome != "fail"]
        self._place = {id(op): n for n, op in enumerate(self.ops)}
        self.time_nodes = len(self.ops)
        self.wr = self._none()
        self.ww = self._none()
        self.rw = self._none()
        self._read(versions)
        self._written(versions)
        self.process = self._processes()
        self.realtime = self._real_time()

    def _none(self) -> Edges:
        return [set() for _ in self.ops]

    def _writer(self, versions: Versions, key: str, value: str) -> int | None:
        writer = versions.writer.get((key, value))
        return None if writer is None else self._place.get(id(writer))

    def _read(self, versions: Versions) -> None:
        for n, op in enumerate(self.ops):
            for key, read in op.polls.items():
                for _, value in read:
                    writer = self._writer(versions, key, value)
                    if writer is not None and writer != n:
                        self.wr[writer].add(n)
                order = versions.orders[key]
                last = max((order.position.get(value, -1) for _, value in read), default=-1)
                if 0 <= last < len(order.values) - 1:
                    successor = self._writer(versions, key, order.values[last + 1])
                    if successor is not None and successor != n:
                        self.rw[n].add(successor)

    def _written(self, versions: Versions) -> None:
        for key, order in versions.orders.items():
            before: int | None = None
            for value in order.values:
                here = self._writer(versions, key, value)
                if before is not None and here is not None and before != here:
                    self.ww[before].add(here)
                before = here

    def _processes(self) -> Edges:
        edges = self._none()
        last: dict[str, int] = {}
        for n, op in enumerate(self.ops):
            if op.proc in last:
                edges[last[op.proc]].add(n)
            last[op.proc] = n
        return edges

    def _real_time(self) -> Edges:
        ended = sorted(
            (op.completed_ns, n) for n, op in enumerate(self.ops) if op.completed_ns is not None
        )
        times = [time_ns for time_ns, _ in ended]
        edges: Edges = [*self._none(), *(set() for _ in ended)]
        for rank, (_, n) in enumerate(ended):
            edges[n].add(self.time_nodes + rank)
            if rank:
                edges[self.time_nodes + rank - 1].add(self.time_nodes + rank)
        for n, op in enumerate(self.ops):
            before = bisect_left(times, op.invoked_ns) - 1
            if before >= 0:
                edges[self.time_nodes + before].add(n)
        return edges

    def kind(self, name: str, path: list[int]) -> str:
        """`G-single` or `G2`, told apart by how often a cycle needs an rw edge."""
        if name != "G2":
            return name
        pairs = zip(path, [*path[1:], path[0]], strict=True)
        ops = self.time_nodes
        needed = sum(
            b in self.rw[a] and b not in self.ww[a] and b not in self.wr[a]
            for a, b in pairs
            if a < ops
        )
        return "G-single" if needed == 1 else "G2"

    def text(self, path: list[int], size: int) -> str:
        """A cycle for people; points of time are left out."""
        names = [self.ops[n].name for n in path if n < self.time_nodes]
        return f"{' -> '.join([*names, names[0]])} ({size} in all)"


def _joined(graphs: Iterable[Edges], size: int) -> Edges:
    joined: Edges = [set() for _ in range(size)]
    for graph in graphs:
        for n, successors in enumerate(graph):
            joined[n] |= successors
    return joined


def cycles(versions: Versions) -> Iterator[Anomaly]:
    """One finding for each component that has none with fewer edges in it."""
    found = Dependencies(versions)
    searches = {
        "G1c": [found.wr],
        "G0": [found.ww],
        "G1c-ww": [found.ww, found.wr],
        "G2": [found.ww, found.wr, found.rw],
    }
    known_allowed: set[int] = set()
    for name, graphs in searches.items():
        # What is forbidden hides nothing, and nothing hides it.
        known = set[int]() if name == "G1c" else known_allowed
        for suffix, order in (
            ("", []),
            ("-process", [found.process]),
            ("-realtime", [found.process, found.realtime]),
        ):
            graph = _joined([*graphs, *order], len(found.realtime))
            for component in strongly_connected(graph):
                ops = [n for n in component if n < found.time_nodes]
                if not known.isdisjoint(ops):
                    continue
                known.update(ops)
                path = shortest_cycle(graph, component)
                kind = found.kind(name, path) + suffix
                yield Anomaly(kind, found.text(path, len(ops)))
