from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
)

from config.remote_kinds import KeyFiles
from config.tier import TierConfig
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.unit.tiered.format.key_files import private_key, write_pair
from tiered.errors import RemoteStorageError
from tiered.format.key_ring import DataKeyEnvelope, KeyRing

FILES = LocalFilesystem()


def load(active: str, **pairs: KeyFiles) -> KeyRing:
    settings = TierConfig(
        rsm_config_encryption_enabled=bool(active),
        rsm_config_encryption_key_pair_id=active,
        rsm_config_encryption_key_pairs_files=pairs,
    )
    return KeyRing.load(settings, FILES, SeededRandomness(1))


def test_a_data_key_comes_back(tmp_path: Path) -> None:
    """Through the text of a manifest."""
    ring = load("a", a=write_pair(tmp_path, "a"))
    data_key, envelope = ring.new_data_key()
    again = DataKeyEnvelope.from_json(envelope.to_json())
    assert again == envelope
    assert ring.unwrap(again) == data_key
    assert len(data_key.key) == len(data_key.aad) == 32
    assert data_key.key != data_key.aad
    assert repr(data_key.key) not in repr(data_key)


def test_every_segment_has_a_key_of_its_own(tmp_path: Path) -> None:
    """Random initialization vectors are safe for some 2**32 messages of one key."""
    ring = load("a", a=write_pair(tmp_path, "a"))
    keys = {ring.new_data_key()[0].key for _ in range(20)}
    assert len(keys) == 20


def test_old_pairs_stay_readable(tmp_path: Path) -> None:
    """The active one wraps, all unwrap, and wrapping anew keeps the key."""
    old, new = write_pair(tmp_path, "a"), write_pair(tmp_path, "b")
    data_key, envelope = load("a", a=old).new_data_key()
    both = load("b", a=old, b=new)
    assert both.unwrap(envelope) == data_key
    anew = both.rewrap(envelope)
    assert anew.pair_id == "b"
    assert load("b", b=new).unwrap(anew) == data_key


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    """An operator reads which one to bring back."""
    pair = write_pair(tmp_path, "a")
    _, envelope = load("a", a=pair).new_data_key()
    with pytest.raises(RemoteStorageError, match="key pair 'a', which is not configured"):
        load("b", b=write_pair(tmp_path, "b")).unwrap(envelope)
    with pytest.raises(RemoteStorageError, match="private key of pair 'a'"):
        load("a", a=pair._replace(private="")).unwrap(envelope)


def test_a_broker_that_copies_needs_no_private_half(tmp_path: Path) -> None:
    """It can then read nothing of what it wrote."""
    pair = write_pair(tmp_path, "a")
    data_key, envelope = load("a", a=pair._replace(private="")).new_data_key()
    assert load("a", a=pair).unwrap(envelope) == data_key


def test_another_pair_under_the_same_name_is_told_apart(tmp_path: Path) -> None:
    """And never gives a wrong key."""
    _, envelope = load("a", a=write_pair(tmp_path, "a")).new_data_key()
    with pytest.raises(RemoteStorageError, match="by key pair 'a'"):
        load("a", a=write_pair(tmp_path, "b")).unwrap(envelope)


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    """At the start, with the file's name, and never quoting what is in it."""
    pair, other = write_pair(tmp_path, "a"), write_pair(tmp_path, "b")
    junk = tmp_path / "junk.pem"
    junk.write_text("-----BEGIN SECRET-----")
    curve = tmp_path / "ec.pem"
    curve.write_bytes(
        generate_private_key(SECP256R1())
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        private_key("a").private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
        )
    )
    for files, problem in (
        (KeyFiles(str(junk), ""), "junk.pem is not an unencrypted key"),
        (KeyFiles(str(curve), ""), "ec.pem is not an RSA key"),
        (KeyFiles(pair.public, str(junk)), "junk.pem"),
        (KeyFiles(pair.public, str(locked)), "locked.pem is not an unencrypted key"),
        (KeyFiles(pair.public, other.private), "does not fit"),
        (write_pair(tmp_path, "short", 1024), "2048 bits"),
    ):
        with pytest.raises(RemoteStorageError, match=problem) as caught:
            load("a", a=files)
        assert "SECRET" not in str(caught.value)


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    """Found when a broker starts, not when it copies."""
    pair = write_pair(tmp_path, "a")
    with pytest.raises(RemoteStorageError, match="'b'"):
        load("b", a=pair)
    with pytest.raises(RemoteStorageError, match="cannot be a key pair's id"):
        load("a", **{"a": pair, "x:y": pair})
    with pytest.raises(RemoteStorageError, match="active"):
        KeyRing.load(TierConfig(rsm_config_encryption_enabled=True), FILES, SeededRandomness(1))
    with pytest.raises(RemoteStorageError, match="active"):
        load("", a=pair).new_data_key()


@pytest.mark.parametrize(
    "fields",
    [
        {"dataKey": "abc", "aad": ""},
        {"dataKey": ":YQ==", "aad": ""},
        {"dataKey": "a:b:YQ==", "aad": ""},
        {"dataKey": "a:*", "aad": ""},
        {"dataKey": "a:YQ==", "aad": "*"},
        {"dataKey": 1, "aad": ""},
    ],
)
def test_malformed_envelopes_are_refused(fields: dict[str, object]) -> None:
    """They come out of a bucket."""
    with pytest.raises((ValueError, TypeError)):
        DataKeyEnvelope.from_json(fields)
