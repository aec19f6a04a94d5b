"""Transactions and producer ids."""

from config.definition import Settings, config_key, count, milliseconds, size
from config.kinds import Boolean


class TransactionSettings(Settings):
    """The transaction coordinator and `__transaction_state`."""

    transaction_max_timeout_ms: int = config_key(
        "transaction.max.timeout.ms",
        milliseconds(1, bits=32),
        default=900_000,
        text="Longest transaction timeout a producer may ask for; a longer one is answered with "
        "INVALID_TRANSACTION_TIMEOUT.",
        source="KIP-98",
    )
    transactional_id_expiration_ms: int = config_key(
        "transactional.id.expiration.ms",
        milliseconds(1, bits=32),
        default=604_800_000,
        text="Time without use after which a transactional id expires; one with an open "
        "transaction does not.",
        source="KIP-98",
    )
    transaction_state_log_num_partitions: int = config_key(
        "transaction.state.log.num.partitions",
        count(1, "partitions"),
        default=50,
        text="Partitions of `__transaction_state`; must not change once the topic is there.",
        source="KIP-98",
    )
    transaction_state_log_replication_factor: int = config_key(
        "transaction.state.log.replication.factor",
        count(1, "replicas", bits=16),
        default=1,
        text="Replicas of `__transaction_state`.",
        source="KIP-98",
        difference="Kafka's default is 3, which a single node cannot meet; a larger number is "
        "lowered to the number of brokers there are.",
    )
    transaction_state_log_min_isr: int = config_key(
        "transaction.state.log.min.isr",
        count(1, "replicas"),
        default=1,
        text="In-sync replicas that `__transaction_state` needs for a write.",
        source="KIP-98",
        difference="Kafka's default is 2, which a single node cannot meet.",
    )
    transaction_state_log_segment_bytes: int = config_key(
        "transaction.state.log.segment.bytes",
        size(1),
        default=104_857_600,
        text="Segment size of `__transaction_state`.",
        source="KIP-98",
    )
    transaction_state_log_load_buffer_size: int = config_key(
        "transaction.state.log.load.buffer.size",
        size(1),
        default=5_242_880,
        text="Bytes read at a time when a coordinator loads its transactions.",
        source="KIP-98",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = config_key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        milliseconds(1, bits=32),
        default=10_000,
        text="How often transactions that have exceeded their timeout are aborted. A "
        "transaction may outlive its timeout by this much.",
        source="KIP-98",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = config_key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        milliseconds(1, bits=32),
        default=3_600_000,
        text="How often expired transactional ids are removed.",
        source="KIP-98",
    )
    transaction_partition_verification_enable: bool = config_key(
        "transaction.partition.verification.enable",
        Boolean(),
        default=True,
        text="Check that a partition is part of the transaction before a transactional batch is "
        "appended.",
        source="KIP-890",
        dynamic=True,
    )
    transaction_two_phase_commit_enable: bool = config_key(
        "transaction.two.phase.commit.enable",
        Boolean(),
        default=False,
        text="Allow transactions that outlive their client.",
        source="KIP-939",
        difference="Accepted; InitProducerId v6, with which clients ask for it, is not stable yet.",
    )
