"""The kind of machine is said in one line, from what was measured beside the figures."""

import sys
from pathlib import Path

import pytest

from bench import calibration
from bench.calibration import calibrate, machine_line


def test_medians_and_spreads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(calibration, "congestion_control", lambda: "bbr")
    taken = [
        {"new_files_gb_s": 1.0, "memcpy_gb_s": 5.0},
        {"new_files_gb_s": 3.0, "memcpy_gb_s": 7.0},
        {"new_files_gb_s": 1.2, "memcpy_gb_s": 6.0},
    ]
    assert machine_line(taken) == (
        "Machine: 2 cores, TCP bbr; GB/s of new files 1.2 (1.0-3.0), memcpy 6.0 (5.0-7.0); "
        "median and spread over its pairs."
    )


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux says it")
def test_congestion_control_is_the_systems() -> None:
    told = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert calibration.congestion_control() == told


def test_without_figures_nothing_is_said() -> None:
    assert machine_line([]) == ""


def test_new_files_are_written_where_brokers_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of them is left."""
    seen = []
    written = calibration._write_new_file

    def write(directory: Path | None, block: bytes) -> float:
        seen.append((directory, len(block)))
        return written(directory, block)

    monkeypatch.setattr(calibration, "_write_new_file", write)
    monkeypatch.setattr(calibration, "NEW_FILE_BYTES", 4 << 20)
    assert calibrate(tmp_path).new_files_gb_s > 0
    assert seen == [(tmp_path, 1 << 20)]
    assert list(tmp_path.iterdir()) == []
