"""Options of the broker client: bootstrap servers and timeouts."""

from typing import NamedTuple


class BrokerOptions(NamedTuple):
    """Pickled to executors; there is no secret in it.

    Attributes:
        bootstrap_servers: `host:port,host:port`, as `kafka.bootstrap.servers`.
        client_id: Shown by the broker, and what its quotas go by.
        connect_timeout_ms: Until a connection is made; and, while other brokers can be asked, until
            it is answered for the first time.
        request_timeout_ms: Until an answer is there.
        retry_timeout_ms: How long errors that pass by themselves (a leader that changes, a broker
            that starts) are tried again, from the first one on.
        bootstrap_timeout_ms: Instead of it, as long as no broker of the list has ever answered.
        retry_backoff_ms: Between two attempts, doubled up to ten times as much.
        fetch_max_wait_ms: How long a broker may wait for records that are not there yet.
        fetch_max_bytes: Of one answer; a batch that is larger comes all the same.
    """

    bootstrap_servers: str
    client_id: str = "varve-pipeline"
    connect_timeout_ms: int = 5_000
    request_timeout_ms: int = 30_000
    retry_timeout_ms: int = 60_000
    bootstrap_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
