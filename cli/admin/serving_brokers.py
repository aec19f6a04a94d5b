"""Requests to the brokers that serve, in a cluster where others are down.

Metadata names a broker for some seconds after its end, in Kafka until its session ends. The client
library sends a request to any broker of Metadata, or to all of them, and fails when one refuses the
connection: just when an operator asks what has happened.
"""

from typing import Any

from typing_extensions import override

from cli.admin.kafka_library import KafkaAdminClient, KafkaError


class ServingAdminClient(KafkaAdminClient):  # type: ignore[misc]  # the library has no types
    """The library's admin client, without the brokers that are fenced."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        try:
            self._serving = self._find_serving()
        except KafkaError:
            self.close()
            raise

    def _find_serving(self) -> list[int]:
        """Node ids of the brokers that are not fenced.

        The library does not choose a broker again that has just refused, and goes on with the one
        that has answered: so later requests to any broker do not fail either.

        Raises:
            KafkaError: No broker answers.
        """
        for _ in range(len(self._manager.cluster.brokers())):
            try:
                return self._unfenced()
            except KafkaError:
                # Another one is asked next.
                continue
        return self._unfenced()

    def _unfenced(self) -> list[int]:
        brokers = self.describe_cluster()["brokers"]
        # Brokers before DescribeCluster v2 name no fenced ones.
        return [one["broker_id"] for one in brokers if not one.get("is_fenced", False)]

    @override
    def describe_log_dirs(self, topic_partitions: Any = None, brokers: Any = None) -> Any:
        return super().describe_log_dirs(
            topic_partitions, self._serving if brokers is None else brokers
        )

    @override
    def list_groups(self, broker_ids: Any = None, **filters: Any) -> Any:
        return super().list_groups(self._serving if broker_ids is None else broker_ids, **filters)

    @override
    def list_transactions(self, broker_ids: Any = None, **filters: Any) -> Any:
        return super().list_transactions(
            self._serving if broker_ids is None else broker_ids, **filters
        )
