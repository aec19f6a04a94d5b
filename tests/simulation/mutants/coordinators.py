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


def timed_out_not_aborted() -> None:
    """A transaction whose producer is gone stays open until another of its id begins."""
    from broker.transactions.coordinator.expiry import Expiry

    async def nothing(_: Any) -> None:
        """Nor is any looked for."""

    replace(Expiry, "abort_timed_out", nothing)


def aborted_before_their_time() -> None:
    """A transaction is aborted after a tenth of its time-out."""
    from broker.transactions.coordinator.expiry import Expiry
    from broker.transactions.coordinator.transaction_state import TransactionState

    def is_timed_out(self: Expiry, metadata: Any) -> bool:
        return (
            metadata.state is TransactionState.ONGOING
            and metadata.pending is None
            and metadata.begun_ms + metadata.timeout_ms / 10 < self._clock.monotonic_ms()
        )

    replace(Expiry, "_is_timed_out", is_timed_out)


def added_partitions_not_assigned() -> None:
    """A group goes on with the partitions that its topics had when its members came."""
    from broker.groups.consumer.hash_refresh import HashRefresh

    replace(HashRefresh, "of", lambda _self, group: group.metadata_hash)
