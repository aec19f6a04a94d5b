"""A build is tried before it is taken."""

from pathlib import Path

import pytest

from native.try_modules import main


def test_a_build_without_a_stamp_is_refused(tmp_path: Path) -> None:
    """The exception says why."""
    (tmp_path / "stamp.json").write_text("{}")
    with pytest.raises(ImportError, match="has no stamp of this version"):
        main([str(tmp_path)])
