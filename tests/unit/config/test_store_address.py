"""Addresses of the metadata store: what is read, how it is shown, what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.listeners import Endpoint
from config.store_address import SQLITE, StoreAddress, StoreAddressKind

KIND = StoreAddressKind()
HOSTS = st.from_regex(r"[a-z][a-z0-9.-]{0,10}", fullmatch=True) | st.just("::1")


@given(
    st.lists(st.builds(Endpoint, HOSTS, st.integers(1, 65535)), min_size=1, unique=True),
    st.booleans(),
)
def test_what_is_shown_is_read_again(endpoints: list[Endpoint], with_tls: bool) -> None:
    address = StoreAddress(tuple(endpoints), with_tls)
    assert KIND.parse("metadata.store", KIND.format(address)) == address
    assert address.is_shared


def test_the_usual_forms() -> None:
    assert KIND.parse("k", " sqlite ") == SQLITE
    assert not SQLITE.is_shared
    assert KIND.parse("k", "etcd://one, two:1/") == StoreAddress(
        (Endpoint("one", 2379), Endpoint("two", 1))
    )
    assert KIND.parse("k", "etcds://[::1]") == StoreAddress((Endpoint("::1", 2379),), True)
    for text in ("unix:/run/varve/s", "unix:///run/varve/s"):
        assert KIND.parse("k", text) == StoreAddress(socket="/run/varve/s")
    assert str(KIND.parse("k", "unix:/a b")) == "unix:/a b"
    assert StoreAddress(socket="/s").is_shared


@pytest.mark.parametrize(
    "text",
    [
        *("", "etcd", "etcd://", "http://h:1", "etcd:h:1", "etcd://h:99999", "etcd://:1"),
        *("etcd://h:1,h:1", "etcd://h:0", "etcd://a,,b", "sqlite:x", "etcd://a:b"),
        *("unix:", "unix://", "unix:s", "unix:./s", "unix:/s/", "unix:/a\0b", "unix://host/s:1/"),
        "etcd://" + ",".join(f"h{n}" for n in range(101)),
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid value .* for configuration metadata\.store: "):
        KIND.parse("metadata.store", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("etc://h", "Neither `sqlite`, a socket nor servers of etcd"),
        ("unix:./s", "No absolute path of a socket"),
        ("etcd://", "A server has no name"),
        ("etcd://a,,b", "A server has no name"),
        ("etcd://:1", "`:1` has no host or no port"),
        ("etcd://h,h:2379", "A server is named twice"),
    ],
)
def test_a_refusal_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f": {reason}") + "$"):
        KIND.parse("metadata.store", text)
