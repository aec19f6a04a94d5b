"""`python -m native.mypyc_run FOLDER CACHE`: mypyc and the compiler, in a process of their own.

Writes C below `FOLDER/c`, where modules that are in C are copied to, and the shared objects below
`FOLDER/objects`. When an older build among
those that follow has the same C and is whole, its objects are taken instead: a comment, or a
function that is none of ours, needs no compiler.
"""

import ctypes
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from native.modules import COMPILED, IN_C, ROOT, module_path
from native.stamp import LIBRARY, STAMP, first_changed_object, read_stamp

OPTIMIZATION = "2"

FLAGS = ("-fvisibility=hidden",)
"""Else another library could replace each function: calls within go by a table of addresses, and
none is inlined. Modules find what they need of each other through Python."""


def write_c(folder: Path, cache: Path) -> list[object]:
    """Let mypyc write C; returns what setuptools is to compile."""
    from mypyc.build import mypycify

    paths = [str(path.relative_to(ROOT)) for name in COMPILED if (path := module_path(name, ROOT))]
    options = [
        "--config-file=pyproject.toml",
        f"--cache-dir={cache}",
        # What is not compiled is `make types`' to judge; and stubs may be missing here.
        "--follow-imports=silent",
        "--ignore-missing-imports",
    ]
    return list(
        mypycify(
            [*options, *paths],
            opt_level=OPTIMIZATION,
            debug_level="0",
            target_dir=str(folder),
            group_name=LIBRARY.removesuffix("__mypyc"),
        )
    )


def copy_c(folder: Path) -> list[object]:
    """Copy the modules that are in C; returns what setuptools is to compile."""
    from setuptools import Extension

    extensions: list[object] = []
    for name, path in IN_C.items():
        copy = folder / Path(path).name
        shutil.copyfile(ROOT / path, copy)
        extensions.append(Extension(name, [str(copy)], extra_compile_args=[f"-O{OPTIMIZATION}"]))
    return extensions


def digest_of_c(folder: Path) -> str:
    """SHA-256 of all that is for the compiler."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".c", ".h"):
            digest.update(f"{path.relative_to(folder)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def loads(build: Path) -> bool:
    """Whether Python can load the library of a build: its size does not show all damage."""
    try:
        ctypes.CDLL(str(next(build.glob(f"{LIBRARY}.*.so"))))
    except (OSError, StopIteration):
        return False
    return True


def compile_c(extensions: list[object], objects: Path, temporary: Path) -> None:
    """Compile and link."""
    from setuptools import Distribution, Extension

    for extension in extensions:
        assert isinstance(extension, Extension)
        extension.extra_compile_args.extend(FLAGS)

    command = Distribution({"name": "varve", "ext_modules": extensions}).get_command_obj(
        "build_ext"
    )
    command.build_lib = str(objects)
    command.build_temp = str(temporary)
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()


def main(arguments: list[str]) -> int:
    """Print, as the last line, the digest of the C and whether a compiler was needed."""
    folder, cache, older = Path(arguments[0]), Path(arguments[1]), map(Path, arguments[2:])
    os.chdir(ROOT)
    extensions = [*write_c(folder / "c", cache), *copy_c(folder / "c")]
    digest = digest_of_c(folder / "c")
    for build in older:
        stamp = read_stamp((build / STAMP).read_bytes())
        if (
            stamp is not None
            and stamp.code == digest
            and not first_changed_object(stamp, build)
            and loads(build)
        ):
            shutil.copytree(build, folder / "objects", ignore=shutil.ignore_patterns(STAMP))
            print(json.dumps({"code": digest, "compiled": False}))  # noqa: T201  read by the parent
            return 0
    compile_c(extensions, folder / "objects", folder / "temporary")
    print(json.dumps({"code": digest, "compiled": True}))  # noqa: T201  read by the parent
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
