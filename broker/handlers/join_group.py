"""JoinGroup (API key 11), versions 0 to 9.

Behaviour:
- Parked until all members have joined, at most for the rebalance timeout; the first time for
  `group.initial.rebalance.delay.ms`, longer while new members arrive.
- Only the leader's response lists the members with their metadata.

Versions:
- 1   rebalance timeout; before it is the session timeout
- 2   throttle time
- 4   a new dynamic member gets an id and has to join again with it      KIP-394
- 5   group instance id                                                  KIP-345
- 6   flexible
- 7   protocol type in the answer, protocol name may be null             KIP-559
- 8   reason                                                             KIP-800
- 9   a returning static leader skips the assignment                     KIP-814
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.JOIN_GROUP
VERSIONS = (0, 9)


def handle(
    services: "Services", context: "RequestContext", request: JoinGroupRequest
) -> "JoinGroupResponse | Answer[JoinGroupResponse]":
    """Join or rejoin a group."""
    return services.groups.join_group(context, request)
