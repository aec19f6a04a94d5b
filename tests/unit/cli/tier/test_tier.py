"""`varve tier` on a fake admin port."""

import argparse
from collections.abc import Mapping
from typing import Any

import pytest

from cli.connection import CommandError
from cli.tier import tier
from tests.fakes.kafka.library_clients import FakeCluster
from tests.unit.cli.commands import Outcome, Shell
from tests.unit.cli.tier.test_tier_picture import row

PAGE: dict[str, Any] = {
    "clusterId": "c",
    "location": "s3://b/",
    "copyPaused": False,
    "fetchPaused": False,
    "bucketOwner": "c",
}
REPORT: dict[str, Any] = {
    "isOurs": True,
    "owner": "c",
    "objects": 14,
    "objectBytes": 1024,
    "removedObjects": 3,
    "removedBytes": 2048,
    "abortedUploads": 1,
    "youngObjects": 0,
    "hiddenObjects": 0,
    "missingSegments": 0,
}
VERIFIED: dict[str, Any] = {"segments": 2, "bytes": 4096, "faulty": [], "unread": []}


SKIPPED: dict[str, Any] = {
    "topic": "t",
    "partition": 3,
    "start": 20,
    "end": 30,
    "bytes": 2048,
    "problem": "the batch fails its CRC",
    "keptAs": "/d/t-3/20.log.skipped",
    "done": False,
}


class FakeAdmin:
    """Answers by path; `refusals` by topic."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/tier": PAGE | {"partitions": [row()]},
            "/tier/gc": REPORT,
            "/tier/verify": VERIFIED,
            "/tier/skip": SKIPPED,
        }
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.unknown: set[str] = set()

    def __call__(self, address: str, method: str, path: str, query: Mapping[str, str]) -> Any:
        assert address == "127.0.0.1:9644"
        self.asked.append((method, path, dict(query)))
        if query.get("topic") in self.unknown:
            raise CommandError("the broker refuses: no such partition with remote storage")
        return self.answers[path]


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def shell(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> Any:
    typed = Shell(tier, FakeCluster().admin, capsys)

    def run(*words: str) -> Outcome:
        return typed(*words, ask=admin)

    return run


def test_skip_only_tells_until_it_is_told_to(admin: FakeAdmin, shell: Any) -> None:
    out = shell("skip", "t-3").out
    assert "t-3: offsets 20 to 29, 2.0 KiB: the batch fails its CRC" in out
    assert "nothing is changed yet: add --start 20 --execute" in out
    shell("skip", "t-3", "--start", "20")
    admin.answers["/tier/skip"] = SKIPPED | {"done": True}
    assert (
        "kept beside the log, as /d/t-3" in shell("skip", "t-3", "--start", "20", "--execute").out
    )
    asked = [query for _, path, query in admin.asked if path == "/tier/skip"]
    which = {"topic": "t", "partition": "3"}
    assert asked == [which, which, which | {"start": "20"}]
    assert shell("skip", "t-3", "--execute").status == 2
    assert shell("skip", "t").status == 2
    assert '"end": 30' in shell("skip", "t-3", "--json").out


def test_ls_shows_partitions_of_both_tiers(admin: FakeAdmin, shell: Any) -> None:
    """One line each; of one topic if asked."""
    admin.answers["/tier"]["partitions"] = [
        row(),
        row(topic="u", copyPaused=True, fetchPaused=True),
        {"topic": "v", "partition": 0, "ready": False},
    ]
    lines = shell("ls").out.splitlines()
    assert lines[0] == "object store s3://b/"
    assert lines[1].split() == (
        ["PARTITION", "START", "LOCAL", "START", "END", "SEGMENTS", "REMOTE", "LOCAL"]
    )
    assert lines[2].split() == ["t-3", "0", "50", "100", "3", "1.0", "MiB", "512", "B"]
    assert lines[3].endswith("copying paused, reading paused")
    assert lines[4].endswith("metadata is being read")
    assert [r["topic"] for r in shell("ls", "--topic", "u", "--json").document] == ["u"]
    admin.answers["/tier"]["partitions"] = []
    assert shell("ls").out.splitlines()[1] == "no partition has remote storage"


def test_ls_says_what_is_out_of_the_ordinary(admin: FakeAdmin, shell: Any) -> None:
    """In the first line."""
    admin.answers["/tier"] |= {
        "bucketOwner": "other",
        "claimMissing": True,
        "copyPaused": True,
        "fetchPaused": True,
        "stalledCopies": 2,
        "faults": [{}],
    }
    head = shell("ls").out.splitlines()[0]
    for said in ("claimed by cluster other", "copying is paused", "reading is paused"):
        assert said in head
    assert "its claim is missing: nothing is copied or removed there" in head
    assert "2 copies do not move" in head
    assert "1 segment damaged" in head


def test_describe_draws(admin: FakeAdmin, shell: Any) -> None:
    """Plain where nobody looks; JSON if asked."""
    done = shell("describe", "t-3")
    assert admin.asked == [("GET", "/tier", {"topic": "t", "partition": "3"})]
    assert done.out.startswith("t-3   1.0 MiB remote")
    assert shell("describe", "t", "--json").document[0]["topic"] == "t"


def test_a_topic_may_be_called_like_a_partition(admin: FakeAdmin, shell: Any) -> None:
    """Then it is asked for by its whole name."""
    admin.unknown = {"orders"}
    assert shell("describe", "orders-2024").status == 0
    assert admin.asked[-1][2] == {"topic": "orders-2024"}
    admin.unknown |= {"orders-2024"}
    refused = shell("describe", "orders-2024")
    assert (refused.status, refused.out) == (1, "")
    assert "no such partition" in refused.err


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("a", {"topic": "a"}),
        ("a-b", {"topic": "a-b"}),
        ("a-1", {"topic": "a", "partition": "1"}),
        ("a-1:2", {"topic": "a-1", "partition": "2"}),
        ("a-1:", {"topic": "a-1"}),
    ],
)
def test_partitions_are_written_as_directories_are(text: str, asked: dict[str, str]) -> None:
    """Or with a colon."""
    assert tier.topic_and_partition(text) == asked


@pytest.mark.parametrize("text", ["", "a:b", "bad name", ":1"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    """By the options' parser."""
    with pytest.raises(argparse.ArgumentTypeError):
        tier.topic_and_partition(text)


