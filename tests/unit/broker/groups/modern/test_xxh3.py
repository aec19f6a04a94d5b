"""XXH3 against numbers of Kafka's own hash library."""

import pytest

from broker.groups.modern.xxh3 import xxh3_64

# Of bytes 0, 1, 2, ... 255, 0, ...: written by hash4j 0.22, which Kafka 4.2 uses. A size of each
# way that lengths have, and the edges between them.
VECTORS = {
    0: 0x2D06800538D394C2,
    1: 0xC44BDFF4074EECDB,
    2: 0xD6645FC3051A9457,
    3: 0x5F4299FC161C9CBB,
    4: 0x60DAB036A58211F2,
    7: 0x0CD2084A62406B69,
    8: 0x3A1C2D7C85AF88F8,
    9: 0xE9612598145BB9DC,
    15: 0x55ECEDC2B87BB042,
    16: 0x8355E3A6F61770DB,
    17: 0x9EF341A99DE37328,
    32: 0x3523581FE96E4C05,
    33: 0xE68C56BA88991E58,
    64: 0x6187EB9089B0ED55,
    65: 0x6928C76CE90422D0,
    96: 0x278A3E12EA046DFB,
    97: 0xE7220282DC4E14F4,
    128: 0x85C6174C7FF4C46B,
    129: 0xEC7642B431BA3E5A,
    144: 0x028E1E35FF4C0A01,
    240: 0x375A384D957FE865,
    241: 0x02E8CD95421C6D02,
    256: 0x9408A4433B952D71,
    1024: 0xA870F92984398D22,
    1025: 0x78C86E91EE939852,
    1088: 0x280D4E7CB6579EB6,
    2048: 0xDD420471FF96BD00,
    5000: 0x1B74BDA2C82A8C7A,
}


@pytest.mark.parametrize(("size", "expected"), VECTORS.items())
def test_every_length_class(size: int, expected: int) -> None:
    """The same number."""
    data = bytes(position & 0xFF for position in range(size))
    assert xxh3_64(data) == expected


def test_every_byte_counts() -> None:
    """One bit anywhere gives another number."""
    for size in (1, 7, 15, 100, 200, 1500):
        data = bytearray(size)
        hashes = {xxh3_64(bytes(data))}
        for position in range(size):
            data[position] = 1
            hashes.add(xxh3_64(bytes(data)))
            data[position] = 0
        assert len(hashes) == size + 1
