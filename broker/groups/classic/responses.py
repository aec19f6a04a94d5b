"""Responses to a group's parked requests."""

from collections.abc import Iterable

from broker.groups.classic.classic_group import ClassicGroup, ClassicMember, SyncReply
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.sync_group import SyncGroupResponse


def joined(group: ClassicGroup, member: ClassicMember, *, members: bool) -> JoinGroupResponse:
    """JoinGroup's response to a member of the current generation; the list is for its leader."""
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=False,
        member_id=member.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=other.member_id,
                group_instance_id=other.group_instance_id,
                metadata=other.metadata(group.protocol_name),
            )
            for other in group.members.values()
        ]
        if members
        else [],
    )


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """SyncGroup's response to a member of a stable group."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def take_syncs(members: Iterable[ClassicMember]) -> list[tuple[SyncReply, ClassicMember]]:
    """Remove and return the parked SyncGroups; the caller has to answer them."""
    taken = []
    for member in members:
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            _restart_session(member)
            taken.append((reply, member))
    return taken


def _restart_session(member: ClassicMember) -> None:
    """Restart a member's session: it may have expired while the request was parked."""
    member.session.set(member.session_timeout_ms)


def answer_and_remove(group: ClassicGroup, member: ClassicMember) -> None:
    """Remove a member; its parked requests get UNKNOWN_MEMBER_ID, so that it joins again."""
    answer_join(group, member, ErrorCode.UNKNOWN_MEMBER_ID, member_id="")
    answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.member_id)


def answer_join(
    group: ClassicGroup,
    member: ClassicMember,
    code: ErrorCode,
    *,
    member_id: str | None = None,
) -> None:
    """Answer a parked JoinGroup, if there is one, with an error."""
    reply = member.join_reply
    if reply is not None:
        group.set_join_reply(member, None)
        reply(
            JoinGroupResponse(
                error_code=code,
                member_id=member.member_id if member_id is None else member_id,
                protocol_name=None,
            )
        )


def answer_sync(member: ClassicMember, code: ErrorCode) -> None:
    """Answer a parked SyncGroup, if there is one, with an error."""
    reply, member.sync_reply = member.sync_reply, None
    if reply is not None:
        _restart_session(member)
        reply(SyncGroupResponse(error_code=code))
