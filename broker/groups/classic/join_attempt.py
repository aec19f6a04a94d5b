"""One JoinGroup request."""

from broker.groups.classic.classic_group import JoinReply, Protocols
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


class JoinAttempt:
    """A JoinGroup request with its client's id, host and versions."""

    __slots__ = (
        "api_version",
        "client_host",
        "client_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
        "rebalance_timeout_ms",
        "reply",
        "session_timeout_ms",
    )

    def __init__(
        self,
        request: JoinGroupRequest,
        *,
        api_version: int,
        client_id: str,
        client_host: str,
        reply: JoinReply,
    ) -> None:
        self.api_version = api_version
        self.client_id = client_id
        self.client_host = client_host
        self.group_instance_id = request.group_instance_id
        self.session_timeout_ms = request.session_timeout_ms
        # Version 0 has no rebalance timeout.
        self.rebalance_timeout_ms = (
            request.rebalance_timeout_ms if api_version >= 1 else request.session_timeout_ms
        )
        self.protocol_type = request.protocol_type
        protocols: dict[str, bytes] = {}
        for protocol in request.protocols:
            protocols.setdefault(protocol.name, protocol.metadata)
        self.protocols: Protocols = tuple(protocols.items())
        self.reason = request.reason or "not provided"
        self.reply = reply

    def refuse(self, code: ErrorCode, member_id: str = "") -> None:
        """Answer with an error."""
        self.reply(JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None))
