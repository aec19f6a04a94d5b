"""A step of a broker's start, repeated for as long as the metadata store does not answer.

    step ──> done
    ^   └──> no server answers, or too late: waited for, and said so
    └─ 500 ms ─┘
        └──> refused, replaced, closed: raised

A store that is slow, paused or away delays a start. A process that ended because of it would have
to be started again by hand, and two of three that end are a cluster that stands still.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from broker.controller.store.metadata_store import StoreUnavailableError
from broker.runtime.pauses import pause
from broker.runtime.timer import Timer

LOGGER = logging.getLogger(__name__)

TRY_AGAIN_MS: Final = 500.0
"""Before servers that did not answer are asked again."""

LOG_EVERY: Final = 20
"""Attempts between two log lines."""

_T = TypeVar("_T")


async def until_answered(
    step: Callable[[], Awaitable[_T]],
    timer: Timer,
    *,
    what: str,
    waiting: Callable[[str], None],
) -> _T:
    """The result of `step`, however long that takes.

    Args:
        step: May be done again after it was done in part, or with an unknown outcome.
        timer: For waiting.
        what: What is waited for, for operators: "the metadata store etcd://...".
        waiting: Called with what is waited for and why; empty: nothing any more.

    Raises:
        StoreError: The store answers, and refuses.
    """
    attempts = 0
    while True:
        try:
            result = await step()
        except StoreUnavailableError as error:
            text = f"waiting for {what}: {error}"
            waiting(text)
            if attempts % LOG_EVERY == 0:
                LOGGER.warning("%s", text)
            attempts += 1
            await pause(timer, TRY_AGAIN_MS)
        else:
            waiting("")
            return result
