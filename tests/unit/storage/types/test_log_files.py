"""File names of a partition."""

import pytest

from storage.types.log_files import LogFileName, log_file_name, parse_log_file_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("00000000000000000042.log", (42, ".log", "")),
        ("00000000000000000000.timeindex.deleted", (0, ".timeindex", ".deleted")),
        ("09223372036854775807.snapshot", (2**63 - 1, ".snapshot", "")),
        ("00000000000000000007.txnindex.swap", (7, ".txnindex", ".swap")),
        ("00000000000000000007.index.cleaned", (7, ".index", ".cleaned")),
    ],
)
def test_names_go_both_ways(name: str, parts: tuple[int, str, str]) -> None:
    """Twenty digits, the kind, perhaps a stage."""
    assert parse_log_file_name(name) == LogFileName(*parts)
    assert log_file_name(*parts) == name


@pytest.mark.parametrize(
    "name",
    ["", "42.log", "leader-epoch-checkpoint", "00000000000000000042", "0000000000000000004x.log",
     "00000000000000000042.log.tmp", "00000000000000000042.txt", "-0000000000000000042.log",
     "\u06600000000000000000042.log", "00000000000000000042.log.deleted.swap"],
)  # fmt: skip
def test_other_files_are_left_alone(name: str) -> None:
    """They belong to no segment."""
    assert parse_log_file_name(name) is None
