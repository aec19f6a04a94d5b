"""Names of implementations and rings of key files."""

import pytest

from config.kinds import WireType
from config.remote_kinds import Implementation, KeyFiles, KeyRing

STORE = Implementation({"s3": "s3", "com.example.S3": "s3"}, "use s3", WireType.CLASS)


def test_known_names_are_kept_as_ours() -> None:
    """Whatever they are called elsewhere."""
    assert [STORE.parse("k", text) for text in ("s3", " com.example.S3 ")] == ["s3", "s3"]
    assert STORE.format("s3") == "s3"
    assert (STORE.wire_type, STORE.description) == (WireType.CLASS, "one of s3, com.example.S3")


def test_an_unknown_name_is_refused_with_advice() -> None:
    """Nothing is loaded, and what to do instead is said."""
    with pytest.raises(ValueError, match=r"Invalid value com\.example\.Gcs for .* k: .*; use s3"):
        STORE.parse("k", "com.example.Gcs")
    with pytest.raises(ValueError, match="String must be non-empty"):
        STORE.parse("k", " ")


def test_a_key_ring_is_read_back() -> None:
    """Ids may hold dots, the private half may be missing, paths may hold `=`."""
    ring = KeyRing().parse("k", "a.public=/a.pem, a.private=/x=y.pem,b.2.public=/b.pem,")
    assert ring == {"a": KeyFiles("/a.pem", "/x=y.pem"), "b.2": KeyFiles("/b.pem", "")}
    text = "a.public=/a.pem,a.private=/x=y.pem,b.2.public=/b.pem"
    assert KeyRing().format(ring) == text
    assert KeyRing().parse("k", "") == {}
    assert KeyRing().wire_type is WireType.STRING
    assert "ID.public=FILE" in KeyRing().description


@pytest.mark.parametrize("text", ["a=/p", "a.public", "a.public=", ".public=/p", "a.secret=/p"])
def test_what_is_no_key_file_is_refused(text: str) -> None:
    """With the part that is wrong."""
    with pytest.raises(ValueError, match=f"`{text}` is not ID"):
        KeyRing().parse("k", text)


def test_a_file_is_named_once() -> None:
    """Two would leave open which counts."""
    with pytest.raises(ValueError, match=r"a\.public is given twice"):
        KeyRing().parse("k", "a.public=1,a.public=2")
