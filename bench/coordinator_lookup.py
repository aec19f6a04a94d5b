"""FindCoordinator: the first request of a member or a producer on its connection.

The answer is one of the two brokers measured, which are alone, so only its error code counts.
"""

import time
from collections.abc import Callable

from bench import group_wire
from bench.generator import GeneratorError
from bench.pipeline import Connection, Loop

COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
RETRIABLE = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
RETRY_S = 0.1
GROUP, TRANSACTION = 0, 1


def find_coordinator(
    loop: Loop, connection: Connection, key: str, then: Callable[[], None], *, kind: int = GROUP
) -> None:
    """Ask until there is a coordinator, then go on."""

    def ask() -> None:
        connection.send(group_wire.find_coordinator_frame(key, 0, kind=kind), on_answer)

    def on_answer(answer: bytes) -> None:
        code = group_wire.plain_error(answer)
        if code in RETRIABLE:
            loop.call_at(time.perf_counter() + RETRY_S, ask)
        elif code:
            raise GeneratorError(f"FindCoordinator {key}: error {code}")
        else:
            then()

    ask()
