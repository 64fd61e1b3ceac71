#!/usr/bin/env python3
"""Two types of one name in one namespace: the linker takes one's functions for both, and says nothing. And definitions
of ops that are declared by hand: ops/defs.h declares them all, made from src/ops/CMakeLists.txt. And words that have a
plain one in the field.

    python3 tools/check_names.py [ROOT]

Looks at struct, class and enum definitions that begin a line in .h and .cpp files, outside unnamed namespaces; for
words in their texts and names.
Exit code: 0 none, 1 some.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("include", "src", "tests")
NAMESPACE = re.compile(r"namespace ([\w:]+) \{")
DEFINITION = re.compile(r"(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{")
# Words of our own, and what others call it.
PLAIN_WORDS = {"champion": "incumbent", "challenger": "candidate", "contender": "candidate"}
OWN_WORD = re.compile("|".join(PLAIN_WORDS), re.IGNORECASE)
DECLARED_OP = re.compile(r"const OpDef& \w+_def\(\);")


def definitions(path):
    """Yields (namespace, name) of the types that a file defines."""
    namespace, is_unnamed = "", False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("namespace {"):
            is_unnamed = True
        elif line == "}  // namespace":
            is_unnamed = False
        elif found := NAMESPACE.match(line):
            namespace = found.group(1)
        elif (found := DEFINITION.match(line)) and not is_unnamed:
            yield namespace, found.group(1)


def own_words(path):
    """Yields (line, word) of words that have a plain one; line 0 is the name of the file."""
    lines = [path.name, *path.read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        for found in OWN_WORD.finditer(line):
            yield number, found.group().lower()


def main():
    places = collections.defaultdict(set)
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    for path in paths:
        for name in definitions(path):
            places[name].add(str(path.relative_to(ROOT)))
    by_hand = 0
    num_own = 0
    for path in paths:
        for line, word in own_words(path):
            num_own += 1
            print(f"{path.relative_to(ROOT)}:{line}: '{word}': expected '{PLAIN_WORDS[word]}'")
        declared = sum(DECLARED_OP.match(line) is not None for line in path.read_text(encoding="utf-8").splitlines())
        by_hand += declared
        if declared:
            print(f"{path.relative_to(ROOT)}: declares {declared} ops by hand: include ops/defs.h")
    wrong = {name: files for name, files in places.items() if len(files) > 1}
    for (namespace, name), files in sorted(wrong.items()):
        print(f"{namespace}::{name}: defined in {', '.join(sorted(files))}")
    print(f"names: {len(places)} types, {len(wrong)} defined twice, {by_hand} ops declared by hand, "
          f"{num_own} words of our own")
    return 1 if wrong or by_hand or num_own else 0


if __name__ == "__main__":
    sys.exit(main())
