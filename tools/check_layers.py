#!/usr/bin/env python3
"""Checks that every include points to the same folder or a lower layer, as layers.json says, and that headers that
many sources include do without the costly ones of the standard library.

usage: check_layers.py [ROOT]

Prints one line per violation, `file:line: what`, and exits 1 when there is one.
"""
import collections
import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def folder_of(include, rules):
    """The src/ folder that an include belongs to, or None for a foreign header."""
    if include.startswith("autograph/"):
        name = include[len("autograph/"):]
        for key, folder in rules["public_headers"].items():
            if name == key or (key.endswith("/") and name.startswith(key)):
                return folder
        return "?"
    head = include.split("/")[0]
    return head if "/" in include and head in rules["layers"] else None


def problems_of(path, root, rules):
    relative = path.relative_to(root).as_posix()
    parts = relative.split("/")
    own = parts[1] if parts[0] == "src" else None
    if parts[0] == "include":
        own = folder_of(relative[len("include/"):], rules)
        if own == "?":
            yield 1, "public header without a layer: add it to layers.json"
            return
    clients, layers = rules["clients"], rules["layers"]
    is_client = any(relative.startswith(folder + "/") for folder in clients["folders"])
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        include = match.group(1)
        for prefix, home in rules["exclusive_headers"].items():
            if include.startswith(prefix) and not relative.startswith(home):
                yield number, f"{include} may be included in {home} only"
        target = folder_of(include, rules)
        if target == "?":
            yield number, f"{include} has no layer: add it to layers.json"
        elif target is None or target == own:
            continue
        elif is_client:
            if not include.startswith("autograph/") and target not in clients["allow"]:
                yield number, f"a client of the public API includes {include}"
        elif own in layers:
            higher = layers[target] > layers[own]
            same = layers[target] == layers[own] and [own, target] not in rules["allow"]
            if higher or same:
                yield number, f"{own} (layer {layers[own]}) includes {include} ({target}, layer {layers[target]})"


def included_by(path, include, root):
    """The file of ours that an include names, or None."""
    for folder in (root / "include", root / "src", root / "tests", path.parent):
        if (folder / include).is_file():
            return (folder / include).resolve()
    return None


def costly_headers(root, rules):
    """(header, what): headers that include a costly one and that more than the allowed number of files include."""
    tops = ("src", "include", "examples", "tests", "bench")
    paths = [path for top in tops for path in sorted((root / top).rglob("*")) if path.suffix in SOURCES]
    readers, costly = collections.defaultdict(set), {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if not match:
                continue
            if match.group(1) in rules["headers"] and path.suffix == ".h":
                costly.setdefault(path.resolve(), match.group(1))
            included = included_by(path, match.group(1), root)
            if included:
                readers[included].add(path.resolve())
    for header, include in sorted(costly.items()):
        found, stack = set(), [header]
        while stack:
            more = readers[stack.pop()] - found
            found |= more
            stack += more
        if len(found) > rules["max_files"]:
            yield header, f"includes <{include}>, and {len(found)} files include it (limit {rules['max_files']})"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    rules = json.loads((root / "layers.json").read_text())
    bad = 0
    for top in ("src", "include", "examples"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            for number, what in problems_of(path, root, rules):
                print(f"{path.relative_to(root)}:{number}: {what}")
                bad += 1
    for header, what in costly_headers(root, rules["costly_headers"]):
        print(f"{header.relative_to(root)}:1: {what}")
        bad += 1
    print(f"layers: {bad} violation{'' if bad == 1 else 's'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
