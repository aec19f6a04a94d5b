"""The committed messages are those of the source beside them."""

from pathlib import Path

from broker.controller.store.etcd import rpc_pb2
from broker.controller.store.etcd.generate import ROOT, SOURCE, generate


def test_the_generated_modules_are_up_to_date(tmp_path: Path) -> None:
    """Whoever changes rpc.proto runs `make codegen`."""
    generate(tmp_path)
    for name in ("rpc_pb2.py", "rpc_pb2.pyi"):
        path = Path(SOURCE).with_name(name)
        assert (tmp_path / path).read_text() == (ROOT / path).read_text()
    assert rpc_pb2.DESCRIPTOR.name == SOURCE
