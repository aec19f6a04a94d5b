"""All analyses of a history, and their report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.checker.anomalies import graph, groups, orders, shares, values
from tests.checker.anomalies.anomaly import ALLOWED, FORBIDDEN, Anomaly
from tests.checker.anomalies.versions import Versions, versions_of
from tests.checker.history import Op

EXAMPLES_MAX: Final = 5
"""So many of each kind are told in full."""

ANALYSES: Final[tuple[Callable[[Versions], Iterator[Anomaly]], ...]] = (
    values.inconsistent_offsets,
    values.duplicates,
    values.lost_writes,
    values.aborted_reads,
    values.precommitted_reads,
    values.torn_transactions,
    orders.poll_orders,
    orders.send_orders,
    orders.realtime_orders,
    graph.cycles,
    groups.committed_offsets,
    groups.ends,
    groups.outputs,
    shares.deliveries,
    shares.ends,
)


@dataclass(slots=True)
class Report:
    """What was found, and how much was looked at."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    read: int = 0
    delivered: int = 0
    notes: list[str] = field(default_factory=list)
    """What else was looked at."""

    def add(self, anomalies: Iterable[Anomaly]) -> None:
        """Take in what was found."""
        for anomaly in anomalies:
            self.counts[anomaly.kind] += 1
            told = self.examples.setdefault(anomaly.kind, [])
            if len(told) < EXAMPLES_MAX:
                told.append(anomaly.text)

    @property
    def forbidden(self) -> dict[str, int]:
        """Counts of what must never be."""
        return {kind: count for kind, count in sorted(self.counts.items()) if kind in FORBIDDEN}

    @property
    def allowed(self) -> dict[str, int]:
        """Counts of what Kafka's model allows."""
        return {kind: count for kind, count in sorted(self.counts.items()) if kind in ALLOWED}

    def text(self) -> str:
        """For people."""
        outcomes = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        lines = [f"history: {outcomes}"]
        lines.append(
            f"{self.sent} values sent, {self.read} reads, {self.delivered} shared deliveries"
        )
        lines += self.notes
        lines += [f"allowed: {kind} {count}" for kind, count in self.allowed.items()]
        for kind, count in self.forbidden.items():
            lines.append(f"ANOMALY {kind}: {count}")
            lines += [f"    {example}" for example in self.examples[kind]]
        lines.append(f"anomalies: {sum(self.forbidden.values())}")
        return "\n".join(lines)


def analyse(ops: Iterable[Op]) -> Report:
    """Run everything over a history."""
    versions = versions_of(ops)
    report = Report()
    for op in versions.ops:
        report.outcomes[f"{op.f} {op.outcome}"] += 1
        report.sent += len(op.sends)
        report.read += sum(len(read) for read in op.polls.values())
        report.delivered += sum(len(one) for one in op.value.get("deliveries", {}).values())
    for analysis in ANALYSES:
        report.add(analysis(versions))
    return report
