"""Quota of replication: how fast replicas that are out of sync may catch up (KIP-73).

    leader's      bytes that it sends to followers   `leader.replication.throttled.rate`, of the
                                                     replicas in `leader.replication.throttled.
                                                     replicas`: partition:leader
    follower's    bytes that it fetches              `follower....rate`, partition:follower

What is counted are all bytes of throttled replicas. What is held back, while they are more than the
rate, are those of followers outside the ISR alone: else the throttle would make others fall out.

The rate is an average over the last `replication.quota.window.num` windows of
`replication.quota.window.size.seconds`, the one that has begun among them. An answer that has begun
is not cut: the average may be exceeded by one answer of each partition.

Without a rate, or without throttled replicas, nothing is counted.

Source: Kafka 4.2, ReplicationQuotaManager.scala, SimpleRate.java, TopicConfigHandler.scala.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from config.kinds import LONG_MAX

if TYPE_CHECKING:
    from config.topic import TopicConfig
    from storage.environment.clock import Clock
    from storage.types.topic_partition import TopicPartition

ALL: Final = ("*",)

WAIT_MIN_MS: Final = 20.0
WAIT_MAX_MS: Final = 1000.0
"""Bounds of a wait: by then the rate may be another, or the replica throttled no longer."""


def leader_replicas(config: "TopicConfig") -> tuple[str, ...]:
    """Replicas that are throttled where they are read."""
    return config.leader_replication_throttled_replicas


def follower_replicas(config: "TopicConfig") -> tuple[str, ...]:
    """Replicas that are throttled where they are written."""
    return config.follower_replication_throttled_replicas


class ReplicationQuota:
    """See the module. On the loop's thread only.

    Attributes:
        is_limited: Whether there is a rate; asked first, and nothing else while there is none.
        held_back: How often a replica had to wait.
    """

    __slots__ = (
        "_clock",
        "_node_id",
        "_of_topic",
        "_rate",
        "_replicas",
        "_samples",
        "_total",
        "_window_ms",
        "_windows",
        "held_back",
        "is_limited",
    )

    def __init__(
        self,
        clock: "Clock",
        node_id: int,
        replicas: "Callable[[TopicConfig], tuple[str, ...]]",
        *,
        windows: int = 11,
        window_seconds: int = 1,
    ) -> None:
        """Without a rate.

        Args:
            clock: For the windows.
            node_id: This broker, whose replicas are asked for.
            replicas: Reads the throttled ones from a topic's settings.
            windows: `replication.quota.window.num`.
            window_seconds: `replication.quota.window.size.seconds`.
        """
        self._clock = clock
        self._node_id = node_id
        self._replicas = replicas
        self._windows = windows
        self._window_ms = window_seconds * 1000.0
        self._rate = LONG_MAX
        # When each window began, and its bytes.
        self._samples: deque[tuple[float, int]] = deque()
        self._total = 0
        # What a topic's setting says of this broker, by its name; None: all partitions.
        self._of_topic: dict[str, tuple[tuple[str, ...], frozenset[int] | None]] = {}
        self.is_limited = False
        self.held_back = 0

    @property
    def rate(self) -> int:
        """Bytes per second; LONG_MAX without a limit."""
        return self._rate

    def set_rate(self, rate: int) -> None:
        """Limit to so many bytes per second."""
        self._rate = rate
        self.is_limited = rate < LONG_MAX
        if not self.is_limited:
            self._of_topic.clear()
            self._samples.clear()
            self._total = 0

    def covers(self, topic_partition: "TopicPartition", config: "TopicConfig") -> bool:
        """Whether a replica of this broker is throttled."""
        throttled = self._replicas(config)
        if not throttled:
            return False
        topic, index = topic_partition
        known = self._of_topic.get(topic)
        if known is None or (known[0] is not throttled and known[0] != throttled):
            known = self._of_topic[topic] = (throttled, _of_node(throttled, self._node_id))
        return known[1] is None or index in known[1]

    def record(self, size: int) -> None:
        """Count bytes of a throttled replica."""
        now_ms = self._clock.monotonic_ms()
        self._expire(now_ms)
        samples = self._samples
        self._total += size
        if samples and now_ms - samples[-1][0] < self._window_ms:
            began_ms, bytes_ = samples[-1]
            samples[-1] = (began_ms, bytes_ + size)
        else:
            samples.append((now_ms, size))

    @property
    def bytes_per_second(self) -> float:
        """The average."""
        now_ms = self._clock.monotonic_ms()
        self._expire(now_ms)
        return self._total * 1000.0 / self._elapsed_ms(now_ms)

    def wait_ms(self) -> float:
        """How long a replica that is out of sync has to wait; 0: it may go on."""
        now_ms = self._clock.monotonic_ms()
        self._expire(now_ms)
        elapsed_ms = self._elapsed_ms(now_ms)
        if self._total * 1000.0 <= self._rate * elapsed_ms:
            return 0.0
        self.held_back += 1
        if self._rate <= 0:
            return WAIT_MAX_MS
        until_ms = self._total * 1000.0 / self._rate - elapsed_ms
        return min(max(until_ms, WAIT_MIN_MS), WAIT_MAX_MS)

    def _elapsed_ms(self, now_ms: float) -> float:
        began_ms = self._samples[0][0] if self._samples else now_ms
        return max(now_ms - began_ms, self._window_ms)

    def _expire(self, now_ms: float) -> None:
        samples, oldest_ms = self._samples, now_ms - self._windows * self._window_ms
        while samples and samples[0][0] <= oldest_ms:
            self._total -= samples.popleft()[1]


def _of_node(throttled: tuple[str, ...], node_id: int) -> frozenset[int] | None:
    """Partitions of which the replica of a node is throttled; None: all."""
    if throttled == ALL:
        return None
    pairs = (word.split(":") for word in throttled)
    return frozenset(int(index) for index, node in pairs if int(node) == node_id)
