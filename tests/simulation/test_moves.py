"""A move to another log directory that fails after its new place was noted, on whole brokers."""

import errno
from random import Random

from tests.fakes.filesystem import Event
from tests.simulation.brokers import COPY
from tests.simulation.faults.moves import elsewhere, moves_of
from tests.simulation.shape import Shape
from tests.simulation.stage import Stage

TWO_DIRECTORIES = Shape(partitions=1, directories=2)


def test_the_store_hears_where_a_replica_stayed_though_the_controller_was_away() -> None:
    """Else it would leave the ISR, for as long as its broker runs, if that other disk failed."""
    with Stage(shape=TWO_DIRECTORIES) as stage:
        stage.write(3)
        controller = stage.world.image.controller_id
        node = next(node for node in stage.followers if node != controller)
        broker = stage.world.brokers[node]
        before = broker.folder(*stage.place)

        def saw(event: Event) -> None:
            if COPY in event.path and "leader-epoch" in event.path and not stage.world.network.cut:
                # The new place is noted by now, and the log is out.
                stage.cut((node, controller))
                broker.filesystem.fail("write", errno.ENOSPC, path=COPY)

        broker.on_event = saw
        session = stage.run.session("operator")
        target = elsewhere(broker, stage.place, Random(1))
        stage.do(session.call(node, moves_of([stage.place], target)))
        stage.until(lambda: bool(stage.world.network.cut), "the copy is made whole")
        stage.run_for(8)
        # What was asked of it is lost, too.
        stage.world.network.reset(broker.host, stage.world.brokers[controller].host)
        stage.heal()
        assert broker.folder(*stage.place) == before
