#!/usr/bin/env python3
"""Which sources can be compiled together: prints "GROUP PATH" for each that shares a group with others.

    tools/unity_groups.py LIST [--size N] [--across]

LIST is a file with a path per line. Groups have sources of one folder (of any with --across), at most N of them, no two
of which give the same name to different things of their own (in `namespace {`): together they would not compile, or one
file would call the other's. CMake compiles a group as one unit (AG_UNITY), which takes a third of the time: most of it
goes into headers, and into templates that each file instantiates anew.
"""

import argparse
import os
import re
from collections import defaultdict

# The last word before what follows a declared name: parameters, a value, a base class or the end.
FUNCTION = re.compile(r"([A-Za-z_]\w*)\(")
TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|union|enum(?: class)?) (?:\[\[\w+\]\] )?(\w+)")
ENUM = re.compile(r"^enum (\w+)(?: : [\w:]+)? \{(.*)\};")  # its names are names of the file
ALIAS = re.compile(r"^using (\w+) =")
CONSTANTS = re.compile(r"\b(k[A-Z]\w*)(?:\[.*?\])* =")  # several may stand in one declaration
VARIABLE = re.compile(r"([A-Za-z_]\w*)(?:\[.*?\])* ?(?:=|;|\{)")
MACRO = re.compile(r"^#define (\w+)")


def own_names(path):
    """Names that the file defines in its anonymous namespaces, and its macros."""
    names, is_own = set(), False
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("namespace {"):
                is_own = True
            elif line.startswith("}  // namespace\n"):
                is_own = False
            elif MACRO.match(line):
                names.add(MACRO.match(line)[1])
            elif is_own and re.match(r"[A-Za-z_\[]", line) and not line.startswith("namespace"):
                names.update(declared(line))
    return names


def declared(line):
    """What a line at the outermost level may declare; rather too many names than too few."""
    if line.startswith(("TEST(", "TEST_F(", "TEST_P(", "TYPED_TEST(", "INSTANTIATE_", "public:", "private:")):
        return []
    if ENUM.match(line):
        return [ENUM.match(line)[1], *re.findall(r"\bk[A-Z]\w*", ENUM.match(line)[2])]
    for pattern in (TYPE, ALIAS):
        if pattern.match(line):
            return [pattern.match(line)[1]]
    head = line.split("=")[0] if "=" in line else line
    return FUNCTION.findall(head)[:2] + VARIABLE.findall(line)[:1] + CONSTANTS.findall(line)


def groups_of(paths, size, across):
    """Lists of two paths or more."""
    folders = defaultdict(list)
    for path in sorted(paths):
        folders["" if across else os.path.dirname(path)].append(path)
    groups = []
    for members in folders.values():
        count = -(-len(members) // size)
        open_groups = [([], set()) for _ in range(count)]
        for path in members:
            names = own_names(path)
            fitting = [g for g in open_groups if len(g[0]) < size and not g[1] & names]
            group = min(fitting, key=lambda g: len(g[0]), default=None)
            if group is None:
                group = ([], set())
                open_groups.append(group)
            group[0].append(path)
            group[1].update(names)
        groups += [g[0] for g in open_groups if len(g[0]) > 1]
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("--size", type=int, default=10, help="sources in a group (default: %(default)s)")
    parser.add_argument("--across", action="store_true", help="of any folders")
    options = parser.parse_args()
    with open(options.list, encoding="utf-8") as file:
        paths = file.read().split("\n")
    for number, group in enumerate(groups_of(filter(None, paths), options.size, options.across)):
        for path in group:
            print(f"unity_{number} {path}")


if __name__ == "__main__":
    main()
