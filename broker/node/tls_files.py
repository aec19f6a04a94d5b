"""PEM files of a cluster's store, looked at before they are used.

gRPC says of a file that it cannot read no more than that no server is reached, and of a key that is
not the certificate's neither: a start would wait for a server that is there.
"""

import ssl
from contextlib import suppress

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from broker.runtime.startup_errors import StartupError


def check_authority(data: bytes, what: str) -> None:
    """Check that there is a certificate in it.

    By OpenSSL, which takes what gRPC takes: bundles of many years are not all by the book.

    Args:
        data: PEM.
        what: The setting and the path.

    Raises:
        StartupError: There is none.
    """
    with suppress(ValueError, ssl.SSLError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
            cadata=data.decode("ascii", "ignore")
        )
        return
    raise StartupError(f"{what} holds no certificate (PEM)")


def check_certificate(key: bytes, certificate: bytes, key_file: str, certificate_file: str) -> None:
    """Check that a private key and a certificate belong together.

    Args:
        key: PEM, not encrypted.
        certificate: PEM; those of its authorities may follow.
        key_file: The setting and the path.
        certificate_file: The setting and the path.

    Raises:
        StartupError: One of them is something else, or they do not.
    """
    try:
        own = load_pem_private_key(key, None).public_key()
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise StartupError(f"{key_file} holds no private key (PEM, not encrypted)") from error
    try:
        named = x509.load_pem_x509_certificates(certificate)[0].public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise StartupError(f"{certificate_file} holds no certificate (PEM)") from error
    if own != named:
        raise StartupError(f"{key_file} is not the key of {certificate_file.partition(': ')[2]}")
