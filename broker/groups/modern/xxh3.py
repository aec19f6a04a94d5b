"""XXH3, 64 bits, seed 0: a fast hash, not a cryptographic one.

Kafka hashes the topics of a group with it; nothing here is secret. Lengths have their own ways:

    0, 1-3, 4-8, 9-16   a few reads that overlap, mixed once
    17-128              pairs of 16 bytes from both ends
    129-240             16 bytes at a time, and the last 16
    from 241 on         eight accumulators over stripes of 64 bytes, scrambled every 1,024

In Python about 8 MB/s: topics are a few kilobytes.

Source: XXH3 specification (Yann Collet, xxHash 0.8).
"""

from struct import unpack_from

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_MASK_32 = 0xFFFF_FFFF
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
_PRIME32_1 = 0x9E3779B1
_PRIME32_2 = 0x85EBCA77
_PRIME32_3 = 0xC2B2AE3D
_PRIME64_1 = 0x9E3779B185EBCA87
_PRIME64_2 = 0xC2B2AE3D27D4EB4F
_PRIME64_3 = 0x165667B19E3779F9
_PRIME64_4 = 0x85EBCA77C2B2AE63
_PRIME64_5 = 0x27D4EB2F165667C5
_PRIME_MX1 = 0x165667919E3779F9
_PRIME_MX2 = 0x9FB21C651E98DF25

_STRIPE = 64
_STRIPES_PER_BLOCK = 16


def xxh3_64(data: bytes) -> int:
    """The hash as a number of 64 bits without sign."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 128:
        return _up_to_128(data, size)
    if size <= 240:
        return _up_to_240(data, size)
    return _long(data, size)


def _read_32(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 4], "little")


def _read_64(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK_64) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _PRIME_MX1 & _MASK_64
    return value ^ value >> 32


def _avalanche_xxh64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64_2 & _MASK_64
    value ^= value >> 29
    value = value * _PRIME64_3 & _MASK_64
    return value ^ value >> 32


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK_64


def _up_to_16(data: bytes, size: int) -> int:
    if size > 8:
        low = _read_64(data, 0) ^ _read_64(_SECRET, 24) ^ _read_64(_SECRET, 32)
        high = _read_64(data, size - 8) ^ _read_64(_SECRET, 40) ^ _read_64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _fold(low, high) & _MASK_64)
    if size >= 4:
        both = _read_32(data, size - 4) + (_read_32(data, 0) << 32)
        value = both ^ _read_64(_SECRET, 8) ^ _read_64(_SECRET, 16)
        value ^= _rotate(value, 49) ^ _rotate(value, 24)
        value = value * _PRIME_MX2 & _MASK_64
        value ^= (value >> 35) + size
        value = value * _PRIME_MX2 & _MASK_64
        return value ^ value >> 28
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_xxh64(combined ^ _read_32(_SECRET, 0) ^ _read_32(_SECRET, 4))
    return _avalanche_xxh64(_read_64(_SECRET, 56) ^ _read_64(_SECRET, 64))


def _mix_16(data: bytes, position: int, secret: int) -> int:
    return _fold(
        _read_64(data, position) ^ _read_64(_SECRET, secret),
        _read_64(data, position + 8) ^ _read_64(_SECRET, secret + 8),
    )


def _up_to_128(data: bytes, size: int) -> int:
    value = size * _PRIME64_1
    for pair in range((size - 1) // 32 + 1):
        value += _mix_16(data, 16 * pair, 32 * pair)
        value += _mix_16(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(value & _MASK_64)


def _up_to_240(data: bytes, size: int) -> int:
    value = size * _PRIME64_1
    for number in range(8):
        value += _mix_16(data, 16 * number, 16 * number)
    value = _avalanche(value & _MASK_64)
    for number in range(8, size // 16):
        value += _mix_16(data, 16 * number, 16 * (number - 8) + 3)
    value += _mix_16(data, size - 16, 136 - 17)
    return _avalanche(value & _MASK_64)


def _secret_lanes(position: int) -> tuple[int, ...]:
    return unpack_from("<8Q", _SECRET, position)


_STRIPE_SECRETS = [_secret_lanes(8 * stripe) for stripe in range(_STRIPES_PER_BLOCK)]
_SCRAMBLE_SECRET = _secret_lanes(len(_SECRET) - _STRIPE)
_LAST_STRIPE_SECRET = _secret_lanes(len(_SECRET) - _STRIPE - 7)
_MERGE_SECRET = _secret_lanes(11)


def _long(data: bytes, size: int) -> int:
    lanes = [
        _PRIME32_3,
        _PRIME64_1,
        _PRIME64_2,
        _PRIME64_3,
        _PRIME64_4,
        _PRIME32_2,
        _PRIME64_5,
        _PRIME32_1,
    ]
    # The last stripe, whole or not, is taken from the end.
    for stripe in range((size - 1) // _STRIPE):
        place = stripe % _STRIPES_PER_BLOCK
        _accumulate(lanes, data, stripe * _STRIPE, _STRIPE_SECRETS[place])
        if place == _STRIPES_PER_BLOCK - 1:
            for lane, key in enumerate(_SCRAMBLE_SECRET):
                value = lanes[lane]
                lanes[lane] = (value ^ value >> 47 ^ key) * _PRIME32_1 & _MASK_64
    _accumulate(lanes, data, size - _STRIPE, _LAST_STRIPE_SECRET)
    value = size * _PRIME64_1
    for lane in range(0, 8, 2):
        value += _fold(lanes[lane] ^ _MERGE_SECRET[lane], lanes[lane + 1] ^ _MERGE_SECRET[lane + 1])
    return _avalanche(value & _MASK_64)


def _accumulate(lanes: list[int], data: bytes, position: int, secret: tuple[int, ...]) -> None:
    for lane, word in enumerate(unpack_from("<8Q", data, position)):
        keyed = word ^ secret[lane]
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _MASK_64
        lanes[lane] = lanes[lane] + (keyed & _MASK_32) * (keyed >> 32) & _MASK_64
