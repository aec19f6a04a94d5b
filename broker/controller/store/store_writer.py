"""Commits changes that each must be whole, as few transactions as their size allows.

A thousand new topics are a thousand `Unit`s of two or three operations: packed up to the store's
limits they are some twenty transactions instead of a thousand, and no unit is ever split.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from broker.controller.store.metadata_store import (
    OPERATION_OVERHEAD,
    REQUEST_SIZE_MAX,
    TXN_OPERATIONS_MAX,
    Compare,
    Operation,
    Put,
    StoreError,
    TxnResult,
)

OPERATIONS_MAX: Final = TXN_OPERATIONS_MAX - 2
"""Of one list of a transaction; one is left to a `WriteSequence`, one to the controller's guard."""


class ConflictError(StoreError):
    """What the change was planned on has changed meanwhile; nothing was done."""


class NotControllerError(StoreError):
    """Only the controller changes the cluster's state, and this broker is not it; nothing done."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Operations that are carried out together, if all of `compare` holds."""

    compare: tuple[Compare, ...]
    operations: tuple[Operation, ...]

    @property
    def size(self) -> int:
        """Bytes it takes of a transaction, at most."""
        total = 0
        for condition in self.compare:
            total += OPERATION_OVERHEAD + len(condition.key.encode())
            total += len(condition.operand) if isinstance(condition.operand, bytes) else 0
        for operation in self.operations:
            total += OPERATION_OVERHEAD + len(operation.key.encode())
            total += len(operation.value) if isinstance(operation, Put) else 0
        return total


@dataclass(slots=True)
class Outcome:
    """What was committed.

    Attributes:
        errors: One per unit, None when it is committed.
        revision: The store's after the last transaction; 0 when none succeeded.
    """

    errors: list[StoreError | None]
    revision: int = 0


class Transactions(Protocol):
    """What units are committed with: a `MetadataStore`, or a `WriteSequence` on one."""

    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        """As `MetadataStore.txn`."""
        ...


class StoreWriter:
    """Packs units into transactions and runs them one after the other."""

    def __init__(self, store: Transactions) -> None:
        self._store = store

    async def commit(self, units: Sequence[Unit]) -> Outcome:
        """Commit what can be committed; never raises a `StoreError`, but reports it per unit."""
        outcome = Outcome(errors=[None] * len(units))
        for first, packed in _packs(units):
            await self._commit_pack(first, packed, outcome)
        return outcome

    async def _commit_pack(self, first: int, units: Sequence[Unit], outcome: Outcome) -> None:
        try:
            result = await self._store.txn(
                compare=[condition for unit in units for condition in unit.compare],
                then=[operation for unit in units for operation in unit.operations],
            )
        except StoreError as error:
            outcome.errors[first : first + len(units)] = [error] * len(units)
            return
        if not result.succeeded:
            if len(units) > 1:
                # One of them is in the way of the others: find out which.
                for offset, unit in enumerate(units):
                    await self._commit_pack(first + offset, [unit], outcome)
                return
            outcome.errors[first] = ConflictError("changed by another writer in the same moment")
            return
        outcome.revision = result.revision


def _packs(units: Sequence[Unit]) -> Iterator[tuple[int, list[Unit]]]:
    first = 0
    pack: list[Unit] = []
    conditions = operations = size = 0
    for index, unit in enumerate(units):
        full = (
            conditions + len(unit.compare) > OPERATIONS_MAX
            or operations + len(unit.operations) > OPERATIONS_MAX
            or size + unit.size > REQUEST_SIZE_MAX
        )
        if pack and full:
            yield first, pack
            first, pack = index, []
            conditions = operations = size = 0
        pack.append(unit)
        conditions += len(unit.compare)
        operations += len(unit.operations)
        size += unit.size
    if pack:
        yield first, pack
