#!/usr/bin/env bash
# Fails when a C++ file is not formatted. usage: check_format.sh [ROOT]   (CLANG_FORMAT names the program)
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
git ls-files 'src/*.h' '*.cpp' '*.cu' '*.cuh' 'include/*.h' 'tests/*.h' | sort -u | xargs "${CLANG_FORMAT:-clang-format-14}" --dry-run --Werror
