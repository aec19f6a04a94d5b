"""Circular information flow: who read whose writes, who wrote after whom.

    wr  T2 read a value that T1 sent        T1 ──> T2
    ww  T2's value stands next after T1's   T1 ──> T2

    G0      a cycle of ww: transactions interleave, which Kafka's model allows
    G1c     a cycle of wr: each has seen the other, which read_committed forbids
    G1c-ww  a cycle of both kinds: allowed, for the reason of G0

Source: Adya, Weak Consistency (1999); Jepsen's kafka workload; Tarjan (1972), without recursion.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from tests.checker.anomaly import Anomaly
from tests.checker.versions import Versions

Graph = list[set[int]]
"""Successors of each operation, by its place in the history."""


def strongly_connected(graph: Sequence[set[int]]) -> list[list[int]]:
    """Components of two nodes or more."""
    index = [-1] * len(graph)
    low = [0] * len(graph)
    on_stack = bytearray(len(graph))
    stack: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(len(graph)):
        if index[root] >= 0 or not graph[root]:
            continue
        work: list[tuple[int, Iterator[int]]] = [(root, iter(graph[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        on_stack[root] = 1
        while work:
            node, successors = work[-1]
            for successor in successors:
                if index[successor] < 0:
                    index[successor] = low[successor] = count
                    count += 1
                    stack.append(successor)
                    on_stack[successor] = 1
                    work.append((successor, iter(graph[successor])))
                    break
                if on_stack[successor] and index[successor] < low[node]:
                    low[node] = index[successor]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack[member] = 0
                        component.append(member)
                        if member == node:
                            break
                    if len(component) > 1:
                        found.append(sorted(component))
    return found


def shortest_cycle(graph: Sequence[set[int]], component: Sequence[int]) -> list[int]:
    """A cycle through the component's first node, of the fewest steps; first node not repeated."""
    start, members = component[0], set(component)
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for successor in sorted(graph[node] & members):
            if successor == start:
                path = [node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if successor not in came_from:
                came_from[successor] = node
                queue.append(successor)
    raise ValueError("not strongly connected")


def cycles(versions: Versions) -> Iterator[Anomaly]:
    """One finding for each component of each kind."""
    place = {id(op): n for n, op in enumerate(versions.ops)}
    wr: Graph = [set() for _ in versions.ops]
    ww: Graph = [set() for _ in versions.ops]
    for n, op in enumerate(versions.ops):
        if op.outcome == "fail":
            continue
        for key, read in op.polls.items():
            for _, value in read:
                writer = versions.writer.get((key, value))
                if writer is not None and writer is not op:
                    wr[place[id(writer)]].add(n)
    for key, order in versions.orders.items():
        before: int | None = None
        for value in order.values:
            writer = versions.writer.get((key, value))
            here = None if writer is None else place[id(writer)]
            if before is not None and here is not None and before != here:
                ww[before].add(here)
            before = here
    both = [a | b for a, b in zip(wr, ww, strict=True)]
    for kind, graph in (("G0", ww), ("G1c", wr), ("G1c-ww", both)):
        for component in strongly_connected(graph):
            path = shortest_cycle(graph, component)
            names = " -> ".join(versions.ops[n].name for n in (*path, path[0]))
            yield Anomaly(kind, f"{names} ({len(component)} in all)")
