"""RSA key pairs in PEM files, as `openssl genpkey` and `openssl pkey -pubout` write them."""

from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from config.remote_kinds import KeyFiles


@cache
def private_key(name: str, bits: int = 2048) -> RSAPrivateKey:
    """One key a name; a tenth of a second each."""
    assert name
    return generate_private_key(65537, bits)


def write_pair(folder: Path, name: str, bits: int = 2048) -> KeyFiles:
    """Write a pair's files."""
    key = private_key(name, bits)
    public, private = folder / f"{name}.pub.pem", folder / f"{name}.pem"
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return KeyFiles(str(public), str(private))
