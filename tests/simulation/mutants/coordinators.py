"""Bugs of coordinators."""

from typing import Any

from tests.checker.mutation.seeding import replace


def coordinator_not_reloaded() -> None:
    """A coordinator goes on with its state in a newer epoch, whoever was it in between."""
    from broker.coordinator.elected_appender import ElectedAppender
    from broker.coordinator.election import ElectionState
    from broker.coordinator.runtime import CoordinatorRuntime

    on_elected = CoordinatorRuntime.on_elected
    on_resigned = CoordinatorRuntime.on_resigned

    def is_kept(self: CoordinatorRuntime[Any], partition: int) -> bool:
        known = self._elections.get(partition)
        return known is not None and known.state is ElectionState.ACTIVE

    def keeping(self: CoordinatorRuntime[Any], partition: int, leader_epoch: int) -> None:
        if is_kept(self, partition):
            self._elections[partition].leader_epoch = leader_epoch
        else:
            on_elected(self, partition, leader_epoch)

    def staying(
        self: CoordinatorRuntime[Any], partition: int, leader_epoch: int | None = None
    ) -> None:
        if not is_kept(self, partition):
            on_resigned(self, partition, leader_epoch)

    def append(self: ElectedAppender, *arguments: Any, **named: Any) -> int:
        named.setdefault("timeout_ms", self._timeout_ms)
        return self._replicas.append_coordinated(*arguments, **named)

    replace(CoordinatorRuntime, "on_elected", keeping)
    replace(CoordinatorRuntime, "on_resigned", staying)
    replace(ElectedAppender, "append_coordinated", append)


def share_states_forgotten() -> None:
    """A share coordinator begins with no states after an election."""
    from tests.checker.mutation.share_mutants import state_not_replayed

    state_not_replayed()


def share_states_not_written() -> None:
    """One acknowledgement in five of a share group is answered and not written."""
    from tests.checker.mutation.share_mutants import state_not_written

    state_not_written()
