"""Settings of the metadata manager; a broker takes the defaults."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """See the module.

    Attributes:
        snapshot_events: A snapshot is written after so many events of a metadata partition.
        snapshot_interval_ms: And so often, when there was anything new.
        retry_ms, retry_max_ms: After trouble: doubled up to the maximum.
        read_back_max_ms: How long an event that was written may take to be read back; Kafka's
            `remote.log.metadata.consume.wait.ms`.
        stop_max_ms: How long a stop waits for the last snapshots.
    """

    snapshot_events: int = 10_000
    snapshot_interval_ms: int = 300_000
    retry_ms: int = 100
    retry_max_ms: int = 5_000
    read_back_max_ms: int = 120_000
    stop_max_ms: int = 5_000
