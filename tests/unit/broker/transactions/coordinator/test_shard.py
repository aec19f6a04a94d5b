"""What is known of one partition."""

import pytest

from broker.transactions.coordinator import shard
from broker.transactions.coordinator.shard import TooManyTransactionalIdsError
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata
from tests.harness.transactions import FakeStateLog, new_shard


def metadata(name: str) -> TransactionMetadata:
    return TransactionMetadata(name, 1, timeout_ms=1, last_update_timestamp_ms=1)


def test_new_ones_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "TRANSACTIONAL_IDS_MAX", 2)
    known = new_shard(FakeStateLog())
    for name in ("a", "b", "c"):
        known.transactions[name] = metadata(name)
    with pytest.raises(TooManyTransactionalIdsError):
        known.add(metadata("d"))
    known.remove("a")
    known.remove("b")
    known.remove("b")
    known.add(metadata("d"))
    assert sorted(known.transactions) == ["c", "d"]
