"""Compile the modules of `native.modules`, if what they were compiled from has changed.

A build is made beside the others and renamed when it is whole and has been loaded once, so a
process that loads meanwhile has the old one or the new one. One build at a time: the second waits,
and finds the work done.
"""

import fcntl
import importlib.metadata
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from native import modules
from native import stamp as stamps
from native.build import NO_COMPILER, BuildError, find_compiler
from native.imports import closure
from native.modules import COMPILED, IN_C, ROOT
from native.mypyc_run import FLAGS, OPTIMIZATION
from native.sources import built_folder

LIST: Final = Path(modules.__file__)
"""Says what is compiled, so it decides, too."""

BUILD_SECONDS_MAX: Final = 1800

_PART: Final = ".part-"

NO_MYPYC: Final = (
    "mypyc is not installed: Python runs the modules as they are, more slowly. "
    "`make native` installs it into .venv; elsewhere: pip install --group build"
)

NO_HEADERS: Final = (
    "Python.h is missing: Python runs the modules as they are, more slowly. "
    "On Debian and Ubuntu: apt-get install python3-dev"
)


class ModulesBuild(NamedTuple):
    """Where the build is, and what had to be done for it.

    Attributes:
        folder: Of the shared objects and their stamp.
        is_new: Whether something was done now.
        is_compiled: Whether that needed the compiler.
    """

    folder: Path
    is_new: bool
    is_compiled: bool


def build_modules(environment: Mapping[str, str], root: Path = ROOT) -> ModulesBuild:
    """Compile the modules, if that was not done.

    Args:
        environment: Where `CC` and `PATH` are looked up.
        root: The folder of the packages.

    Raises:
        BuildError: No compiler, no mypyc, or one of them failed.
        OSError: The folder cannot be written.
    """
    built = built_folder()
    tools = tools_of(environment)
    fresh = _fresh(built, root, tools)
    if fresh is not None:
        return ModulesBuild(fresh, False, False)
    compiler = _compiler(environment)
    built.mkdir(exist_ok=True)
    with _one_at_a_time(built):
        fresh = _fresh(built, root, tools)
        if fresh is not None:
            return ModulesBuild(fresh, False, False)
        done = _build(built, root, tools, {**environment, "CC": shlex.join(compiler)})
        _remove_older(built, done.folder)
        return done


def tools_of(environment: Mapping[str, str]) -> str:
    """What decides the outcome beside the sources; empty where there is no mypyc."""
    try:
        mypy = importlib.metadata.version("mypy")
    except importlib.metadata.PackageNotFoundError:
        return ""
    compiler = shlex.join(find_compiler(environment) or [])
    words = ["Python", sys.version.split()[0], "mypy", mypy, compiler, f"-O{OPTIMIZATION}", *FLAGS]
    return " ".join([*words, environment.get("CFLAGS", "")]).strip()


def _compiler(environment: Mapping[str, str]) -> list[str]:
    import sysconfig

    if not importlib.util.find_spec("mypyc"):
        raise BuildError(NO_MYPYC)
    compiler = find_compiler(environment)
    if compiler is None:
        raise BuildError(NO_COMPILER)
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise BuildError(NO_HEADERS)
    return compiler


def _fresh(built: Path, root: Path, tools: str) -> Path | None:
    """A build of the sources as they are, by the tools that are here."""
    for folder in stamps.build_folders(built):
        if not stamps.is_for_this_python(folder):
            continue
        stamp = stamps.read_stamp((folder / stamps.STAMP).read_bytes())
        if (
            stamp is not None
            and stamp.tools == tools
            and tuple(stamp.modules) == (*COMPILED, *IN_C)
            and not stamps.first_change(stamp, root, folder)
        ):
            return folder
    return None


@contextmanager
def _one_at_a_time(built: Path) -> Iterator[None]:
    with open(built / ".lock", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(built: Path, root: Path, tools: str, environment: Mapping[str, str]) -> ModulesBuild:
    sources = {
        str(path.relative_to(root)): stamps.look_at(path)
        for path in (LIST, *closure(COMPILED, root).values(), *(root / at for at in IN_C.values()))
    }
    older = [
        path
        for path in stamps.build_folders(built)
        if stamps.is_for_this_python(path) and _same_tools(path, tools)
    ]
    for left in built.glob(f"{_PART}*"):
        # Of a compiler that was killed: it does not run any more, the lock is ours.
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PART, dir=built) as part:
        said = _run(
            ["native.mypyc_run", part, str(root / ".build" / "mypyc"), *map(str, older)],
            root,
            environment,
        )
        outcome = json.loads(said.splitlines()[-1])
        objects = Path(part, "objects")
        found = {
            str(path.relative_to(objects)): path.stat().st_size
            for path in sorted(objects.rglob("*.so"))
        }
        by_name = {name: f"{name.replace('.', '/')}.{stamps.ABI}.so" for name in (*COMPILED, *IN_C)}
        missing = [name for name, path in by_name.items() if path not in found]
        if missing:
            raise BuildError(f"{', '.join(missing)}: not compiled")
        stamp = stamps.Stamp(tools, outcome["code"], sources, found, by_name)
        changed = stamps.first_change(stamp, root, objects)
        if changed:
            raise BuildError(f"{changed} was changed while it was compiled: compile again")
        stamps.write_stamp(objects, stamp)
        _run(["native.try_modules", str(objects)], root, environment)
        words = [
            tools,
            outcome["code"],
            *(f"{path} {each.sha256}" for path, each in sources.items()),
        ]
        target = built / f"{stamps.PREFIX}{stamps.ABI}-{stamps.digest_of(words)}"
        shutil.rmtree(target, ignore_errors=True)
        objects.rename(target)
    return ModulesBuild(target, True, bool(outcome["compiled"]))


def _same_tools(folder: Path, tools: str) -> bool:
    stamp = stamps.read_stamp((folder / stamps.STAMP).read_bytes())
    return stamp is not None and stamp.tools == tools


def _run(words: list[str], root: Path, environment: Mapping[str, str]) -> str:
    """Run one of our modules in a process of its own; returns what it printed."""
    command = [sys.executable, "-m", *words]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=root,
            timeout=BUILD_SECONDS_MAX,
            env={**environment, "VARVE_NATIVE": "off"},
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{words[0]} took more than {BUILD_SECONDS_MAX} s") from None
    if done.returncode:
        raise BuildError(f"{words[0]} failed:\n{done.stdout.strip()}\n{done.stderr.strip()}")
    return done.stdout


def _remove_older(built: Path, target: Path) -> None:
    """Builds for this Python that no process uses."""
    for folder in stamps.build_folders(built):
        if folder == target or not stamps.is_for_this_python(folder):
            continue
        with open(folder / stamps.STAMP, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            (folder / stamps.STAMP).unlink()
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["NO_MYPYC", "ModulesBuild", "build_modules", "tools_of"]
