#!/usr/bin/env python3
"""Checks the size limits: 800 lines a file, 100 lines a function, 120 columns, 25 files a folder.

usage: check_sizes.py [ROOT] [--list N]

Exits 1 when a limit is broken. --list N prints the N longest files and functions. Functions are found by indentation:
the formatter puts the opening line of a definition in column 0 or inside classes, and its closing brace under it.
"""
import argparse
import collections
import pathlib
import re
import sys

MAX_FILE, MAX_FUNCTION, MAX_COLUMNS, MAX_FOLDER = 800, 100, 120, 25
# Folders that may have more files: users include these headers by name.
WIDE_FOLDERS = {"include/autograph"}
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".py"}
# A line that opens a body and is no namespace, class, initialiser list or array.
OPENS = re.compile(
    r"^(?P<indent> *)(?!namespace|class|struct|enum|union|extern|#|//|static const|const |constexpr).*\)[^;=]*\{$"
)


def functions_of(lines):
    """(first line, length) of every function definition."""
    for number, line in enumerate(lines):
        match = OPENS.match(line)
        if not match or len(match.group("indent")) > 2:
            continue
        closing = match.group("indent") + "}"
        for end in range(number + 1, len(lines)):
            if lines[end].startswith(closing):  # "});" of an argument as well
                yield number + 1, end - number + 1
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--list", type=int, default=0, metavar="N")
    args = parser.parse_args()
    files, functions, bad = [], [], 0
    for top in ("src", "include", "tests", "examples", "bench", "tools"):
        for path in sorted((args.root / top).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            name = path.relative_to(args.root).as_posix()
            lines = path.read_text(encoding="utf-8").splitlines()
            files.append((len(lines), name))
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_COLUMNS and "http" not in line and 'R"' not in line:
                    print(f"{name}:{number}: {len(line)} columns (limit {MAX_COLUMNS})")
                    bad += 1
            if path.suffix != ".py":
                functions += [(length, f"{name}:{number}") for number, length in functions_of(lines)]
    limited = (name for _, name in files if name.startswith(("src/", "include/", "tests/")))
    folders = collections.Counter(name.rpartition("/")[0] for name in limited)
    for folder, count in sorted(folders.items()):
        if count > MAX_FOLDER and folder not in WIDE_FOLDERS:
            print(f"{folder}: {count} files (limit {MAX_FOLDER}): split it by what the files are about")
            bad += 1
    for length, name in files:
        if length > MAX_FILE:
            print(f"{name}: {length} lines (limit {MAX_FILE})")
            bad += 1
    for length, name in functions:
        if length > MAX_FUNCTION:
            print(f"{name}: function of {length} lines (limit {MAX_FUNCTION})")
            bad += 1
    for title, items in (("files", files), ("functions", functions)):
        for length, name in sorted(items, reverse=True)[: args.list]:
            print(f"{title[:-1]} {length:5d}  {name}")
    print(f"sizes: {len(files)} files, {sum(n for n, _ in files)} lines, {len(functions)} functions, {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
