"""A simulated cluster on which a case is played step by step; what must hold is asked all along.

    with Stage(seed=1) as stage:
        stage.write(3)
        stage.kill(stage.leader)
        ...

At its end everything is mended, must be whole in time, and every log is held against what clients
were told. Steps between `run_for`s happen at one moment.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from broker.controller.images.partition_image import PartitionImage
from tests.simulation.clients.history import History
from tests.simulation.clients.session import TOPIC, Producer
from tests.simulation.faults.nemesis import Nemesis
from tests.simulation.oracles.invariants import Invariants
from tests.simulation.run import Run, world_of
from tests.simulation.shape import Shape
from tests.simulation.store import HOST
from tests.simulation.world import Place, World

T = TypeVar("T")

ONE_PARTITION: Final = Shape(partitions=1)
PLACE: Final = Place(TOPIC, 0)


class Stage:
    """See the module; a context.

    Attributes:
        world: The cluster.
        run: Its boot, end and judgement.
        place: The partition that most cases are about.
    """

    def __init__(self, seed: int = 1, shape: Shape = ONE_PARTITION) -> None:
        self.world: World = world_of(seed, shape)
        history = History()
        invariants = Invariants(self.world, history, min_in_sync=shape.min_in_sync, every=1)
        self.run = Run(self.world, history, invariants, Nemesis(self.world, []), shape)
        self.place = PLACE
        self._is_mended = True
        self._writers: dict[tuple[str, int], Producer] = {}

    def __enter__(self) -> Self:
        gc.disable()
        self.run.boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and self._is_mended:
                self.run.heal()
                self.run.judge()
        finally:
            self.world.close()
            gc.enable()

    def gives_up(self) -> None:
        """The case ends with a cluster that an operator has to mend."""
        self._is_mended = False

    # -- what is ---------------------------------------------------------------------------------

    @property
    def record(self) -> PartitionImage:
        """The partition as the store has it."""
        return self.record_of(self.place)

    def record_of(self, place: Place) -> PartitionImage:
        """A partition as the store has it."""
        found = self.world.image.partition(*place)
        assert found is not None
        return found

    @property
    def leader(self) -> int:
        """Who leads it."""
        return self.record.leader

    @property
    def followers(self) -> list[int]:
        """Its other replicas, in order."""
        return [node for node in self.record.replicas if node != self.leader]

    def end(self, node_id: int) -> int:
        """The log end of a replica that is open."""
        broker = self.world.brokers[node_id].broker
        assert broker is not None
        replica = broker.replicas.replica_of(*self.place)
        return -1 if replica is None else replica.log.log_end_offset

    def high_watermark(self, node_id: int) -> int:
        """The high watermark as a replica has it."""
        broker = self.world.brokers[node_id].broker
        assert broker is not None
        replica = broker.replicas.replica_of(*self.place)
        return -1 if replica is None else replica.log.high_watermark

    # -- time ------------------------------------------------------------------------------------

    def run_for(self, duration_s: float) -> None:
        """Let time pass."""
        self.world.run_for(duration_s)

    def until(self, condition: Callable[[], bool], what: str, limit_s: float = 30.0) -> None:
        """Let time pass until the condition holds, which it must in time."""
        self.world.until(condition, limit_s=limit_s, what=what)

    def do(self, work: Coroutine[Any, Any, T], limit_s: float = 30.0) -> T:
        """Have a client do something, and wait for it."""
        task = self.start_doing(work)
        self.until(task.done, "the client has done it", limit_s)
        result: T = task.result()
        return result

    def start_doing(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Have a client begin something."""
        session = self.run.session(f"hand{len(self.run.sessions)}")
        return self.world.loop.spawn(session.process, work)

    # -- records ---------------------------------------------------------------------------------

    def writer(self, name: str = "idempotent", acks: int = -1) -> Producer:
        """A producer of its own name."""
        found = self._writers.get((name, acks))
        if found is None:
            session = self.run.session(f"{name}{acks}")
            found = Producer(session, self.run.history, self.place, acks=acks, pause_s=0.0)
            self._writers[name, acks] = found
        return found

    def write(self, records: int = 3, name: str = "idempotent") -> None:
        """Write with acks=all, and wait until it is acknowledged."""
        self.do(self.writer(name).write(records), limit_s=60)

    def begin_writing(
        self, records: int = 3, name: str = "later-idempotent"
    ) -> "asyncio.Task[None]":
        """Write with acks=all, which is acknowledged when it can be."""
        return self.start_doing(self.writer(name).write(records))

    def write_alone(self, node_id: int, records: int = 3) -> None:
        """Write with acks=1 to a broker that believes it is the leader."""
        writer = self.writer("lone", acks=1)
        writer._session.believe(self.place, node_id)
        self.do(writer.write(records))

    # -- faults ----------------------------------------------------------------------------------

    def kill(self, *nodes: int) -> None:
        """Kill -9."""
        for node_id in nodes:
            self.world.brokers[node_id].kill()

    def crash(self, node_id: int) -> None:
        """The machine loses its power, and what was not synced."""
        self.world.brokers[node_id].crash(None)

    def start(self, *nodes: int) -> None:
        """Start again."""
        for node_id in nodes:
            self.world.start(node_id)

    def pause(self, node_id: int) -> None:
        """SIGSTOP."""
        self.world.loop.pause(self.world.brokers[node_id].process)

    def resume(self, node_id: int) -> None:
        """SIGCONT."""
        self.world.loop.resume(self.world.brokers[node_id].process)

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Both ways between brokers."""
        hosts = {node: place.host for node, place in self.world.brokers.items()}
        for one, other in pairs:
            self.world.network.cut.update([(hosts[one], hosts[other]), (hosts[other], hosts[one])])

    def cut_from_store(self, *nodes: int) -> None:
        """Both ways."""
        for node in nodes:
            host = self.world.brokers[node].host
            self.world.network.cut.update([(host, HOST), (HOST, host)])

    def heal(self) -> None:
        """All links carry again."""
        self.world.network.heal()

    def until_led(self, *, not_by: int = -1, by: int | None = None) -> int:
        """Wait for a leader that is ready; who it is."""
        self.until(
            lambda: (
                self.leader >= 0
                and self.leader != not_by
                and by in (None, self.leader)
                and self._leads(self.leader)
            ),
            f"the partition is led, not by {not_by}",
            limit_s=60,
        )
        return self.leader

    def _leads(self, node_id: int) -> bool:
        broker = self.world.brokers[node_id].broker
        if broker is None:
            return False
        led = broker.replicas.leader_of(*self.place)
        return led is not None and led.leader_epoch == self.record.leader_epoch
