"""A group as `varve groups describe` shows it, whichever kind it is."""

from dataclasses import asdict, dataclass

from cli.table import ranges


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member and the partitions it was given, by topic."""

    member_id: str
    instance_id: str | None
    """Of a static member (KIP-345)."""
    client_id: str
    host: str
    assignment: dict[str, tuple[int, ...]]
    target: dict[str, tuple[int, ...]] | None = None
    """What the coordinator wants it to have; None in a classic group and in a share group."""
    epoch: int | None = None
    """Of the member; None in a classic group."""
    protocol: str | None = None
    """`classic`, `consumer` or `share`; a group that migrates has the first two; or None."""

    @property
    def assignment_text(self) -> str:
        """`first:0-3,7 second:0`."""
        return _partitions_text(self.assignment)

    @property
    def target_text(self) -> str:
        """As `assignment_text`."""
        return _partitions_text(self.target or {})


def _partitions_text(assignment: dict[str, tuple[int, ...]]) -> str:
    return " ".join(f"{topic}:{ranges(held)}" for topic, held in assignment.items())


@dataclass(frozen=True, slots=True)
class OffsetDescription:
    """A partition the group has committed or has been given."""

    topic: str
    partition: int
    committed: int | None
    """Of a share group the start offset: below it all is done."""
    end_offset: int | None
    """None where the partition is gone or has no leader, and of share groups."""
    lag: int | None
    client_id: str | None
    """Whose assignment it is part of."""
    member_id: str | None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group of any kind."""

    group: str
    state: str
    protocol_type: str
    protocol: str
    """The assignor its members agreed on; empty without members."""
    coordinator: str
    """Broker id with host and port."""
    members: tuple[MemberDescription, ...]
    offsets: tuple[OffsetDescription, ...]
    type: str = "classic"
    epoch: int | None = None
    """Of the group; None for a classic group."""
    target_epoch: int | None = None
    """Of the target assignment."""

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)
