"""A single node begins leader epochs where records may be lost."""

import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest


async def test_a_log_that_is_gone_begins_anew_in_another_leader_epoch(
    nodes: Any, tmp_path: Path
) -> None:
    """Else what remote storage has of the lost one would be taken for the records that come now.

    And a consumer that has read the old log goes on in the middle of the new one.
    """
    first = await nodes()
    await first.start()
    await first.create("t", 3, remote_storage_enable="true")
    await first.create("plain", 1)
    for index in range(3):
        first.append("t", index)
    first.close()
    for name in ("t-1", "plain-0"):
        shutil.rmtree(tmp_path / "data" / name)
    second = await nodes()
    await second.start()
    epochs = [p.leader_epoch for p in second.controller.image.topics["t"].partitions]
    assert epochs == [0, 1, 0]
    assert [second.append("t", index) for index in range(3)] == [1, 0, 1]
    assert second.log("t", 1).leader_epochs.entries() == [(1, 0)]
    assert second.log("t", 0).leader_epochs.entries() == [(0, 0)]
    assert second.controller.image.topics["plain"].partitions[0].leader_epoch == 1
    assert second.append("plain") == 0
    third = await nodes()
    await third.start()
    epochs = [p.leader_epoch for p in third.controller.image.topics["t"].partitions]
    assert epochs == [0, 1, 0]
    assert third.append("t", 1) == 1


async def test_a_log_that_is_gone_is_not_made_anew_when_its_epoch_cannot_be_raised(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await nodes()
    await first.start()
    await first.create("t", 1, remote_storage_enable="true")
    first.close()
    shutil.rmtree(tmp_path / "data" / "t-0")
    second = await nodes()

    async def refused(_lost: object) -> set[UUID]:
        return set()

    monkeypatch.setattr(second.controller, "begin_epochs", refused)
    await second.start()
    assert second.replicas.replica_of("t", 0) is None