def test_verify_tells_damage_with_its_place(admin: FakeAdmin, shell: Any) -> None:
    """And ends with status 1."""
    assert shell("verify", "t") == (0, "read 2 segments, 4.0 KiB\n", "")
    assert admin.asked[-1] == ("POST", "/tier/verify", {"topic": "t"})
    segment = {"topic": "t", "partition": 0, "start": 5, "end": 9}
    faults = [
        {"key": "k.log", "position": 77, "problem": "flipped"},
        {"key": "k", "position": -1, "problem": "missing"},
    ]
    admin.answers["/tier/verify"] = VERIFIED | {
        "faulty": [segment | {"faults": faults}],
        "unread": ["t-0 x: 503"],
    }
    done = shell("verify", "t")
    assert done.status == 1
    assert done.err.splitlines() == [
        "varve: t-0 5..9: k.log at byte 77: flipped",
        "varve: t-0 5..9: k: missing",
        "varve: not read: t-0 x: 503",
    ]
    assert shell("verify", "t", "--json").document["unread"] == ["t-0 x: 503"]
    assert shell("verify").status == 2


def test_gc_tells_what_it_did(admin: FakeAdmin, shell: Any) -> None:
    """Or would do."""
    assert shell("gc").out == (
        "listed 14 objects, 1.0 KiB; removed 3 objects, 2.0 KiB, 1 unfinished upload\n"
    )
    assert "would remove 3" in shell("gc", "--dry-run").out
    assert [query for _, _, query in admin.asked] == [{}, {"dry-run": "true"}]
    assert shell("gc", "--json").document["objects"] == 14


def test_gc_complains_of_what_is_missing_or_not_ours(admin: FakeAdmin, shell: Any) -> None:
    """With status 1."""
    admin.answers["/tier/gc"] = REPORT | {
        "missingSegments": 2,
        "isOurs": False,
        "owner": "other",
        "youngObjects": 1,
        "hiddenObjects": 4,
    }
    done = shell("gc")
    assert done.status == 1
    assert "1 object younger than" in done.out
    assert "4 objects of partitions that this broker does not have" in done.out
    assert "2 segments missing" in done.err
    assert "claimed by cluster other" in done.err
    assert shell("gc", "--json").status == 1
