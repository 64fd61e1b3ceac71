#!/usr/bin/env python3
"""What documents say of the tree: links lead to files that are there, and a program that is shown "whole" is that file.

    python3 tools/check_docs.py [ROOT]

Looks at *.md at the top and below docs. Exit code: 0 right, 1 a violation, each printed with its place.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
# "[examples/hello.cpp](examples/hello.cpp), whole:" and the block behind it.
WHOLE = re.compile(r"\]\(([^)]+)\), whole:\n\n```\w*\n(.*?)```", re.DOTALL)


def problems_of(path):
    """Yields (line, what)."""
    text = path.read_text(encoding="utf-8")
    prose = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for found in LINK.finditer(prose):
        target = found.group(1)
        if "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
            yield text.count("\n", 0, found.start()) + 1, f"{target}: no such file"
    for found in WHOLE.finditer(text):
        program = path.parent / found.group(1)
        if program.is_file() and program.read_text(encoding="utf-8") != found.group(2):
            yield text.count("\n", 0, found.start()) + 1, f"expected {found.group(1)} as it is"


def main():
    paths = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    bad, shown = 0, 0
    for path in paths:
        shown += len(WHOLE.findall(path.read_text(encoding="utf-8")))
        for line, what in problems_of(path):
            bad += 1
            print(f"{path.relative_to(ROOT)}:{line}: {what}")
    print(f"docs: {len(paths)} documents, {shown} programs shown whole, {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
