"""`varve tier rebuild-metadata` says what was told, and what is lost still."""

from typing import Any

from tests.unit.cli.tier.test_tier import FakeAdmin, admin, shell

__all__ = ["admin", "shell"]

REBUILT: dict[str, Any] = {
    "toldSegments": 3,
    "toldBytes": 3072,
    "partitions": 1,
    "knownSegments": 2,
    "hiddenSegments": 0,
    "deletedSegments": 0,
    "belowLogStart": 0,
    "problems": [],
    "problemCount": 0,
    "heldBack": {},
    "found": True,
}


def test_rebuilding_metadata_tells_what_was_told(admin: FakeAdmin, shell: Any) -> None:
    """Or would be."""
    admin.answers["/tier/rebuild-metadata"] = REBUILT
    done = shell("rebuild-metadata")
    assert (done.status, done.out) == (
        0,
        "published 3 segments of 1 partition, 3.0 KiB; 2 were known already\n",
    )
    assert "would publish 3" in shell("rebuild-metadata", "--dry-run").out
    shell("rebuild-metadata", "--accept-loss", "--below-log-start")
    assert [(method, query) for method, _, query in admin.asked] == [
        ("POST", {}),
        ("POST", {"dry-run": "true"}),
        ("POST", {"below-log-start": "true", "accept-loss": "true"}),
    ]


def test_rebuilding_metadata_complains_of_what_is_lost_still(admin: FakeAdmin, shell: Any) -> None:
    """With status 1; what is left alone is no trouble."""
    left = {"hiddenSegments": 4, "belowLogStart": 1}
    admin.answers["/tier/rebuild-metadata"] = REBUILT | left
    done = shell("rebuild-metadata")
    assert done.status == 0
    assert "skipped: 4 segments of topics that this broker does not have" in done.out
    assert "skipped: 1 segment below the log start offset" in done.out
    admin.answers["/tier/rebuild-metadata"] = REBUILT | {
        "problems": ["k: damaged"],
        "problemCount": 1,
        "heldBack": {"t-0": "lost"},
        "found": False,
    }
    done = shell("rebuild-metadata")
    assert done.status == 1
    assert "k: damaged" in done.err
    assert "t-0 waits still: lost" in done.err
    assert "--accept-loss" in done.err
