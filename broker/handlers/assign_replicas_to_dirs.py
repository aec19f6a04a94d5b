"""AssignReplicasToDirs (API key 73), version 0: brokers say in which log directory replicas lie.

Behaviour:
- Served by the active controller, for brokers only; NOT_CONTROLLER elsewhere.
- Each replica is judged by itself (`broker.controller.active.replica_assignments`). One that is in
  a log directory which does not work leads no longer, and leaves the ISR.

Versions:
- 0   KIP-858
"""

import asyncio
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ASSIGN_REPLICAS_TO_DIRS
VERSIONS = (0, 0)
FOR_BROKERS_ONLY = True


def handle(
    services: "Services", _context: "RequestContext", request: AssignReplicasToDirsRequest
) -> "asyncio.Future[AssignReplicasToDirsResponse]":
    """Have the controller write it down.

    The future raises ApiError: NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED.
    """
    return asyncio.ensure_future(services.active_controller.assign_replicas(request))
