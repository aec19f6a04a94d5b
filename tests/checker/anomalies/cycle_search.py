"""Components and cycles of a directed graph; Tarjan (1972), without recursion."""

from collections import deque
from collections.abc import Iterator, Sequence

Graph = Sequence[set[int]]
"""Successors of each node."""


def strongly_connected(graph: Graph) -> list[list[int]]:
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


def shortest_cycle(graph: Graph, component: Sequence[int]) -> list[int]:
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
