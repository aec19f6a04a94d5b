"""CPU seconds or instructions of what a program does: `CostMeter`, and its run under Callgrind."""

import ctypes
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_MARKS_IN: Final = "VARVE_CALLGRIND_MARKS"


class CostMeter:
    """Counts what is done between `begin` and `end`."""

    def __init__(self, *, counts: bool = True) -> None:
        """`counts`: whether Callgrind is told; not for rounds that warm up."""
        path = os.environ.get(_MARKS_IN) if counts else None
        self._marks = None if path is None else ctypes.CDLL(path)
        self._begun = 0.0

    @property
    def counts_instructions(self) -> bool:
        """Whether Callgrind counts; then one round is enough."""
        return self._marks is not None

    def begin(self) -> None:
        """Count from here on."""
        if self._marks is not None:
            self._marks.counting_begin()
        self._begun = time.process_time()

    def end(self, name: str) -> float:
        """CPU seconds since `begin`; Callgrind writes down what was counted under this name."""
        spent = time.process_time() - self._begun
        if self._marks is not None:
            self._marks.counting_end(name.encode())
        return spent


_EVENTS: Final = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
_NAME: Final = re.compile(r"^desc: Trigger: Client Request: (.*)$", re.MULTILINE)


def count_instructions(module: str, arguments: Sequence[str], folder: Path) -> dict[str, int]:
    """Run a program under Callgrind; instructions of each row, all that was counted together.

    Args:
        module: The program, as `python -m` takes it.
        arguments: Its own.
        folder: Where one file for each row stays, for callgrind_annotate.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "marks.so"
    source = Path(__file__).with_name("callgrind_marks.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    subprocess.run(
        [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", "-q"),
            f"--callgrind-out-file={folder}/counted",
            *(sys.executable, "-m", module, *arguments),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, _MARKS_IN: str(library)},
    )
    found: dict[str, int] = {}
    for path in folder.glob("counted.*"):
        text = path.read_text()
        name, total = _NAME.search(text), _EVENTS.search(text)
        if name is not None and total is not None:
            found[name[1]] = found.get(name[1], 0) + int(total[1])
    return found
