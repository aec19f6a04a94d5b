"""The RSA key pairs that wrap data keys: one wraps new ones, all that are here unwrap old ones.

A segment's manifest holds, under "encryption", the data key as the pair's public half encrypted it
(see `oaep`), after the pair's id, and the associated data:

    {"dataKey":"<pair id>:<base64>","aad":"<base64 of 32 bytes>"}

Changing the pair: add the new one beside the old, make it the active one, run `rewrap` over the
bucket, take the old one away. A broker that only copies needs no private half.

Source: Aiven-Open/tiered-storage-for-apache-kafka, RsaEncryptionProvider.java,
EncryptedDataKey.java, RsaKeyReader.java.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from tiered.errors import RemoteStorageError
from tiered.format.encryption import KEY_SIZE, DataKey, new_data_key
from tiered.format.oaep import unwrap, wrap

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    from config.remote_kinds import KeyFiles
    from config.tier import TierConfig

MODULUS_BITS_MIN: Final = 2048


@dataclass(frozen=True, slots=True)
class DataKeyEnvelope:
    """A data key as it stands in a manifest.

    Attributes:
        pair_id: Which pair wrapped it; not blank, without `:`.
        wrapped: The encrypted data key.
        aad: The associated data, as they are.
    """

    pair_id: str
    wrapped: bytes
    aad: bytes

    def to_json(self) -> dict[str, Any]:
        """As in a manifest."""
        return {
            "dataKey": f"{self.pair_id}:{base64.b64encode(self.wrapped).decode()}",
            "aad": base64.b64encode(self.aad).decode(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "DataKeyEnvelope":
        """What `to_json` gave; KeyError, TypeError or ValueError when it is something else."""
        text = fields["dataKey"]
        if not isinstance(text, str) or text.count(":") != 1 or text.startswith(":"):
            raise ValueError("dataKey is not `<pair id>:<base64>`")
        pair_id, _, wrapped = text.partition(":")
        try:
            return cls(
                pair_id,
                base64.b64decode(wrapped, validate=True),
                base64.b64decode(fields["aad"], validate=True),
            )
        except binascii.Error as error:
            raise ValueError(f"encryption is not base64: {error}") from error


@dataclass(frozen=True, slots=True)
class KeyPair:
    """One pair; without `private` it wraps and does not unwrap."""

    public: "RSAPublicKey"
    private: "RSAPrivateKey | None" = field(repr=False)


class KeyRing:
    """See the module."""

    __slots__ = ("_pairs", "_randomness", "active_id")

    def __init__(
        self, active_id: str, pairs: Mapping[str, KeyPair], randomness: Randomness
    ) -> None:
        """`active_id` may be "" where nothing new is encrypted.

        Raises:
            RemoteStorageError: It is not among the pairs.
        """
        if active_id and active_id not in pairs:
            raise RemoteStorageError(f"there is no key pair {active_id!r}, which should be active")
        self.active_id = active_id
        self._pairs = dict(pairs)
        self._randomness = randomness

    @classmethod
    def load(
        cls, settings: "TierConfig", filesystem: Filesystem, randomness: Randomness
    ) -> "KeyRing":
        """Read the pairs that the settings name.

        Raises:
            RemoteStorageError: One is no RSA key in PEM, too short, or the halves do not fit.
            DiskError: A file cannot be read.
        """
        pairs = {
            pair_id: _load_pair(pair_id, files, filesystem)
            for pair_id, files in settings.rsm_config_encryption_key_pairs_files.items()
        }
        active_id = settings.rsm_config_encryption_key_pair_id or ""
        if settings.rsm_config_encryption_enabled and not active_id:
            raise RemoteStorageError("encryption is on and no key pair is the active one")
        return cls(active_id, pairs, randomness)

    def new_data_key(self) -> tuple[DataKey, DataKeyEnvelope]:
        """A key for a new segment, and how its manifest keeps it."""
        data_key = new_data_key(self._randomness)
        return data_key, self._wrap(data_key)

    def unwrap(self, envelope: DataKeyEnvelope) -> DataKey:
        """The data key of a segment.

        Some 10 ms of computing for a pair of 2048 bits, so keep what it gives.

        Raises:
            RemoteStorageError: The pair or its private half is not here, or the wrapped key is not
                one of this pair's.
        """
        pair = self._pairs.get(envelope.pair_id)
        if pair is None or pair.private is None:
            what = "key pair" if pair is None else "private key of pair"
            raise RemoteStorageError(
                f"the segment's data key needs the {what} {envelope.pair_id!r}, which is not"
                " configured"
            )
        try:
            key = unwrap(pair.private, envelope.wrapped, self._randomness)
        except ValueError as error:
            raise RemoteStorageError(f"by key pair {envelope.pair_id!r}: {error}") from error
        if len(key) != KEY_SIZE:
            raise RemoteStorageError(f"a data key has {len(key)} bytes, not {KEY_SIZE}")
        return DataKey(key, envelope.aad)

    def rewrap(self, envelope: DataKeyEnvelope) -> DataKeyEnvelope:
        """The same data key under the active pair; raises as `unwrap`."""
        return self._wrap(self.unwrap(envelope))

    def _wrap(self, data_key: DataKey) -> DataKeyEnvelope:
        if not self.active_id:
            raise RemoteStorageError("no key pair is the active one")
        public = self._pairs[self.active_id].public
        wrapped = wrap(public, data_key.key, self._randomness)
        return DataKeyEnvelope(self.active_id, wrapped, data_key.aad)


def _load_pair(pair_id: str, files: "KeyFiles", filesystem: Filesystem) -> KeyPair:
    if not pair_id.strip() or ":" in pair_id:
        raise RemoteStorageError(f"{pair_id!r} cannot be a key pair's id")
    # Takes 50 ms, and most brokers never encrypt.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
    from cryptography.hazmat.primitives.serialization import (
        load_pem_private_key,
        load_pem_public_key,
    )

    path = files.public
    try:
        public = load_pem_public_key(filesystem.read_bytes(path))
        private = None
        if files.private:
            path = files.private
            private = load_pem_private_key(filesystem.read_bytes(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        # Not the library's text: it may quote what it read.
        problem = f"key pair {pair_id!r}: {path} is not an unencrypted key in PEM"
        raise RemoteStorageError(problem) from error
    if not isinstance(public, RSAPublicKey) or public.key_size < MODULUS_BITS_MIN:
        raise RemoteStorageError(
            f"key pair {pair_id!r}: {files.public} is not an RSA key of {MODULUS_BITS_MIN} bits"
            " or more"
        )
    if private is None:
        return KeyPair(public, None)
    if (
        not isinstance(private, RSAPrivateKey)
        or private.public_key().public_numbers() != public.public_numbers()
    ):
        raise RemoteStorageError(
            f"key pair {pair_id!r}: {files.private} does not fit its public key"
        )
    return KeyPair(public, private)
