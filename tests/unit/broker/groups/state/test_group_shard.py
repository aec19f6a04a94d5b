"""One partition's groups."""

import pytest

from broker.groups.classic.classic_group import create_classic_group
from broker.groups.classic.classic_group_state import ClassicGroupState
from broker.groups.state import group_shard as shard_module
from broker.groups.state.group_shard import TooManyGroupsError
from tests.harness.groups import Harness


def test_new_group_is_empty_and_dated() -> None:
    h = Harness()
    group = create_classic_group(h.shard, "g")
    assert h.shard.groups == {"g": group}
    assert group.state is ClassicGroupState.EMPTY
    assert group.current_state_timestamp_ms == h.clock.now_ms()


def test_removed_group_is_dead() -> None:
    h = Harness()
    group = create_classic_group(h.shard, "g")
    h.shard.remove_group(group)
    assert group.state is ClassicGroupState.DEAD
    assert not h.shard.groups


def test_loaded_groups_are_never_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the log: only new ones are limited."""
    monkeypatch.setattr(shard_module, "GROUPS_MAX", 1)
    h = Harness()
    other = create_classic_group(h.shard, "a")
    with pytest.raises(TooManyGroupsError):
        create_classic_group(h.shard, "b")
    other.group_id = "b"
    h.shard.add_loaded_group(other)
    assert set(h.shard.groups) == {"a", "b"}
