"""The hook of hatchling; what it adds is `wheel_files`' to say."""

from pathlib import Path
from typing import Any

import pytest

from native.loader import VARIABLE, CompiledCodeError
from native.modules import ROOT
from native.wheel_hook import CompiledParts


def hook(root: Path) -> Any:
    return CompiledParts(str(root), {}, None, None, str(root), "wheel")  # type: ignore[arg-type]  # of no use to it


def test_nothing_compiled_makes_a_wheel_for_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hatchling would do by itself stays as it is."""
    monkeypatch.setenv(VARIABLE, "off")
    data: dict[str, Any] = {"force_include": {}, "pure_python": True}
    hook(ROOT).initialize("standard", data)
    assert data == {"force_include": {}, "pure_python": True}


def test_an_editable_installation_runs_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it needs nothing, also where a wheel could not be built."""
    monkeypatch.setenv(VARIABLE, "require")
    hook(tmp_path).initialize("editable", {})
    with pytest.raises(CompiledCodeError, match="no fresh build"):
        hook(tmp_path).initialize("standard", {})
