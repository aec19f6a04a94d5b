"""Compile the sources that have changed, each into a shared object beside them."""

import os
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from native.sources import FLAGS, NAMES, built_folder, library_path, source_path

COMPILE_SECONDS_MAX: Final = 120

NO_COMPILER: Final = (
    "no C compiler was found (CC, cc, gcc, clang): Python does the work instead, more slowly. "
    "On Debian and Ubuntu: apt-get install gcc libc6-dev"
)


class BuildError(Exception):
    """A source could not be compiled; the sentence says why."""


def find_compiler(environment: Mapping[str, str]) -> list[str] | None:
    """The command of a C compiler: `CC` if it is set, else the first one there is."""
    chosen = shlex.split(environment.get("CC", ""))
    if chosen:
        return chosen if shutil.which(chosen[0], path=environment.get("PATH")) else None
    # The one that Python was built by may have flags for another machine.
    usual = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
    for name in (*usual, "cc", "gcc", "clang"):
        if shutil.which(name, path=environment.get("PATH")):
            return [name]
    return None


def build(
    name: str, environment: Mapping[str, str], *, extra_flags: tuple[str, ...] = ()
) -> tuple[Path, bool]:
    """Compile one source, if that was not done.

    Args:
        name: Of `native.sources.NAMES`.
        environment: Where `CC` and `PATH` are looked up.
        extra_flags: For tests: warnings as errors, sanitizers. Then it is always compiled, and not
            to where it is loaded from.

    Returns:
        The shared object, and whether it was compiled now.

    Raises:
        BuildError: No compiler, or it failed.
        OSError: The folder cannot be written.
    """
    target = library_path(name)
    if extra_flags:
        target = target.with_suffix(".try.so")
    elif target.exists():
        return target, False
    compiler = find_compiler(environment)
    if compiler is None:
        raise BuildError(NO_COMPILER)
    target.parent.mkdir(exist_ok=True)
    # Under another name until it is whole: another process may be loading it, or compiling it, too.
    part = target.with_suffix(f".{os.getpid()}.part")
    command = [*compiler, *FLAGS, *extra_flags, "-o", str(part), str(source_path(name))]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMPILE_SECONDS_MAX,
            env=dict(environment),
        )
        if done.returncode:
            raise BuildError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
        part.replace(target)
    except subprocess.TimeoutExpired:
        raise BuildError(f"{shlex.join(command)} took more than {COMPILE_SECONDS_MAX} s") from None
    finally:
        part.unlink(missing_ok=True)
    if not extra_flags:
        _remove_older(name, target)
    return target, True


def _remove_older(name: str, target: Path) -> None:
    """What belonged to the old source; a process that has it loaded keeps it."""
    platform = target.name.rsplit("-", 1)[0]
    for path in built_folder().glob(f"{platform}-*.so"):
        if path != target:
            path.unlink(missing_ok=True)


def build_all(environment: Mapping[str, str]) -> list[tuple[Path, bool]]:
    """Compile every source that has changed; raises as `build`."""
    return [build(name, environment) for name in NAMES]


__all__ = ["NO_COMPILER", "BuildError", "build", "build_all", "find_compiler"]
