"""A whole simulated cluster: loop, network, store, brokers; and what went wrong in it."""

import logging
from collections.abc import Callable
from typing import Final

from tests.simulation.brokers import SimBroker
from tests.simulation.loop import Process, SimLoop
from tests.simulation.network import SimNetwork
from tests.simulation.store import StoreServer


class Violation(AssertionError):
    """Something that must never be; the run ends with it."""


class _Problems(logging.Handler):
    """Exceptions that a broker has logged: those that it did not expect."""

    def __init__(self, world: "World") -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.logged(record)


class World:
    """See the module; `close` it.

    Attributes:
        problems: Exceptions that nobody expected.
        lines: Of the brokers' logs, warnings and above, with time and process.
    """

    def __init__(self, seed: int, *, brokers: int, **settings: object) -> None:
        self.seed = seed
        self.loop = SimLoop(seed)  # type: ignore[abstract]  # what a broker needs of a loop
        self.network = SimNetwork(self.loop)
        self.server = StoreServer(self.network)
        self.brokers: Final = {
            node_id: SimBroker(node_id, self.network, self.server, **settings)
            for node_id in range(1, brokers + 1)
        }
        self.problems: list[str] = []
        self.lines: list[str] = []
        self._handler = _Problems(self)
        root = logging.getLogger()
        self._level = root.level
        self._others = list(root.handlers)
        root.handlers = [self._handler]

    def close(self) -> None:
        """Give the log back."""
        logging.getLogger().handlers = self._others

    def logged(self, record: logging.LogRecord) -> None:
        """Keep a line of a broker's log."""
        line = f"{self.loop.time():.6f} {self.loop.current.name} {record.getMessage()}"
        self.lines.append(line)
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            self.problems.append(f"{line}\n{text}")

    def process(self, name: str) -> Process:
        """A process of a client, on a host of its own name."""
        return Process(name)

    def until(self, condition: Callable[[], bool], *, limit_s: float, what: str) -> None:
        """Run until the condition holds.

        Raises:
            Violation: It does not within so much virtual time.
        """
        if not self.loop.run(lambda: condition() or bool(self._wrong()), limit_s=limit_s):
            raise Violation(f"not within {limit_s} s: {what}")
        self.check()

    def run_for(self, duration_s: float) -> None:
        """Run for so much virtual time."""
        self.loop.run(lambda: bool(self._wrong()), limit_s=duration_s)
        self.check()

    def _wrong(self) -> list[object]:
        return [*self.problems, *self.loop.errors]

    def check(self) -> None:
        """Raise what went wrong, if anything did."""
        wrong = self._wrong()
        if wrong:
            raise Violation(f"seed {self.seed}: {wrong[0]}")
