"""Transaction handlers on a coordinator over fakes; answers go through their version's codec."""

from types import ModuleType, SimpleNamespace
from typing import Any, cast

from broker.transactions.interfaces import ProducerIdAndEpoch
from config.broker import BrokerConfig
from tests.fakes.broker.wire import call
from tests.harness.transactions import OFFSETS, Coordinator


class Transactions(Coordinator):
    """What handlers see of a broker with topic t (3 partitions) and `__consumer_offsets` (50)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.services = SimpleNamespace(
            settings=BrokerConfig(),
            transactions=self.transactions,
            controller=self.controller,
            clock=self.clock,
            groups=SimpleNamespace(partition_for=lambda group_id: OFFSETS.partition),
        )

    def send(self, handler: ModuleType, request: Any, version: int) -> Any:
        """The answer as the client of that version decodes it."""
        return self.loop.run_until_complete(
            call(handler, cast("Any", self.services), request, version)
        )

    def fenced(self) -> ProducerIdAndEpoch:
        """A producer that was replaced."""
        producer = self.new_producer()
        self.new_producer()
        return producer
