"""Descriptors: what is shared out is never more than there is, and the limit goes up at start."""

import subprocess
import sys

import pytest

from storage.environment.descriptors import RESERVED_MIN, UNLIMITED, share_out


@pytest.mark.parametrize("limit", [70, 128, 256, 1_024, 4_096, 65_536, UNLIMITED])
def test_shares_are_within_the_limit(limit: int) -> None:
    shares = share_out(limit)
    assert shares.files + shares.connections <= limit - RESERVED_MIN
    assert 0 < shares.pooled <= shares.files
    assert shares.connections > 0


def test_only_a_low_limit_is_worth_a_word() -> None:
    assert share_out(1_024).is_low
    assert not share_out(100_000).is_low
    assert str(share_out(256)) == (
        "256 open files (ulimit -n): at most 96 connections and 96 log files at once"
    )


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    """In a process of its own: what it does cannot be undone."""
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))\n"
        "from storage.environment.descriptors import descriptor_limit, raise_descriptor_limit\n"
        "assert descriptor_limit() == 100\n"
        "assert raise_descriptor_limit() == 300 == descriptor_limit()\n"
        "assert raise_descriptor_limit() == 300\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
