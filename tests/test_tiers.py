"""How `tests.tiers` tries again what failed, and what it compiles beside the tests."""

import gc
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from native.loader import CodePath
from tests import tiers
from tests.pytest_runs import FAILED, Batch, End


def try_twice(folder: Path, body: str, *arguments: str) -> End:
    """Run a module of tests that may count their runs in `RUNS`."""
    runs = folder / "runs"
    (folder / "test_runs.py").write_text(
        f"import pathlib\nimport pytest\nRUNS = pathlib.Path({str(runs)!r})\n"
        "def runs():\n"
        "    with RUNS.open('a') as file:\n        file.write('x')\n"
        "    return len(RUNS.read_text())\n" + body
    )
    command = ["-p", "no:cacheprovider", "--timeout", "300", *arguments, str(folder)]
    batch = Batch(lambda: [command], "fast", "python", "off")
    (end,) = tiers.run_twice([batch], silent_s=300)
    return end


@pytest.mark.parametrize(
    "processes",
    [pytest.param((), id="one"), pytest.param(("-n", "2"), id="two", marks=pytest.mark.merge)],
)
def test_what_passes_at_the_second_try_is_named(
    tmp_path: Path, processes: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the failed test runs again, and the first failure stays in what was printed."""
    body = (
        "def test_once():\n    assert runs() != 1, 'said once'\n"
        "def test_other():\n    pass\n"
        "@pytest.mark.skip\ndef test_skipped():\n    pass\n"
    )
    end = try_twice(tmp_path, body, *processes)
    assert (end.code, end.last) == (0, b"2 passed, 1 skipped")
    (test,) = end.second_try
    assert test.endswith("test_runs.py::test_once")
    said = capfd.readouterr().out
    assert "said once" in said
    assert f"-- python: a second try, alone: {test}" in said


def test_a_second_try_is_on_the_path_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that run side by side each tries its own failures again."""
    tried: list[tuple[str, list[list[str]]]] = []

    def fail(batches: list[Batch], *_: object) -> list[End]:
        for batch in batches:
            (command,) = batch.commands()
            Path(command[command.index("--failed-to") + 1]).write_text(f"test_of_{batch.path}\n")
        return [End(batch.path, FAILED, b"1 failed, 2 passed", 1.0) for batch in batches]

    def run(commands: list[list[str]], _profile: str, path: str, variable: str, _: float) -> End:
        tried.append((variable, commands))
        return End(path, 0 if path == "python" else FAILED, b"", 1.0)

    monkeypatch.setattr(tiers, "run_batches", fail)
    monkeypatch.setattr(tiers, "run", run)
    command = ["-p", "x", "--timeout", "1", "all"]
    batches = [
        Batch(lambda: [command], "fast", "python", "off"),
        Batch(lambda: [command], "fast", "compiled", "require"),
    ]
    ends = tiers.run_twice(batches, 60)
    assert tried == [
        ("off", [["-p", "x", "--timeout", "1", "test_of_python"]]),
        ("require", [["-p", "x", "--timeout", "1", "test_of_compiled"]]),
    ]
    assert [(end.code, end.second_try) for end in ends] == [(0, ("test_of_python",)), (FAILED, ())]


def test_what_fails_twice_has_failed(tmp_path: Path) -> None:
    """Also an error of a fixture; the counts are those of the first try."""
    body = (
        "@pytest.fixture\ndef broken():\n    assert runs() == 0\n"
        "def test_setup(broken):\n    pass\n"
        "def test_other():\n    pass\n"
    )
    end = try_twice(tmp_path, body)
    assert (end.code, end.second_try) == (1, ())
    assert (tmp_path / "runs").read_text() == "xx"
    assert tiers.count([end]) == {"passed": 1, "error": 1}


def test_many_failures_are_not_tried_again(tmp_path: Path) -> None:
    tests = "".join(
        f"def test_{number}():\n    assert runs() == 0\n"
        for number in range(tiers.SECOND_TRIES_MAX + 1)
    )
    assert try_twice(tmp_path, tests).code == 1
    assert (tmp_path / "runs").read_text() == "x" * (tiers.SECOND_TRIES_MAX + 1)


def test_the_deep_tier_has_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """It searches with inputs of its own: what fails there is a fault."""
    tried: list[str] = []

    def note(name: str) -> Callable[..., list[End]]:
        def run(*_: object) -> list[End]:
            tried.append(name)
            return [End("", 0, b"", 0.0)]

        return run

    for name in ("run_batches", "run_twice"):
        monkeypatch.setattr(tiers, name, note(name))
    for tier in tiers.TIERS.values():
        tiers.run_tier(tier, [], "fast", lambda: CodePath(0, "not asked for"))
    assert [name for name, _ in itertools.groupby(tried)] == ["run_twice", "run_batches"]


@pytest.mark.parametrize(
    ("arguments", "is_check", "leaves"),
    [([], False, True), ([], True, False), (["tests/unit/config"], False, False)],
)
def test_the_fast_tier_leaves_dear_tests_to_the_check(
    arguments: list[str], is_check: bool, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it runs alone and whole; it then also asks for less of what runs compiled."""
    compiled: list[bool] = []
    markers: list[str] = []

    def on_both(arguments: list[str], *, of_each_change: bool) -> list[str]:
        compiled.append(of_each_change)
        return [str(tiers.TESTS / "unit/storage/log/test_read.py")]

    def note(batches: list[Batch], *_: object) -> list[End]:
        for batch in batches:
            markers.extend(command[command.index("-m") + 1] for command in batch.commands())
        return []

    monkeypatch.setattr(tiers, "on_both", on_both)
    monkeypatch.setattr(tiers, "run_twice", note)
    monkeypatch.delenv("VARVE_NATIVE", raising=False)
    fast = tiers.TIERS["fast"]
    tiers.run_tier(fast, arguments, "fast", lambda: CodePath(1, ""), is_check=is_check)
    assert compiled == [leaves]
    assert set(markers) == {f"({fast.markers}) and not merge" if leaves else fast.markers}


def test_what_is_left_to_the_check_is_told() -> None:
    """With what covers it meanwhile: `docs/checking.md` names every module that has such tests."""
    told = (tiers.TESTS.parent / "docs" / "checking.md").read_text()
    table = told.partition("## Tests that `make test` leaves")[2].partition("\n## ")[0]
    named = set(re.findall(r"`tests/(\S+\.py)`", table))
    marked = {
        path.relative_to(tiers.TESTS).as_posix()
        for path in tiers.TESTS.rglob("test_*.py")
        if b"pytest.mark.merge" in path.read_bytes() and path != Path(__file__)
    }
    assert marked <= named
    assert all((tiers.TESTS / name).is_file() for name in named)


def test_the_collector_passes_by_what_was_collected() -> None:
    """It rests while that becomes more, and is on again when tests run."""
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
