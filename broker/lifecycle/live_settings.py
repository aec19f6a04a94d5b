"""Settings that change at run time, for parts that exist before the controller does.

DynamicSettings ──a key has changed──> cleaner's limits, threads of the disks, log manager
"""

from typing import TYPE_CHECKING, Final

from broker.cleaning.process_cleaner import CLEANER_KEYS, limits_of
from storage.manager.log_manager import LogManagerSettings

if TYPE_CHECKING:
    from broker.cleaning.process_cleaner import ProcessCleaner
    from broker.node.dynamic_settings import DynamicSettings
    from broker.runtime.disk import Disks
    from config.broker import BrokerConfig
    from storage.environment.throttle import Throttle
    from storage.manager.log_manager import LogManager

READ_LATER_KEYS: Final = (
    "log.cleaner.backoff.ms",
    "log.cleaner.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Settings that are read when they are needed."""

DISK_THREADS_MIN: Final = 4


def disk_threads(settings: "BrokerConfig") -> int:
    """Threads of each log directory, and of what lies in none."""
    return max(DISK_THREADS_MIN, settings.background_threads)


def follow_settings(
    dynamic: "DynamicSettings",
    *,
    disk: "Disks",
    manager: "LogManager",
    cleaners: "ProcessCleaner | None",
    cleaner_throttle: "Throttle",
) -> None:
    """Pass changes on from now on.

    Args:
        dynamic: What changes.
        disk: Resized with `background.threads`.
        manager: Of the logs.
        cleaners: Processes that clean logs; None: threads do.
        cleaner_throttle: Of the bytes that cleaners read and write.
    """

    def set_cleaner_limits(settings: "BrokerConfig") -> None:
        cleaner_throttle.set_rate(settings.log_cleaner_io_max_bytes_per_second)
        manager.compaction.update_cleaner(LogManagerSettings.of(settings))
        if cleaners is not None:
            cleaners.set_limits(limits_of(settings))

    dynamic.subscribe(CLEANER_KEYS, lambda _, after: set_cleaner_limits(after))
    dynamic.subscribe(
        ["transaction.partition.verification.enable"],
        lambda _, after: manager.require_verification(
            after.transaction_partition_verification_enable
        ),
    )
    dynamic.subscribe(["background.threads"], lambda _, after: disk.resize(disk_threads(after)))
    dynamic.subscribe(
        ["producer.id.expiration.ms"],
        lambda _, after: manager.expire_producers_after(after.producer_id_expiration_ms),
    )
    dynamic.read_later(READ_LATER_KEYS)
