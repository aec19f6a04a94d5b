"""The context of one request."""

from broker.network.connection_info import ConnectionInfo


class RequestContext:
    """A request's header, peer and arrival, for its handler.

    `started_ms` is monotonic; `flexible_response` says which response header goes out.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "flexible_response",
        "started_ms",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        connection: ConnectionInfo,
        started_ms: float = 0.0,
        flexible_response: bool = False,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.started_ms = started_ms
        self.flexible_response = flexible_response
