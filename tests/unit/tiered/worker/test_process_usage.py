"""Memory and CPU from /proc."""

import os
from pathlib import Path

from tiered.worker.process_usage import Usage, read_usage

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def test_reads_what_linux_writes(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "statm").write_text("100 42 3 1 0 9 0\n")
    fields = " ".join(str(number) for number in range(3, 53))
    (folder / "stat").write_bytes(b"7 (a) b\xff (c) " + fields.encode())
    # utime and stime are the 14th and 15th field of all, the 12th and 13th after the name.
    assert read_usage(7, str(tmp_path)) == Usage(42 * PAGE, (14 + 15) / TICKS)


def test_nothing_there_is_none(tmp_path: Path) -> None:
    assert read_usage(7, str(tmp_path)) is None
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "statm").write_text("")
    (tmp_path / "7" / "stat").write_text("")
    assert read_usage(7, str(tmp_path)) is None


def test_of_this_process() -> None:
    usage = read_usage(os.getpid())
    assert usage is None or (usage.resident_bytes > 1_000_000 and usage.cpu_seconds > 0)
