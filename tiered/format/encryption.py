"""Encryption of one segment's chunks and side files with AES-256-GCM.

Each piece is encrypted by itself and grows by 28 bytes:

    byte  size  field
       0    12  initialization vector   random; one key encrypts at most some 2**18 pieces
      12     n  ciphertext              as long as the plaintext
    12+n    16  tag

The associated data are 32 random bytes of the segment, kept beside the wrapped key in its manifest:
a piece of another segment does not decrypt, whatever key it is under. Pieces of one segment could
be exchanged for each other; their checksums in the manifest show that.

Source: Aiven-Open/tiered-storage-for-apache-kafka, AesEncryptionProvider.java,
EncryptionChunkEnumeration.java; NIST SP 800-38D.
"""

from dataclasses import dataclass, field
from typing import Final

from storage.environment.randomness import Randomness
from tiered.object_store.base import Buffer

KEY_SIZE: Final = 32
AAD_SIZE: Final = 32
IV_SIZE: Final = 12
TAG_SIZE: Final = 16
OVERHEAD: Final = IV_SIZE + TAG_SIZE


@dataclass(frozen=True, slots=True)
class DataKey:
    """What encrypts one segment. `key` is a secret and stays out of every text."""

    key: bytes = field(repr=False)
    aad: bytes


def new_data_key(randomness: Randomness) -> DataKey:
    """A key for a new segment."""
    # Two draws: associated data stand in the manifest for all to read.
    key = randomness.token_bytes(KEY_SIZE)
    return DataKey(key, randomness.token_bytes(AAD_SIZE))


class ChunkCipher:
    """Encrypts and decrypts with one data key. Usable from several threads at a time."""

    __slots__ = ("_aad", "_data_key", "_gcm", "_randomness")

    def __init__(self, data_key: DataKey, randomness: Randomness) -> None:
        # Takes 50 ms, and most brokers never encrypt.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._gcm = AESGCM(data_key.key)
        self._aad = data_key.aad
        self._data_key = data_key
        self._randomness = randomness

    def encrypt(self, plain: Buffer, into: memoryview) -> int:
        """Encrypt a piece into `into`, which must not overlap it; returns the length there."""
        size = len(plain) + OVERHEAD
        iv = self._randomness.token_bytes(IV_SIZE)
        into[:IV_SIZE] = iv
        self._gcm.encrypt_into(iv, plain, self._aad, into[IV_SIZE:size])
        return size

    def decrypt(self, stored: memoryview, into: memoryview) -> int:
        """Decrypt a piece into `into`, which must not overlap it; returns the length there.

        Raises:
            ValueError: It was not encrypted with this key, or has changed since.
        """
        from cryptography.exceptions import InvalidTag

        size = len(stored) - OVERHEAD
        if not 0 <= size <= len(into):
            raise ValueError(f"an encrypted piece cannot have {len(stored)} bytes here")
        try:
            self._gcm.decrypt_into(
                bytes(stored[:IV_SIZE]), stored[IV_SIZE:], self._aad, into[:size]
            )
        except InvalidTag:
            raise ValueError("it does not decrypt with the segment's key") from None
        return size

    def decryption(self, iv: bytes) -> "PieceDecryption":
        """Decrypts the piece that begins with `iv` part by part, for pieces too large for memory.

        What it gives is not to be believed before `finish` has returned.
        """
        return PieceDecryption(self._data_key, iv)


class PieceDecryption:
    """One piece, part by part; see `ChunkCipher.decryption`."""

    __slots__ = ("_context",)

    def __init__(self, data_key: DataKey, iv: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import GCM

        self._context = Cipher(AES(data_key.key), GCM(iv)).decryptor()
        self._context.authenticate_additional_data(data_key.aad)

    def update(self, ciphertext: memoryview, into: memoryview) -> int:
        """Decrypt the next part into memory as long; returns how much there is of it."""
        return self._context.update_into(ciphertext, into)

    def finish(self, tag: bytes) -> None:
        """There is no more.

        Raises:
            ValueError: It was not encrypted with this key, or has changed since.
        """
        from cryptography.exceptions import InvalidTag

        try:
            self._context.finalize_with_tag(tag)
        except InvalidTag:
            raise ValueError("it does not decrypt with the segment's key") from None
