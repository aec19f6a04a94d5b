"""Certificates and keys are looked at before a server is asked.

With files of no use gRPC would say, for as long as it is asked, that no server is reached.
"""

from pathlib import Path

import pytest

from broker.node.cluster_store import access_of
from broker.node.tls_files import check_authority, check_certificate
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from config.store_address import StoreAddressKind
from storage.environment.local_filesystem import LocalFilesystem
from tests.harness.certificates import make_certificate


def test_a_certificate_and_its_key_are_taken(tmp_path: Path) -> None:
    key, certificate = (path.read_bytes() for path in make_certificate(tmp_path))
    check_authority(certificate, "it")
    check_authority("# Behörde\n".encode() + certificate + certificate, "a bundle with comments")
    check_certificate(key, certificate, "key", "certificate")


def test_what_is_none_is_refused_with_its_setting_and_path(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"no PEM")
    (tmp_path / "other").mkdir()
    key, certificate = map(str, make_certificate(tmp_path))
    other_key, _ = map(str, make_certificate(tmp_path / "other"))
    text = str(tmp_path / "text")

    def refusal(**files: str) -> str:
        settings = BrokerConfig().replace(
            metadata_store=StoreAddressKind().parse("metadata.store", "etcds://one"),
            **{f"metadata_store_tls_{name}_file": path for name, path in files.items()},
        )
        with pytest.raises(StartupError) as refused:
            access_of(settings, LocalFilesystem())
        return str(refused.value)

    assert refusal(ca=text) == f"metadata.store.tls.ca.file: {text} holds no certificate (PEM)"
    assert refusal(ca=key).endswith("holds no certificate (PEM)")
    assert refusal(key=text, certificate=certificate) == (
        f"metadata.store.tls.key.file: {text} holds no private key (PEM, not encrypted)"
    )
    assert refusal(key=key, certificate=text) == (
        f"metadata.store.tls.certificate.file: {text} holds no certificate (PEM)"
    )
    assert refusal(key=other_key, certificate=certificate) == (
        f"metadata.store.tls.key.file: {other_key} is not the key of {certificate}"
    )
