"""Names of what is compiled."""

from native.sources import NAMES, library_path, source_path


def test_a_name_says_what_it_belongs_to() -> None:
    """The same source, the same name; on one platform."""
    for name in NAMES:
        assert source_path(name).exists()
        path = library_path(name)
        assert path == library_path(name)
        assert path.name.startswith(f"{name}-")
        assert path.suffix == ".so"
