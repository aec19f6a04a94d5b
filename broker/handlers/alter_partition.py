"""AlterPartition (API key 56), versions 2 to 3: leaders change the ISR of their partitions.

Behaviour:
- Served by the active controller, for brokers only; NOT_CONTROLLER elsewhere.
- Each partition is judged by itself (`broker.controller.active.isr_changes`); what waits at the
  same time is committed together, and answered when the controller's image has it.

Versions:
- 2   topic ids                                    KIP-841
- 3   a broker epoch for each member of the ISR    KIP-903
"""

import asyncio
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ALTER_PARTITION
VERSIONS = (2, 3)
FOR_BROKERS_ONLY = True


def handle(
    services: "Services", context: "RequestContext", request: AlterPartitionRequest
) -> "asyncio.Future[AlterPartitionResponse]":
    """Have the controller decide.

    The future raises ApiError: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
    """
    return asyncio.ensure_future(
        services.active_controller.alter_partition(request, context.api_version)
    )
