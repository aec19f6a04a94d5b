"""Compiling modules: when it is done, what stays, and what is said where it cannot be done."""

import ctypes
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from native.build import NO_COMPILER, BuildError, find_compiler
from native.build_modules import NO_MYPYC, build_modules
from native.stamp import STAMP
from tests.unit.native import small_project

needs_compiler = pytest.mark.skipif(
    find_compiler(os.environ) is None, reason="there is no C compiler"
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with its build; tests take copies."""
    root = tmp_path_factory.mktemp("small") / "project"
    small_project.make(root)
    done = small_project.run(root, "-m", "native")
    assert done.returncode == 0, done.stdout + done.stderr
    return root


@pytest.fixture
def project(compiled: Path, tmp_path: Path) -> Path:
    """A copy of the project and its build."""
    return shutil.copytree(compiled, tmp_path / "project")


def builds(root: Path) -> list[Path]:
    return sorted((root / "native" / "built").glob("modules-*"))


def damage(path: Path, at: int, content: bytes) -> None:
    """Other bytes, the same size."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


@needs_compiler
def test_a_fresh_build_is_what_runs(project: Path) -> None:
    """Every module of it, and it gives the same."""
    assert small_project.say(project) == ["compiled (3 modules)", "large True True", "c"]
    assert small_project.say(project, VARVE_NATIVE="off") == [
        "python (VARVE_NATIVE=off)",
        "large False False",
        "python",
    ]


@needs_compiler
def test_functions_are_called_and_inlined_within_the_library(project: Path) -> None:
    """It shows nothing but its start: what may be replaced from outside cannot be inlined."""
    library = ctypes.CDLL(str(next(builds(project)[0].glob("*.so"))))
    assert hasattr(library, "PyInit_varve__mypyc")
    assert not hasattr(library, "CPyDef_draw___draw")


@needs_compiler
def test_the_second_time_there_is_nothing_to_do(project: Path) -> None:
    """Not even for a compiler; and where it is only asked for if possible, not even a line."""
    before = builds(project)
    done = small_project.run(project, "-m", "native")
    assert done.returncode == 0
    assert f"{before[0].name} is up to date" in done.stdout
    assert small_project.run(project, "-m", "native", "--if-possible").stdout == ""
    assert builds(project) == before


@needs_compiler
@pytest.mark.parametrize("name", [pytest.param("shapes", marks=pytest.mark.merge), "limits"])
def test_a_changed_source_is_never_run_as_it_was(project: Path, name: str) -> None:
    """Also one that is not compiled, whose constant is copied into what is; the size stays.

    A second later: within one, Python takes its own bytecode of `limits` for fresh.
    """
    path = project / "area" / f"{name}.py"
    times = path.stat()
    path.write_text(path.read_text().replace("<=", "<").replace("MAX: Final = 4", "MAX: Final = 5"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 10**9))
    code, said, _ = small_project.say(project)
    assert code == f"python (area/{name}.py is not as it was compiled; `make native` compiles)"
    assert said == f"{'small' if name == 'limits' else 'large'} False False"
    before = builds(project)
    assert small_project.run(project, "-m", "native").returncode == 0
    assert small_project.say(project)[0] == "compiled (3 modules)"
    assert small_project.say(project)[1].split()[0] == said.split()[0]
    assert len(builds(project)) == 1
    assert builds(project) != before


@needs_compiler
def test_a_changed_source_in_c_is_compiled_again(project: Path) -> None:
    """And until then Python runs, of all modules."""
    source = project / "native" / "kind.c"
    source.write_text(source.read_text().replace('"c"', '"C"'))
    code, said, kind = small_project.say(project)
    assert code.startswith("python (native/kind.c is not as it was compiled")
    assert (said, kind) == ("large False False", "python")
    killed = project / "native" / "built" / ".part-killed"
    killed.mkdir()
    (killed / "half.o").touch()
    done = small_project.run(project, "-m", "native")
    assert "without the compiler" not in done.stdout
    assert small_project.say(project) == ["compiled (3 modules)", "large True True", "C"]
    assert not killed.exists(), "what a killed compiler left stays for ever"


@needs_compiler
def test_the_same_contents_are_fresh_whatever_their_time(project: Path) -> None:
    """As after an installation, or in another clone."""
    for path in project.rglob("*.py"):
        os.utime(path, (1, 1))
    assert small_project.say(project)[0] == "compiled (3 modules)"


@needs_compiler
@pytest.mark.merge
def test_a_comment_needs_no_compiler(project: Path) -> None:
    """What mypyc writes is the same, so the objects are taken over."""
    with (project / "area" / "shapes.py").open("a") as source:
        source.write("\n# The end.\n")
    done = small_project.run(project, "-m", "native")
    assert "without the compiler" in done.stdout
    assert small_project.say(project)[0] == "compiled (3 modules)"


@needs_compiler
def test_what_does_not_load_leaves_python_at_work(project: Path) -> None:
    """Damaged, cut off, or without its stamp."""
    (build,) = builds(project)
    (library,) = build.glob("varve__mypyc.*.so")
    damage(library, 0, b"no ELF file")
    code, said, _ = small_project.say(project)
    assert code.startswith(f"python ({build.name} does not load: ")
    assert said == "large False False"
    library.write_bytes(b"short")
    assert "is not as it was compiled" in small_project.say(project)[0]
    (build / STAMP).write_bytes(b"{}")
    assert "has no stamp of this version" in small_project.say(project)[0]


@needs_compiler
@pytest.mark.merge
def test_what_does_not_load_is_compiled_again(project: Path) -> None:
    (build,) = builds(project)
    (library,) = build.glob("varve__mypyc.*.so")
    library.write_bytes(b"short")
    assert small_project.run(project, "-m", "native").returncode == 0
    assert small_project.say(project)[0] == "compiled (3 modules)"


@needs_compiler
def test_another_pythons_build_is_not_tried(project: Path) -> None:
    """It is said that there is one."""
    (build,) = builds(project)
    build.rename(build.with_name(build.name.replace("cpython-3", "cpython-2")))
    assert "for another Python than" in small_project.say(project)[0]


@needs_compiler
def test_what_is_required_is_there_or_an_error(project: Path) -> None:
    """No program goes on with less than it was asked for."""
    assert small_project.say(project, VARVE_NATIVE="require")[0] == "compiled (3 modules)"
    shutil.rmtree(project / "native" / "built")
    done = small_project.run(project, "-c", small_project.SAY, VARVE_NATIVE="require")
    assert "VARVE_NATIVE=require, but the code is python (nothing is compiled" in done.stderr


@needs_compiler
def test_all_modules_are_compiled_or_none(project: Path) -> None:
    """One that was imported as Python before keeps all others from being compiled."""
    done = small_project.run(project, "-c", f"import area.shapes\n{small_project.SAY}")
    assert done.stdout.splitlines() == [
        "python (area.shapes was imported before)",
        "large False False",
        "python",
    ]


@needs_compiler
@pytest.mark.merge
def test_a_build_that_is_used_is_not_removed(project: Path) -> None:
    """A process may still import from it; the next build removes it."""
    (old,) = builds(project)
    with (old / STAMP).open("rb") as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        with (project / "area" / "limits.py").open("a") as source:
            source.write("\n# One.\n")
        assert small_project.run(project, "-m", "native").returncode == 0
        assert len(builds(project)) == 2
        assert small_project.say(project)[0] == "compiled (3 modules)"
    with (project / "area" / "limits.py").open("a") as source:
        source.write("\n# Two.\n")
    assert small_project.run(project, "-m", "native").returncode == 0
    assert len(builds(project)) == 1


@needs_compiler
def test_what_mypyc_refuses_is_said_in_its_words(project: Path) -> None:
    """And the build that there was stays."""
    before = builds(project)
    with (project / "area" / "draw.py").open("a") as source:
        source.write('\n\nSIDES: int = "three"\n')
    done = small_project.run(project, "-m", "native", "--if-possible")
    assert done.returncode == 1
    assert "area/draw.py:11: error: Incompatible types in assignment" in done.stderr
    assert builds(project) == before
    assert not list((project / "native" / "built").glob(".part-*"))


def test_without_compiler_or_mypyc_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That names what to install; nothing is written."""
    monkeypatch.setattr("native.sources.FOLDER", tmp_path)
    with pytest.raises(BuildError, match="no C compiler was found") as caught:
        build_modules({"PATH": "/nonexistent"})
    assert str(caught.value) == NO_COMPILER
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(BuildError) as caught:
        build_modules(os.environ)
    assert str(caught.value) == NO_MYPYC
    assert list(tmp_path.iterdir()) == []
