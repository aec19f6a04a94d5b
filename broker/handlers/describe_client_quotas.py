"""DescribeClientQuotas (API key 48), versions 0 to 1.

Behaviour:
- There are no client quotas, so no entity has any: an empty list, as Kafka answers where none were
  set. `kafka-configs --describe --entity-type users` and administration consoles ask for it.
- A filter that cannot be is refused as by Kafka (INVALID_REQUEST; UNSUPPORTED_VERSION for an entity
  that is not known), without entries.

Versions:
- 0  KIP-546
- 1  flexible

Source: Kafka, ClientQuotasImage.java.
"""

from typing import TYPE_CHECKING, Final

from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_CLIENT_QUOTAS
VERSIONS = (0, 1)

IP: Final = "ip"
ENTITY_TYPES: Final = frozenset({IP, "user", "client-id"})
EXACT: Final = 0
MATCH_TYPES: Final = {EXACT: "MATCH_TYPE_EXACT", 1: "MATCH_TYPE_DEFAULT", 2: "MATCH_TYPE_SPECIFIED"}


def handle(
    _services: "Services", _context: "RequestContext", request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Check the filter, and say that nothing matches."""
    try:
        _check(request.components)
    except ApiError as error:
        return DescribeClientQuotasResponse(
            error_code=int(error.code), error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse()


def _check(components: list[ComponentData]) -> None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in seen:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        name = MATCH_TYPES.get(component.match_type)
        if name is None:
            raise _invalid(f"Unknown match type {component.match_type}")
        if component.match_type == EXACT and component.match is None:
            raise _invalid(f"Request specified {name}, but set match string to null.")
        if component.match_type != EXACT and component.match is not None:
            raise _invalid(f"Request specified {name}, but also specified a match string.")
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
