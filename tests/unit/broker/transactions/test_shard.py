"""What is known of one partition."""

from typing import Any

import pytest

from broker.transactions import shard
from broker.transactions.shard import TooManyTransactionalIdsError, TransactionShard
from broker.transactions.transaction_metadata import TransactionMetadata


def metadata(name: str) -> TransactionMetadata:
    return TransactionMetadata(name, 1, timeout_ms=1, last_update_timestamp_ms=1)


def test_new_ones_have_a_limit_and_loaded_ones_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "TRANSACTIONAL_IDS_MAX", 2)
    known: Any = TransactionShard(0, 0, log=None)  # type: ignore[arg-type]  # nothing is written
    for name in ("a", "b", "c"):
        known.add_loaded(metadata(name))
    with pytest.raises(TooManyTransactionalIdsError):
        known.add(metadata("d"))
    known.remove("a")
    known.remove("b")
    known.remove("b")
    known.add(metadata("d"))
    assert sorted(known.transactions) == ["c", "d"]
