from itertools import pairwise

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from storage.environment.randomness import SeededRandomness
from tiered.format.encryption import OVERHEAD, ChunkCipher, DataKey, new_data_key

RANDOMNESS = SeededRandomness(5)
KEY = new_data_key(RANDOMNESS)


def encrypted(plain: bytes, key: DataKey = KEY) -> bytearray:
    into = bytearray(len(plain) + OVERHEAD)
    assert ChunkCipher(key, RANDOMNESS).encrypt(plain, memoryview(into)) == len(into)
    return into


@given(st.binary(max_size=300))
def test_a_piece_comes_back(plain: bytes) -> None:
    """Into a room that is larger."""
    into = bytearray(400)
    size = ChunkCipher(KEY, RANDOMNESS).decrypt(memoryview(encrypted(plain)), memoryview(into))
    assert into[:size] == plain


def test_the_bytes_are_iv_ciphertext_tag() -> None:
    """As Aiven's plugin lays them: anyone with the key can decrypt with any library."""
    stored = bytes(encrypted(b"hello"))
    assert AESGCM(KEY.key).decrypt(stored[:12], stored[12:], KEY.aad) == b"hello"


def test_no_initialization_vector_twice() -> None:
    """Two pieces under one key and vector would give both away."""
    assert len({bytes(encrypted(b"same")[:12]) for _ in range(100)}) == 100


@given(at=st.integers(0, 32), bit=st.integers(0, 7))
def test_a_changed_piece_is_refused(at: int, bit: int) -> None:
    """Vector, ciphertext or tag."""
    stored = encrypted(b"hello")
    stored[at] ^= 1 << bit
    with pytest.raises(ValueError, match="does not decrypt"):
        ChunkCipher(KEY, RANDOMNESS).decrypt(memoryview(stored), memoryview(bytearray(5)))


def test_a_piece_of_another_segment_is_refused() -> None:
    """Whether the key or the associated data are another's."""
    for other in (DataKey(KEY.key, b"x" * 32), DataKey(b"x" * 32, KEY.aad)):
        with pytest.raises(ValueError, match="does not decrypt"):
            ChunkCipher(other, RANDOMNESS).decrypt(
                memoryview(encrypted(b"hello")), memoryview(bytearray(5))
            )


@given(cuts=st.lists(st.integers(0, 60), max_size=5), plain=st.binary(max_size=60))
def test_a_piece_may_be_decrypted_part_by_part(cuts: list[int], plain: bytes) -> None:
    stored = memoryview(bytes(encrypted(plain)))
    ciphertext = stored[12:-16]
    decryption = ChunkCipher(KEY, RANDOMNESS).decryption(bytes(stored[:12]))
    borders = [0, *sorted(min(cut, len(plain)) for cut in cuts), len(plain)]
    found = b""
    for begin, end in pairwise(borders):
        room = memoryview(bytearray(end - begin))
        found += bytes(room[: decryption.update(ciphertext[begin:end], room)])
    decryption.finish(bytes(stored[-16:]))
    assert found == plain


def test_a_piece_decrypted_in_parts_is_refused_at_the_end() -> None:
    stored = memoryview(bytes(encrypted(b"hello")))
    decryption = ChunkCipher(KEY, RANDOMNESS).decryption(bytes(stored[:12]))
    decryption.update(stored[12:-16], memoryview(bytearray(5)))
    with pytest.raises(ValueError, match="does not decrypt"):
        decryption.finish(bytes(16))


@pytest.mark.parametrize("size", [0, 27, 34])
def test_sizes_that_cannot_be_are_refused(size: int) -> None:
    """Too short for vector and tag, or longer than the room."""
    with pytest.raises(ValueError, match="cannot have"):
        ChunkCipher(KEY, RANDOMNESS).decrypt(memoryview(bytes(size)), memoryview(bytearray(5)))


def test_the_key_is_in_no_text() -> None:
    """Errors and logs show what objects look like."""
    assert KEY.key.hex() not in repr(KEY)
    assert repr(KEY.key) not in repr(KEY)
