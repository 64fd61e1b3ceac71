#!/usr/bin/env bash
# The full sweep over graphs as exporters write them: builds tests/random_graph optimised and runs COUNT graphs (100,000 unless
# given) by plans of all kinds against the reference, with progress on stderr. Further options go to the program: see
# tests/random_graph/idiom_graphs.cpp, and --seed S to run one graph again.
#
#   scripts/idioms.sh [COUNT] [--first SEED] [--workers N] [--save FOLDER] ...
set -euo pipefail
cd "$(dirname "$0")/.."
count=100000
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  count=$1
  shift
fi
cmake --preset release -B build-idioms -DAG_BUILD_TESTS=ON > /dev/null
cmake --build build-idioms --target idiom_graphs
# Workers share the processors: threads that spin while they wait would take them from each other.
exec env GOMP_SPINCOUNT=0 build-idioms/idiom_graphs --count "$count" --workers "$(nproc)" "$@"
