"""Which compiled files belong into a wheel."""

from collections.abc import Mapping
from pathlib import Path

from native import stamp as stamps
from native.loader import VARIABLE, WAYS, CompiledCodeError
from native.sources import NAMES, library_path


def wheel_files(built: Path, root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Compiled files for this Python and machine, and where they belong in the wheel.

    Args:
        built: The folder of builds.
        root: The folder of the packages.
        environment: Where `VARVE_NATIVE` is looked up.

    Returns:
        Empty where the modules are not compiled, or not as they are now: a shared library in C
        alone makes no wheel that is for one machine.

    Raises:
        CompiledCodeError: There are none, and `VARVE_NATIVE` is `require`; or it is no such word.
    """
    way = environment.get(VARIABLE) or WAYS[0]
    if way not in WAYS:
        raise CompiledCodeError(f"{VARIABLE}={way} is none of {', '.join(WAYS)}")
    if way == "off":
        return {}
    folder = _fresh(built, root)
    if folder is None:
        if way == "require":
            raise CompiledCodeError(f"{VARIABLE}=require, but no fresh build is in {built}")
        return {}
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    modules = {str(path): f"native/built/{path.relative_to(built)}" for path in paths}
    libraries = [path for name in NAMES if (path := library_path(name)).exists()]
    return modules | {str(path): f"native/built/{path.name}" for path in libraries}


def _fresh(built: Path, root: Path) -> Path | None:
    for folder in stamps.build_folders(built):
        if not stamps.is_for_this_python(folder):
            continue
        stamp = stamps.read_stamp((folder / stamps.STAMP).read_bytes())
        if stamp is not None and not stamps.first_change(stamp, root, folder):
            return folder
    return None


__all__ = ["wheel_files"]
