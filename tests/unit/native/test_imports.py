"""Which modules a build depends on."""

from pathlib import Path

from native.imports import closure, imported_by


def write(root: Path, **sources: str) -> None:
    for name, text in sources.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_all_ways_to_import_count(tmp_path: Path) -> None:
    """A module, a name of one, a module of a package, for types only, within a function."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text("")
    write(tmp_path, a__b="", a__c="", a__d="", a__e="")
    write(
        tmp_path,
        a__f="import os\nimport a.b\nfrom a import c\nfrom a.d import name\n"
        "if TYPE_CHECKING:\n    from a.e import Other\ndef f():\n    import json\n",
    )
    assert imported_by(tmp_path / "a" / "f.py", tmp_path) == {"a", "a.b", "a.c", "a.d", "a.e"}


def test_what_is_imported_is_followed(tmp_path: Path) -> None:
    """In a circle, too."""
    write(tmp_path, p__one="from p.two import X", p__two="import p.three", p__three="import p.one")
    write(tmp_path, p__four="import p.one")
    assert list(closure(["p.one"], tmp_path)) == ["p.one", "p.three", "p.two"]
