#!/usr/bin/env python3
"""The mirror rule: tests of src/A/B.cpp are found in tests/A/B_test.cpp.

    python3 tools/check_tests.py [ROOT]

Sources need no test file of their own: ops, rules, passes and kernels are tested by what goes over all of them. But a
test that is named after one source, or one folder, lies where that source or folder would have it, and every folder
directly below src has tests. Exit code: 0 right, 1 a violation, each printed with the place expected.
"""

import collections
import pathlib
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent


def main():
    places = collections.defaultdict(set)  # stem -> folders of tests that may have STEM_test.cpp
    for path in (ROOT / "src").rglob("*"):
        relative = path.relative_to(ROOT / "src")
        if path.suffix in (".cpp", ".h") or path.is_dir():
            places[path.stem.removesuffix("-inl")].add(relative.parent.as_posix())
        if path.is_dir():
            places[path.name].add(relative.as_posix())
    bad = 0
    tests = sorted((ROOT / "tests").rglob("*_test.cpp"))
    for test in tests:
        folder, stem = test.relative_to(ROOT / "tests").parent.as_posix(), test.stem.removesuffix("_test")
        top = folder.split("/")[0]
        expected = {place for place in places[stem] if place.split("/")[0] == top}
        if expected and folder not in expected:
            print(f"{test.relative_to(ROOT)}: expected in tests/{' or tests/'.join(sorted(expected))}")
            bad += 1
    tested = {test.relative_to(ROOT / "tests").parts[0] for test in tests}
    for folder in sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir()):
        if folder not in tested:
            print(f"src/{folder}: no test in tests/{folder}")
            bad += 1
    print(f"tests: {len(tests)} files, {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
