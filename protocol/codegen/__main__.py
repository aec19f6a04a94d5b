"""Writes every module of `protocol/messages`: `python -m protocol.codegen`."""

from pathlib import Path

from protocol.codegen.module import ModuleWriter
from protocol.codegen.schema import load

MESSAGES = Path(__file__).resolve().parent.parent / "messages"


def render() -> dict[str, str]:
    """Give the text of every generated file by name."""
    return {f"{api.name}.py": ModuleWriter(api).write() for api in load()}


def main() -> None:
    """Write what has changed and delete modules of APIs that are gone."""
    files = render()
    for path in MESSAGES.glob("*.py"):
        if path.name not in files and path.name != "__init__.py":
            path.unlink()
    for name, text in files.items():
        path = MESSAGES / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
