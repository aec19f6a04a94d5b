"""What replicas have held at any time: one leader epoch and one offset name one batch for ever.

A batch that was cut may be replaced by one of another epoch, never of the same: see KAFKA-10527.
Files are read when a broker was killed, before it starts again, and at the end.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.cluster.replicas import COMPACTED, batches_of


class Ledger:
    """Digests of batches, by topic id and partition, leader epoch and offset."""

    def __init__(self) -> None:
        self._known: dict[str, dict[tuple[int, int], bytes]] = {}
        self.findings: list[Anomaly] = []

    @property
    def size(self) -> int:
        """How many batches it has seen."""
        return sum(map(len, self._known.values()))

    def read(self, node: str, data_directory: Path) -> None:
        """Take in what a broker's directory holds now; topics that are compacted are left out."""
        for directory in sorted(data_directory.glob("*-*")):
            topic, _, index = directory.name.rpartition("-")
            if not index.isdigit() or topic in COMPACTED:
                continue
            self.findings += self._read(node, directory)

    def forget(self, topic: str) -> None:
        """Nothing of a topic is kept any more."""
        for name in [name for name in self._known if name.partition(" ")[0].startswith(topic)]:
            del self._known[name]

    def _read(self, node: str, directory: Path) -> Iterator[Anomaly]:
        try:
            name = f"{directory.name} {(directory / 'partition.metadata').read_text()}"
        except FileNotFoundError:  # it is being made, or removed
            return
        known = self._known.setdefault(name, {})
        for batch in batches_of(directory):
            at = (batch.leader_epoch, batch.base_offset)
            if known.setdefault(at, batch.digest) != batch.digest:
                yield Anomaly(
                    "epoch-offset-reuse",
                    f"{directory.name}@{batch.base_offset} of epoch {batch.leader_epoch}: "
                    f"{node} has another batch than was seen before",
                )
