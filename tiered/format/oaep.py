"""RSA-OAEP with SHA3-512 in both places, as Bouncy Castle's OAEPWithSHA3-512AndMGF1Padding does it.

The library we use for RSA keys knows OAEP with SHA-1 and SHA-2 only, while the manifests of Aiven's
plugin carry data keys wrapped so. What is missing is the padding (RFC 8017, section 7.1; label
empty, k the modulus' length, h = 64):

    padded    = 00 || masked seed (h) || masked DB (k - h - 1)
    DB        = SHA3-512("") || 00 .. 00 || 01 || message
    masked DB = DB xor MGF1(seed), masked seed = seed xor MGF1(masked DB)

It wraps keys of 32 bytes, once per segment. The private operation is blinded (its time reveals
nothing of what is unwrapped), and every way in which a padding is wrong gives one and the same
error after the same work, so there is no oracle to ask (Manger, 2001).

Source: RFC 8017, sections 5.1, 7.1, B.2.1.
"""

import hashlib
import hmac
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from storage.environment.randomness import Randomness

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

Hash = Callable[[bytes], Any]

SHA3_512: Final[Hash] = hashlib.sha3_512


def wrap(
    key: "RSAPublicKey", message: bytes, randomness: Randomness, digest: Hash = SHA3_512
) -> bytes:
    """Encrypt a short message.

    Args:
        key: Of at least 2048 bits.
        message: At most the modulus' length - 130 bytes.
        randomness: For the seed.
        digest: The hash function; other ones are for comparing with other implementations.

    Raises:
        ValueError: The message is too long for the key.
    """
    numbers = key.public_numbers()
    size = (numbers.n.bit_length() + 7) // 8
    label = digest(b"").digest()
    zeros = size - len(message) - 2 * len(label) - 2
    if zeros < 0:
        raise ValueError(f"{len(message)} bytes do not fit under a key of {size * 8} bits")
    seed = randomness.token_bytes(len(label))
    block = label + bytes(zeros) + b"\x01" + message
    masked_block = _xor(block, _mask(seed, len(block), digest))
    masked_seed = _xor(seed, _mask(masked_block, len(seed), digest))
    number = int.from_bytes(masked_seed + masked_block, "big")
    return pow(number, numbers.e, numbers.n).to_bytes(size, "big")


def unwrap(
    key: "RSAPrivateKey", wrapped: bytes, randomness: Randomness, digest: Hash = SHA3_512
) -> bytes:
    """Decrypt what `wrap` gave.

    Raises:
        ValueError: It was not wrapped by this key's public half, or has changed since.
    """
    numbers = key.private_numbers()
    modulus, exponent = numbers.public_numbers.n, numbers.public_numbers.e
    size = (modulus.bit_length() + 7) // 8
    number = int.from_bytes(wrapped, "big")
    label = digest(b"").digest()
    if len(wrapped) != size or number >= modulus or size < 2 * len(label) + 2:
        raise ValueError("the data key cannot be unwrapped")
    blind = _blind(modulus, size, randomness)
    blinded = number * pow(blind, exponent, modulus) % modulus
    # By the two primes, at a quarter of the time.
    of_p = pow(blinded % numbers.p, numbers.dmp1, numbers.p)
    of_q = pow(blinded % numbers.q, numbers.dmq1, numbers.q)
    plain = of_q + numbers.q * ((of_p - of_q) * numbers.iqmp % numbers.p)
    padded = (plain * pow(blind, -1, modulus) % modulus).to_bytes(size, "big")
    masked_seed, masked_block = padded[1 : 1 + len(label)], padded[1 + len(label) :]
    seed = _xor(masked_seed, _mask(masked_block, len(label), digest))
    block = _xor(masked_block, _mask(seed, len(masked_block), digest))
    rest = block[len(label) :]
    message = rest.lstrip(b"\0")
    is_good = hmac.compare_digest(block[: len(label)], label)
    is_good &= padded[0] == 0
    is_good &= message[:1] == b"\x01"
    if not is_good:
        raise ValueError("the data key cannot be unwrapped")
    return message[1:]


def _blind(modulus: int, size: int, randomness: Randomness) -> int:
    while True:
        blind = int.from_bytes(randomness.token_bytes(size), "big") % modulus
        if blind > 1 and math.gcd(blind, modulus) == 1:
            return blind


def _mask(seed: bytes, size: int, digest: Hash) -> bytes:
    """MGF1."""
    mask = b""
    counter = 0
    while len(mask) < size:
        mask += digest(seed + counter.to_bytes(4, "big")).digest()
        counter += 1
    return mask[:size]


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
