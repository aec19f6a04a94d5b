"""How a run of a simulated cluster ended."""

from dataclasses import dataclass, field

from tests.simulation.faults.nemesis import Fault


@dataclass
class Outcome:
    """How a run ended.

    Attributes:
        violation: None: everything held.
        virtual_s: How long the run was, of it `quiet_s` between episodes.
        struck: How many faults have happened.
        violated_s: When it was found, from the start of the faults.
        cleaned: Records of a compacted topic that readers did not find any more, of all reads.
        shared: Records that a share group has accepted.
        moved: Logs that have changed their directory.
        left: Transactions that were left open; `timed_out` were aborted by their coordinators.
        held_back: Times that a replica had to wait for a throttle.
        added: Partitions that were added to the topic.
        moves: Moves between brokers that have begun; of them `replaced` by another, and `given_up`.
        unclean: Elections that were, of a topic that allows them.
        points: Crash points passed, by broker and kind.
        has_crashed: The crash point that was asked for was reached.
        done: Faults as they happened.
        lines: Of the brokers' logs.
        state: Of everything, when a violation was found.
    """

    seed: int
    plan: list[Fault]
    violation: str | None = None
    trace: int = 0
    handles: int = 0
    virtual_s: float = 0.0
    quiet_s: float = 0.0
    struck: int = 0
    acked: int = 0
    lone_acks: int = 0
    read: int = 0
    committed: int = 0
    aborted: int = 0
    unknown: int = 0
    commits: int = 0
    fetches: int = 0
    checks: int = 0
    copied: int = 0
    remote_removed: int = 0
    deleted: int = 0
    shared: int = 0
    cleaned: int = 0
    unclean: int = 0
    moved: int = 0
    left: int = 0
    timed_out: int = 0
    held_back: int = 0
    added: int = 0
    moves: int = 0
    replaced: int = 0
    given_up: int = 0
    violated_s: float = 0.0
    points: dict[tuple[int, str], int] = field(default_factory=dict)
    has_crashed: bool = False
    done: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
