"""Names of remote-storage settings that are not fixed: their prefixes, and one per key pair.

    remote.log.storage.manager.impl.prefix=P     P<name>  is  rsm.config.<name>
    remote.log.metadata.manager.impl.prefix=P    P<name>  is  rlmm.config.<name>
    rsm.config.encryption.key.pairs.<id>.public.key.file=F
                                                 is  <id>.public=F  in `...key.pairs.files`

What a file, a variable or the command line gives under such a name is moved to the fixed one, with
where it came from; the rest of `config` knows fixed names only.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from config.sections.remote import METADATA_PREFIX, STORAGE_PREFIX, RemoteLogSettings

KEY_FILES: Final = f"{STORAGE_PREFIX}encryption.key.pairs.files"

_PREFIXES: Final = {
    "remote.log.storage.manager.impl.prefix": STORAGE_PREFIX,
    "remote.log.metadata.manager.impl.prefix": METADATA_PREFIX,
}
_KAFKAS: Final = frozenset(RemoteLogSettings.rows())
"""Names that stay, even where a prefix is chosen that they begin with."""

_KEY_FILE: Final = re.compile(
    re.escape(f"{STORAGE_PREFIX}encryption.key.pairs.") + r"(.+)\.(public|private)\.key\.file"
)


class Move(NamedTuple):
    """A setting under a name of its own: `new` is the fixed name, `text` the value there."""

    old: str
    new: str
    text: str


def moves(given: Mapping[str, str]) -> list[Move]:
    """Renames of settings, in order; of several with one new name the last has the whole value.

    Args:
        given: Text by name, as they were written.
    """
    found: list[Move] = []
    names = {name: name for name in given}
    for key, usual in _PREFIXES.items():
        prefix = given.get(key, usual).strip() or usual
        if prefix == usual:
            continue
        for name in given:
            if name.startswith(prefix) and name not in _KAFKAS:
                names[name] = usual + name.removeprefix(prefix)
                found.append(Move(name, names[name], given[name]))
    files: dict[str, str] = {}
    for name, fixed in names.items():
        match = _KEY_FILE.fullmatch(fixed)
        if match is not None:
            files[f"{match[1]}.{match[2]}"] = given[name].strip()
            found = [move for move in found if move.old != name]
            found.append(Move(name, KEY_FILES, _ring(given, files)))
    return found


def _ring(given: Mapping[str, str], files: Mapping[str, str]) -> str:
    kept = [
        part.strip()
        for part in given.get(KEY_FILES, "").split(",")
        if part.strip() and part.partition("=")[0].strip() not in files
    ]
    return ",".join([*kept, *(f"{half}={path}" for half, path in files.items())])
