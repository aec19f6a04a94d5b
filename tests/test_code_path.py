"""What runs on both paths, and how `tests.tiers` asks for it."""

from pathlib import Path

from native.modules import COMPILED, IN_C, ROOT
from tests import tiers
from tests.code_path import EQUIPMENT, MIRRORS, modules_on_both
from tests.pytest_runs import End, worst


def test_tests_of_compiled_modules_run_on_both_paths() -> None:
    """Every folder that mirrors a compiled one is there; others count by what they import."""
    modules = modules_on_both()
    assert {path.parent for path in modules} >= {path for path in MIRRORS if path.is_dir()}
    assert Path("tests/unit/storage/log/test_read.py") in modules
    assert Path("tests/unit/broker/handlers/test_produce.py") in modules
    assert Path("tests/golden/test_golden.py") in modules
    assert Path("tests/unit/config/test_reference.py") not in modules
    assert "storage.log.read" in COMPILED


def test_a_clock_and_a_disk_are_no_sign_of_the_hot_path() -> None:
    """Tests of anything have them; their own tests run on both paths, as they mirror them."""
    modules = modules_on_both()
    assert Path("tests/contract/test_object_store.py") not in modules
    assert Path("tests/system/broker/test_restart.py") in modules
    assert frozenset(COMPILED) > EQUIPMENT
    folders = {Path("tests/unit", *name.split(".")[:-1]) for name in EQUIPMENT}
    assert {path.parent for path in modules} >= folders


def test_each_change_runs_compiled_what_has_a_compiled_subject() -> None:
    """The check before a merge has the others, too: what only reaches compiled modules."""
    modules = set(modules_on_both(of_each_change=True))
    assert modules < set(modules_on_both())
    named = {
        Path("tests/unit", *name.split(".")[:-1], f"test_{name.rpartition('.')[2]}.py")
        for name in (*COMPILED, *IN_C)
    }
    assert {path for path in named if (ROOT / path).is_file()} <= modules
    assert Path("tests/unit/storage/log/test_log_full_disk.py") in modules
    assert Path("tests/golden/test_golden.py") in modules
    assert Path("tests/system/broker/test_process.py") in modules
    assert Path("tests/unit/broker/handlers/test_metadata.py") not in modules
    assert Path("tests/unit/storage/log/recovery/test_log_crash.py") not in modules


def test_a_tier_asks_for_the_named_tests_that_reach_compiled_modules() -> None:
    """All of them where none is named; none where what is named reaches none."""
    modules = [str(ROOT / path) for path in modules_on_both()]
    assert tiers.on_both(["-x"]) == ["-x", *modules]
    of_each_change = [str(ROOT / path) for path in modules_on_both(of_each_change=True)]
    assert tiers.on_both([], of_each_change=True) == of_each_change
    assert tiers.on_both([str(ROOT / "tests/unit/config"), "-x"]) == []
    folder = ROOT / "tests/unit/storage/index"
    assert tiers.on_both([str(folder)]) == [path for path in modules if str(folder) in path]
    one = f"{folder}/test_reads.py::test_x"
    assert tiers.on_both([one, f"{ROOT}/tests/unit/config/test_reference.py"]) == [one]


def test_the_summary_says_which_path_ran() -> None:
    """And how each went."""
    ends = [
        End("compiled", 0, b"10 passed, 1 skipped in 61.00s", 61.0),
        End("python", 1, b"3 passed, 1 failed in 4.20s", 4.2),
    ]
    said = tiers.describe(ends)
    assert said == (
        "compiled: 10 passed, 1 skipped in 1:01 min; python: 3 passed, 1 failed in 0:04 min"
    )
    assert tiers.count(ends) == {"passed": 13, "skipped": 1, "failed": 1}
    assert worst(end.code for end in ends) == 1
