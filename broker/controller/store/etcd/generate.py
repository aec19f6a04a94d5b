"""Writes `rpc_pb2.py` and its types from `rpc.proto`: `make codegen`. For developers only."""

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
SOURCE: Final = "broker/controller/store/etcd/rpc.proto"


def generate(folder: Path) -> None:
    """Write the modules below `folder`, where they lie in the repository.

    Raises:
        RuntimeError: The compiler refuses the source; it has said why.
    """
    from grpc_tools import protoc

    arguments = ["protoc", f"-I{ROOT}", f"--python_out={folder}", f"--pyi_out={folder}", SOURCE]
    if protoc.main(arguments) != 0:
        raise RuntimeError(f"{SOURCE} was refused")


if __name__ == "__main__":
    generate(ROOT)
    sys.exit()
