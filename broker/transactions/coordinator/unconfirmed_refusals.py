"""Refusals that another coordinator might not give: said once this one is known not to be replaced.

    refused ──> noted, "ask again" ──> asked again ──> no other led by the first time: said
                      ^                     │      └─> `GIVEN_UP_MS` have passed: said
                      └────── else ─────────┘

A leader that was replaced while it was cut off from the metadata store, and not from its clients,
hears of it late. Its successor may have begun a transaction that is not in the memory here: a
client that is refused takes its transaction for over, though nothing is wrong. Asked to look for
its coordinator, it finds the successor, or comes back.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.interfaces import ProducerIdAndEpoch

REFUSALS_MAX: Final = 1_000
"""Noted at a time; of more the oldest is forgotten, and begins again when it is asked."""

GIVEN_UP_MS: Final = 5_000.0
"""Where followers cannot confirm it, as when the ISR is too small: by then it has heard that it was
replaced, or is in doubt and answers nothing."""

HasLedSince = Callable[[TransactionShard, float], bool]
"""Whether no other broker can have led a shard's partition by a monotonic time."""


class _Refusal(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    commit: bool
    coordinator_epoch: int


class UnconfirmedRefusals:
    """See the module. On the loop's thread."""

    __slots__ = ("_first_ms", "_has_led_since")

    def __init__(self, has_led_since: HasLedSince) -> None:
        """Nothing is noted."""
        self._has_led_since = has_led_since
        self._first_ms: OrderedDict[_Refusal, float] = OrderedDict()

    def may_be_said(
        self,
        shard: TransactionShard,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        now_ms: float,
    ) -> bool:
        """Whether a refusal is certain; else the client is to look for its coordinator."""
        refusal = _Refusal(transactional_id, producer, commit, shard.coordinator_epoch)
        first_ms = self._first_ms.get(refusal, now_ms)
        if now_ms - first_ms >= GIVEN_UP_MS or self._has_led_since(shard, first_ms):
            self._first_ms.pop(refusal, None)
            return True
        self._first_ms[refusal] = first_ms
        if len(self._first_ms) > REFUSALS_MAX:
            self._first_ms.popitem(last=False)
        return False
