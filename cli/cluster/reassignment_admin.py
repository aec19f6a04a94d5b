"""UnregisterBroker (KIP-631), and refusals with reasons: the client library has neither."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from cli.admin import kafka_schemas
from cli.admin.consumer_group_describe import AdminClient
from cli.admin.kafka_library import TopicPartition
from cli.connection import answering

with warnings.catch_warnings():
    # The library reads message schemas by a deprecated call.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.admin import AlterPartitionReassignmentsRequest
    from kafka.protocol.api_message import ApiMessage

    class UnregisterBrokerRequest(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""

    class UnregisterBrokerResponse(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""


Refused = dict[tuple[str, int], tuple[int, str | None]]
"""Error code and reason, by topic and partition."""

TIMEOUT_MS = 30_000


class ReassignmentAdminClient(AdminClient):
    """The commands' admin client, with the requests it lacks."""

    def reassign(self, wanted: Mapping[tuple[str, int], Sequence[int] | None]) -> Refused:
        """Have partitions moved to other replicas, None: back; what was refused, and why.

        Raises:
            KafkaError: The controller cannot be asked.
        """
        topics = self._process_alter_partition_reassignments_input(
            {TopicPartition(*name): replicas for name, replicas in wanted.items()}
        )
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)

        async def ask() -> Any:
            return await self._send_request_to_controller(request)

        answer = self._manager.run(ask)
        refused = {
            (topic.name, one.partition_index): (one.error_code, one.error_message)
            for topic in answer.responses
            for one in topic.partitions
            if one.error_code
        }
        if answer.error_code:
            refused |= dict.fromkeys(wanted, (answer.error_code, answer.error_message))
        return refused

    def unregister_broker(self, broker: int) -> tuple[int, str | None]:
        """Forget a broker that is gone for good; error code and reason.

        Raises:
            KafkaError: The controller cannot be asked.
        """

        async def ask() -> Any:
            return await self._send_request_to_controller(UnregisterBrokerRequest(broker_id=broker))

        answer = self._manager.run(ask)
        return answer.error_code, answer.error_message


def open_reassignment_admin(**settings: Any) -> Any:
    """A `ReassignmentAdminClient`; raises CommandError when no broker listens."""
    settings["bootstrap_servers"] = answering(settings["bootstrap_servers"])
    return ReassignmentAdminClient(**settings)
