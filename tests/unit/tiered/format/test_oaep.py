import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_der_private_key
from hypothesis import given
from hypothesis import strategies as st

from storage.environment.randomness import SeededRandomness
from tests.effort import examples
from tests.unit.tiered.format.key_files import private_key
from tiered.format.oaep import unwrap, wrap

RANDOMNESS = SeededRandomness(1)
GOLDEN = Path(__file__).parents[3] / "golden" / "oaep_sha3_512.json"


def sha256(data: bytes) -> object:
    return hashlib.sha256(data)


@examples(25)
@given(st.binary(max_size=126))
def test_a_message_comes_back(message: bytes) -> None:
    """Of any length that fits, beginning with anything."""
    key = private_key("oaep")
    wrapped = wrap(key.public_key(), message, RANDOMNESS)
    assert len(wrapped) == 256
    assert unwrap(key, wrapped, RANDOMNESS) == message


@examples(15)
@given(st.binary(max_size=100))
def test_another_implementation_agrees(message: bytes) -> None:
    """OpenSSL's, with a hash that it has: nothing but the hash differs."""
    key = private_key("oaep")
    padding = OAEP(mgf=MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
    assert key.decrypt(wrap(key.public_key(), message, RANDOMNESS, sha256), padding) == message
    assert unwrap(key, key.public_key().encrypt(message, padding), RANDOMNESS, sha256) == message


@examples(25)
@given(at=st.integers(0, 255), bit=st.integers(0, 7))
def test_a_changed_message_is_refused(at: int, bit: int) -> None:
    """With one text, whatever was wrong with it."""
    key = private_key("oaep")
    wrapped = bytearray(wrap(key.public_key(), b"k" * 32, RANDOMNESS))
    wrapped[at] ^= 1 << bit
    with pytest.raises(ValueError, match=r"^the data key cannot be unwrapped$"):
        unwrap(key, bytes(wrapped), RANDOMNESS)


@pytest.mark.parametrize("wrapped", [b"", b"\0" * 255, b"\0" * 256, b"\xff" * 256, b"\0" * 257])
def test_other_bytes_are_refused(wrapped: bytes) -> None:
    """Of any length."""
    with pytest.raises(ValueError, match="cannot be unwrapped"):
        unwrap(private_key("oaep"), wrapped, RANDOMNESS)


def test_a_message_that_is_too_long_is_refused() -> None:
    """A key of 2048 bits takes 126 bytes under SHA3-512."""
    with pytest.raises(ValueError, match="127 bytes do not fit"):
        wrap(private_key("oaep").public_key(), b"x" * 127, RANDOMNESS)


def test_wrapping_twice_gives_two_texts() -> None:
    """Or two segments with one key could be told."""
    public = private_key("oaep").public_key()
    assert wrap(public, b"x", RANDOMNESS) != wrap(public, b"x", RANDOMNESS)


def test_what_java_wrapped_is_unwrapped() -> None:
    """With SHA3-512 in both places, as Aiven's plugin does it."""
    golden = json.loads(GOLDEN.read_text())
    key = load_der_private_key(base64.b64decode(golden["private"]), None)
    assert isinstance(key, RSAPrivateKey)
    wrapped = base64.b64decode(golden["wrapped"])
    assert unwrap(key, wrapped, RANDOMNESS) == bytes(range(32))
