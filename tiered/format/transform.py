"""Transform of a chunk between its original and its stored form: zstd, AES-GCM, both or neither.

    original chunk --zstd--> one plain frame with its content size --AES-GCM--> stored chunk

Every chunk is a frame and a ciphertext of its own, so it can be fetched alone. On the way back
nothing is ever written beyond the room for the original chunk, whatever the frame claims.

Source: Aiven-Open/tiered-storage-for-apache-kafka, CompressionChunkEnumeration.java.
"""

from typing import Final

from tiered.format.encryption import OVERHEAD, ChunkCipher

_FRAME_ROOM: Final = 1024


class ChunkTransform:
    """How one segment's chunks are stored. Usable from several threads at a time.

    Attributes:
        compression: Chunks are zstd frames.
        cipher: What encrypts them; None: nothing does.
    """

    __slots__ = ("_level", "cipher", "compression")

    def __init__(
        self, *, compression: bool = False, level: int = 3, cipher: ChunkCipher | None = None
    ) -> None:
        self.compression = compression
        self.cipher = cipher
        self._level = level

    @property
    def is_plain(self) -> bool:
        """Stored chunks are the original ones."""
        return not self.compression and self.cipher is None

    def fixed_size(self, size: int) -> int | None:
        """How long `size` bytes are when stored; None if that depends on what they are."""
        if self.compression:
            return None
        return size if self.cipher is None else size + OVERHEAD

    def store(
        self, original: memoryview, compressed: memoryview, encrypted: memoryview
    ) -> memoryview:
        """Transform an original chunk into a stored one.

        Args:
            original: The chunk; what is returned may be this.
            compressed: Room of `compressed_room(len(original))` bytes, if there is compression.
            encrypted: Room of `encrypted_room(len(original))` bytes, if there is encryption.

        Returns:
            The stored chunk, in one of the three.
        """
        stored = original
        if self.compression:
            import cramjam

            size = cramjam.zstd.compress_into(stored, compressed, self._level)
            stored = compressed[:size]
        if self.cipher is not None:
            stored = encrypted[: self.cipher.encrypt(stored, encrypted)]
        return stored

    def restore(
        self, stored: memoryview, decrypted: memoryview, original: memoryview
    ) -> memoryview:
        """Transform a stored chunk into the original one.

        Args:
            stored: The chunk; what is returned may be this.
            decrypted: Room of `len(stored)` bytes, if there is encryption.
            original: Room for the original chunk and no more, if there is compression.

        Returns:
            The original chunk, in one of the three; it may be too short.

        Raises:
            ValueError: It is no chunk that `store` gave, or longer than `original`.
        """
        if self.cipher is not None:
            stored = decrypted[: self.cipher.decrypt(stored, decrypted)]
        if self.compression:
            import cramjam

            try:
                size = cramjam.zstd.decompress_into(stored, original)
            except cramjam.DecompressionError as error:
                problem = f"it is not a zstd frame of at most {len(original)} bytes: {error}"
                raise ValueError(problem) from error
            stored = original[:size]
        return stored


def compressed_room(size: int) -> int:
    """Most bytes that a frame of `size` bytes can have."""
    return size + (size >> 7) + _FRAME_ROOM


def encrypted_room(size: int) -> int:
    """Most bytes that a chunk of `size` bytes can have when it is stored."""
    return compressed_room(size) + OVERHEAD
