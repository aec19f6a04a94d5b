"""The tier's work in the broker's own process and loop: for tests, and machines too small for two.

Its price is the broker's tail latency: see `tiered.worker.supervisor` for how it is avoided.
"""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from tiered.worker.bounded import BoundedTier


class InlineTier(BoundedTier):
    """`BoundedTier` whose counters say where it runs, with the names `TierClient` uses."""

    @override
    def statistics(self) -> Mapping[str, Any]:
        """The tier's, and `worker`."""
        return {**super().statistics(), "worker": {"mode": "inline", "state": "running"}}
