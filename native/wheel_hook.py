"""What hatchling adds to a wheel: the parts that were compiled for this Python, if they are fresh.

VARVE_NATIVE decides as it does for a process: `off` makes a wheel for every Python, `require` fails
where nothing is compiled. Only hatchling loads this file, from the folder of the project; it is not
in the wheel.
"""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledParts(BuildHookInterface[Any]):
    """The hook; one in a file is found by its base."""

    def initialize(  # type: ignore[explicit-override]  # no `override` where a wheel is built
        self, version: str, build_data: dict[str, Any]
    ) -> None:
        """Add the files, and say that the wheel is for this Python and machine only."""
        if version == "editable":
            return
        # hatchling runs wherever it was called.
        sys.path.insert(0, self.root)
        try:
            from native.wheel_files import wheel_files
        finally:
            sys.path.remove(self.root)
        root = Path(self.root)
        files = wheel_files(root / "native" / "built", root, os.environ)
        if files:
            build_data["force_include"].update(files)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
