"""Fencing of a transactional producer for the client library, which does not have it (KIP-360).

InitProducerId under the producer's id takes its place: its open transaction is aborted, and what it
sends from then on is refused. Kafka's Admin.fenceProducers and forceTerminateTransaction (KIP-1073)
do the same.
"""

from typing import Any, Final

from cli.admin.consumer_group_describe import AdminClient
from cli.admin.kafka_library import KafkaError
from cli.connection import answering

TRANSACTION_COORDINATOR: Final = 1
TIMEOUT_MS: Final = 1
"""The new epoch of this producer id has no user: what it might begin ends at once."""


class FencingAdminClient(AdminClient):
    """The commands' admin client, with the request it lacks."""

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Abort what the producer has open and refuse it from now on; its new (id, epoch).

        Raises:
            KafkaError: The coordinator cannot be found or asked, or refuses; retriable while the
                transaction is being aborted.
        """
        from kafka.errors import for_code
        from kafka.protocol.producer.transaction import InitProducerIdRequest

        async def ask() -> tuple[int, int]:
            found = await self._find_coordinator_ids(
                [transactional_id], key_type=TRANSACTION_COORDINATOR
            )
            request = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
            )
            response = await self._manager.send(request, node_id=found[transactional_id])
            if response.error_code:
                error: KafkaError = for_code(response.error_code)()
                raise error
            return response.producer_id, response.producer_epoch

        fenced: tuple[int, int] = self._manager.run(ask)
        return fenced


def open_fencing_admin(**settings: Any) -> Any:
    """A `FencingAdminClient`; raises CommandError when no broker listens."""
    settings["bootstrap_servers"] = answering(settings["bootstrap_servers"])
    return FencingAdminClient(**settings)
