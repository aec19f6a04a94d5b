"""What is installed is the packages of the project, and the command."""

import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

GENERATORS = ("protocol/codegen/", "broker/controller/store/etcd/generate.py")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files of a freshly built wheel; the texts of its metadata."""
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        return {
            name: wheel.read(name).decode() if ".dist-info/" in name else ""
            for name in wheel.namelist()
        }


def test_the_wheel_holds_the_packages_and_nothing_else(names: dict[str, str]) -> None:
    """No tests, no benchmarks, no generator."""
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(PACKAGES)
    assert not [name for name in names if name.startswith(GENERATORS)]


def test_no_module_is_left_out(names: dict[str, str]) -> None:
    """A module that Git ignores by accident would be missing only where it is installed."""
    modules = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(GENERATORS)
    }
    assert modules - set(names) == set()


def test_compiled_parts_come_as_their_sources(names: dict[str, str]) -> None:
    """Where there is a compiler `python -m native` makes the rest; a wheel fits every machine."""
    sources = {f"native/{path.name}" for path in (ROOT / "native").glob("*.c")}
    assert sources
    assert sources <= set(names)
    assert not [name for name in names if name.endswith((".so", ".o"))]


def test_the_command_and_the_licence_come_with_it(names: dict[str, str]) -> None:
    """`varve`, under Apache-2.0, and never to be uploaded."""
    metadata = next(text for name, text in names.items() if name.endswith("/METADATA"))
    entry_points = next(text for name, text in names.items() if name.endswith("/entry_points.txt"))
    assert "varve = cli.main:main" in entry_points
    assert "License-Expression: Apache-2.0" in metadata
    assert "Classifier: Private :: Do Not Upload" in metadata
    assert [name for name in names if name.endswith("/LICENSE")]
