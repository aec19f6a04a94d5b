"""Several brokers as one cluster: each a process of its own on loopback, hit by faults at will."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench import wire
from bench.cluster.network import Network
from bench.cluster.state import ClusterState, PartitionState, cluster_state, create_assigned_topic
from bench.node import NodeEndedError, NodeError, OwnedNode
from bench.process import cpu_seconds, pin

POLL_S = 0.02
ANSWER_S = 2.0
"""A broker that takes longer for Metadata is asked again later: it may be paused."""


class Cluster:
    """Brokers by node id; what they need beside them is the subclass's.

    Attributes:
        nodes: The brokers, alive or not; the same objects, ports and directories all the time.
    """

    kind = "cluster"

    def __init__(self, nodes: Mapping[int, OwnedNode]) -> None:
        self.nodes = dict(nodes)
        self._paused: set[int] = set()

    @property
    def addresses(self) -> list[str]:
        """`host:port` of each broker, by node id."""
        return [self.nodes[node_id].address for node_id in sorted(self.nodes)]

    @property
    def bootstrap(self) -> str:
        """All of them, as clients take it."""
        return ",".join(self.addresses)

    @property
    def network(self) -> Network:
        """What cuts brokers off; of a kind of cluster that has it, and was made with it."""
        raise NotImplementedError

    def start(self, timeout_s: float = 120.0) -> None:
        """Start all, and wait until each shows all of them."""
        for node in self.nodes.values():
            node.launch()
        self.wait_for_all(timeout_s)

    def stop(self) -> dict[int, int]:
        """SIGTERM to all; the exit codes by node id. Whoever does not end is killed.

        Raises:
            NodeError: A broker did not stop in time; the others are ended.
        """
        for node_id in sorted(self._paused):
            self.resume(node_id)
        for node in self.nodes.values():
            node.terminate()
        codes: dict[int, int] = {}
        errors: list[NodeError] = []
        for node_id, node in self.nodes.items():
            try:
                codes[node_id] = node.stop()
            except NodeError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return codes

    def close(self) -> None:
        """SIGKILL to all that run, brokers first; for the end of a run that failed."""
        for node in self.nodes.values():
            node.kill()
        self._paused.clear()

    # Faults.

    def kill(self, node_id: int) -> None:
        """SIGKILL: what a crash of the process looks like."""
        self._paused.discard(node_id)
        self.nodes[node_id].kill()

    def terminate(self, node_id: int) -> None:
        """SIGTERM, without waiting for the end."""
        self.nodes[node_id].terminate()

    def pause(self, node_id: int) -> None:
        """SIGSTOP: the kernel goes on accepting connections for it."""
        self.nodes[node_id].pause()
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        """SIGCONT."""
        self.nodes[node_id].resume()
        self._paused.discard(node_id)

    def restart(self, node_id: int) -> None:
        """Start one that ended or was told to, without waiting for it to be ready."""
        node = self.nodes[node_id]
        node.stop()
        node.launch()

    def heal(self) -> None:
        """Resume what is paused and start what is dead."""
        for node_id in sorted(self._paused):
            self.resume(node_id)
        for node in self.nodes.values():
            if not node.is_running:
                node.stop()  # what is left of the process
                node.launch()

    # Questions.

    @property
    def answering(self) -> list[OwnedNode]:
        """Those that run and are not paused."""
        return [
            node
            for node_id, node in sorted(self.nodes.items())
            if node.is_running and node_id not in self._paused
        ]

    def state(self, topics: Sequence[str] | None = None) -> ClusterState:
        """What the first broker that answers says.

        Raises:
            NodeError: None of them answers.
        """
        for node in self.answering:
            with contextlib.suppress(OSError, wire.WireError):
                return self.state_at(node, topics)
        raise NodeError(f"no broker answers: {self.log_tails()}")

    def state_at(self, node: OwnedNode, topics: Sequence[str] | None = None) -> ClusterState:
        """What one broker says."""
        with node.connect(timeout_s=ANSWER_S) as connection:
            return cluster_state(connection, topics)

    def controller_id(self) -> int:
        """The node that is the controller now; -1 for none."""
        return self.state([]).controller_id

    def leader_of(self, topic: str, index: int = 0) -> int:
        """The node that leads a partition now; -1 for none."""
        found = self.state([topic]).partition(topic, index)
        return -1 if found is None else found.leader

    @contextlib.contextmanager
    def connected(self, node_id: int | None = None) -> Iterator[socket.socket]:
        """A connection to one broker, by default to the first that runs."""
        node = self.answering[0] if node_id is None else self.nodes[node_id]
        with node.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def connected_to_leader(self, topic: str, index: int) -> Iterator[socket.socket]:
        """A connection to the leader of a partition."""
        with self.connected(self.leader_of(topic, index)) as connection:
            yield connection

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[int]],
        configs: dict[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        """Create a topic with these replicas, and wait until all of them are in sync."""
        with self.connected() as connection:
            create_assigned_topic(connection, name, assignment, configs)
        self.wait_until_in_sync([name], timeout_s=timeout_s, partitions=len(assignment))

    # Waits: by asking the cluster itself, never by time alone.

    def wait_until(
        self, what: str, is_so: Callable[[], bool], timeout_s: float = 60.0, poll_s: float = POLL_S
    ) -> float:
        """Ask until it is so; the seconds that took.

        Raises:
            NodeError: It is not so within the time; the text ends with the brokers' logs.
            NodeEndedError: A process has ended that was asked whether it lives.
        """
        begin = time.monotonic()
        reason = ""
        while True:
            try:
                if is_so():
                    return time.monotonic() - begin
            except NodeEndedError:
                raise
            except (OSError, wire.WireError, NodeError) as error:
                reason = f" ({type(error).__name__}: {str(error)[:500]})"
            if time.monotonic() - begin > timeout_s:
                raise NodeError(f"not so after {timeout_s} s: {what}{reason}\n{self.log_tails()}")
            time.sleep(poll_s)

    def wait_for_all(self, timeout_s: float = 120.0) -> float:
        """Until each broker shows every broker."""

        def all_there() -> bool:
            for node in self.nodes.values():
                node.check_alive()
            return all(
                set(self.state_at(node, []).brokers) == set(self.nodes)
                for node in self.nodes.values()
            )

        return self.wait_until(f"brokers {sorted(self.nodes)} see each other", all_there, timeout_s)

    def wait_until_in_sync(
        self,
        topics: Sequence[str] | None = None,
        *,
        timeout_s: float = 60.0,
        partitions: int = 0,
    ) -> float:
        """Until all replicas of some topics, by default of all, are in their ISRs everywhere.

        Args:
            topics: Their names.
            timeout_s: How long at most.
            partitions: So many must be shown at least.
        """

        def in_sync() -> bool:
            for node in self.answering:
                shown = self.state_at(node, topics).partitions
                names = {p.topic for p in shown}
                if topics is not None and names != set(topics):
                    return False
                if len(shown) < partitions or not all(p.is_in_sync for p in shown):
                    return False
            return True

        return self.wait_until(
            f"all replicas of {topics or 'all topics'} in sync", in_sync, timeout_s
        )

    def out_of_sync(self) -> list[PartitionState]:
        """Partitions that lack a leader or a replica in their ISR."""
        return [p for p in self.state().partitions if not p.is_in_sync]

    # Costs and logs.

    def cpu_seconds(self) -> float:
        """Of all brokers that run, together."""
        return sum(cpu_seconds(node.pid) for node in self.nodes.values() if node.is_running)

    def pin(self, cores: Iterable[int]) -> None:
        """Bind all brokers to some cores."""
        wanted = tuple(cores)
        for node in self.answering:
            pin(node.pid, wanted)

    def log_tails(self, lines: int = 15) -> str:
        """The last lines of each broker."""
        return "\n".join(
            f"--- {self.kind} {node_id}:\n{node.log_tail(lines)}"
            for node_id, node in sorted(self.nodes.items())
        )

    def keep_logs(self, directory: Path) -> Path:
        """Copy the brokers' logs there."""
        directory.mkdir(parents=True, exist_ok=True)
        for node_id, node in self.nodes.items():
            if node.log_path.exists():
                (directory / f"{self.kind}-{node_id}.log").write_bytes(node.log_path.read_bytes())
        return directory
