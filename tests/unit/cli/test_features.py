"""`varve features` on a fake cluster."""

from typing import Any

import pytest

from cli import features
from cli.admin.feature_updates import Refusal
from tests.unit.cli.commands import Shell


class FakeAdmin:
    """The library's admin client, as far as features go."""

    def __init__(self, **_settings: Any) -> None:
        self.updates: list[tuple[dict[str, Any], bool]] = []
        self.refusals: list[Refusal] = []

    def describe_features(self) -> dict[str, dict[str, Any]]:
        return {
            "transaction.version": {
                "supported": (0, 2),
                "finalized": (2, 2),
                "finalized_epoch": 9,
            },
            "group.version": {"supported": (0, 1)},
        }

    def update_feature_levels(
        self, updates: dict[str, Any], *, validate_only: bool
    ) -> list[Refusal]:
        self.updates.append((updates, validate_only))
        return self.refusals

    def close(self) -> None:
        pass


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def shell(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(features, lambda **_settings: admin, capsys)


def test_describe(shell: Shell) -> None:
    """A feature that is not finalised is at level 0."""
    assert shell("describe").cells == [
        ["FEATURE", "LOWEST", "HIGHEST", "LEVEL", "EPOCH"],
        ["group.version", "0", "1", "0", "-"],
        ["transaction.version", "0", "2", "2", "9"],
    ]
    assert [row["level"] for row in shell("describe", "--json").document] == [0, 2]


@pytest.mark.parametrize(
    ("words", "upgrade_type"),
    [(["upgrade"], 1), (["downgrade"], 2), (["downgrade", "--unsafe"], 3)],
)
def test_levels_change(shell: Shell, admin: FakeAdmin, words: list[str], upgrade_type: int) -> None:
    """Down only for who says so."""
    outcome = shell(*words, "transaction.version=1", "group.version=0")
    assert outcome.out == "transaction.version is at level 1\ngroup.version is at level 0\n"
    wanted = {"transaction.version": (upgrade_type, 1), "group.version": (upgrade_type, 0)}
    assert admin.updates == [(wanted, False)]


def test_a_dry_run(shell: Shell, admin: FakeAdmin) -> None:
    """The broker is asked, and nothing is done."""
    outcome = shell("upgrade", "group.version=1", "--dry-run")
    assert outcome.out == "group.version would be at level 1\n"
    assert admin.updates == [({"group.version": (1, 1)}, True)]
    assert shell("upgrade", "group.version=1", "--json").document == {
        "levels": {"group.version": 1},
        "dry_run": False,
    }


@pytest.mark.parametrize("text", ["group.version", "=1", "group.version=-1", "group.version=x"])
def test_mistaken_levels(shell: Shell, text: str) -> None:
    """Refused before anybody is asked."""
    assert shell("upgrade", text).status == 2


def test_the_brokers_reason_is_told(shell: Shell, admin: FakeAdmin) -> None:
    """Nothing is said to be done when all was refused."""
    admin.refusals = [Refusal(None, 95, "Since group.version is in use, it stays.")]
    outcome = shell("downgrade", "group.version=0", "transaction.version=1")
    assert (outcome.status, outcome.out) == (1, "")
    assert (
        outcome.err == "varve: Since group.version is in use, it stays (INVALID_UPDATE_VERSION)\n"
    )


def test_one_of_two_is_refused(shell: Shell, admin: FakeAdmin) -> None:
    """As brokers of old answer, one by one."""
    admin.refusals = [Refusal("group.version", 95, None)]
    outcome = shell("upgrade", "group.version=7", "transaction.version=2")
    assert (outcome.status, outcome.out) == (1, "transaction.version is at level 2\n")
    assert outcome.err.startswith("varve: feature 'group.version': ")
