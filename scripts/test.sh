#!/usr/bin/env bash
# All tests, from nothing: installs what is missing, builds, runs. Takes no arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --tests
scripts/node_test_data.sh build-test/node_tests_data
cmake --preset test
cmake --build --preset test -j "$(nproc)"
ctest --test-dir build-test --output-on-failure -j "$(nproc)"
