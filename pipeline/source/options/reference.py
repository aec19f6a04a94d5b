"""Writes the table of options in docs/pipeline.md: `python -m pipeline.source.options.reference`.

Everything outside the two marks is written by hand and stays.
"""

import sys
from pathlib import Path

from pipeline.source.options.option_table import OPTIONS, WITHOUT_EFFECT

PATH = Path(__file__).resolve().parents[3] / "docs" / "pipeline.md"

BEGIN = "<!-- Options: written by `make docs` from pipeline/source/options/option_table.py -->\n"
END = "<!-- End of the options -->\n"


def reference() -> str:
    """The table."""
    rows = [
        f"| `{option.name}` | {_cell(option.default)} | {_cell(option.meaning)} |\n"
        for option in OPTIONS
    ]
    others = ", ".join(f"`{name}`" for name in WITHOUT_EFFECT)
    return (
        "| option | default | meaning |\n|---|---|---|\n"
        + "".join(rows)
        + "\nNames are compared without regard to case. Accepted without effect, and named in one "
        f"warning: {others}, and every\nother `kafka.*`. Any other name is a mistake.\n"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_reference(document: str) -> str:
    """The document with a fresh table.

    Raises:
        ValueError: The marks are not there, each once and in order.
    """
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        raise ValueError(f"{PATH.name} lacks the marks of the table of options")
    return f"{head}{BEGIN}\n{reference()}\n{END}{tail}"


def main() -> int:
    """Write the table, or with `--check` say whether it is fresh."""
    document = PATH.read_text(encoding="utf-8")
    fresh = with_reference(document)
    if "--check" in sys.argv[1:]:
        if document != fresh:
            sys.stderr.write(f"{PATH.name} is stale: run `make docs`\n")
        return 0 if document == fresh else 1
    PATH.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
