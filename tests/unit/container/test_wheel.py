"""What is installed is the packages of the project, and the command."""

import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from native.loader import VARIABLE
from native.stamp import ABI
from tests.code_path import CODE

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

NOT_INSTALLED = (
    "protocol/codegen/",
    "broker/controller/store/etcd/generate.py",
    "native/wheel_hook.py",
)


def build(folder: Path, way: str) -> Path:
    """Build a wheel with `VARVE_NATIVE` set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, way)
        (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files of a freshly built wheel with nothing compiled; the texts of its metadata."""
    path = build(tmp_path_factory.mktemp("wheel"), "off")
    assert path.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as wheel:
        return {
            name: wheel.read(name).decode() if ".dist-info/" in name else ""
            for name in wheel.namelist()
        }


def test_the_wheel_holds_the_packages_and_nothing_else(names: dict[str, str]) -> None:
    """No tests, no benchmarks, no generator."""
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(PACKAGES)
    assert not [name for name in names if name.startswith(NOT_INSTALLED)]


def test_no_module_is_left_out(names: dict[str, str]) -> None:
    """A module that Git ignores by accident would be missing only where it is installed."""
    modules = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(NOT_INSTALLED)
    }
    assert modules - set(names) == set()


def test_compiled_parts_come_as_their_sources(names: dict[str, str]) -> None:
    """Such a wheel fits every machine; `python -m native` does the rest, if there is a compiler."""
    sources = {f"native/{path.name}" for path in (ROOT / "native").glob("*.c")}
    assert sources
    assert sources <= set(names)
    assert not [name for name in names if name.endswith((".so", ".o"))]


@pytest.mark.skipif(not CODE.modules, reason="nothing is compiled, or this run is not to have it")
def test_what_is_compiled_and_fresh_comes_with_it(tmp_path: Path) -> None:
    """A wheel for this Python and machine then: every module's shared object, and their stamp."""
    path = build(tmp_path, "require")
    assert not path.name.endswith("-any.whl")
    with zipfile.ZipFile(path) as wheel:
        compiled = [name for name in wheel.namelist() if name.startswith("native/built/modules-")]
    assert len([name for name in compiled if name.endswith(f".{ABI}.so")]) == CODE.modules + 1
    assert [name for name in compiled if name.endswith("/stamp.json")]


def test_the_command_and_the_licence_come_with_it(names: dict[str, str]) -> None:
    """`varve`, under Apache-2.0, and never to be uploaded."""
    metadata = next(text for name, text in names.items() if name.endswith("/METADATA"))
    entry_points = next(text for name, text in names.items() if name.endswith("/entry_points.txt"))
    assert "varve = cli.main:main" in entry_points
    assert "License-Expression: Apache-2.0" in metadata
    assert "Classifier: Private :: Do Not Upload" in metadata
    assert [name for name in names if name.endswith("/LICENSE")]
