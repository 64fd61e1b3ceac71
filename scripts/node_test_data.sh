#!/usr/bin/env bash
# Writes the ONNX operator tests to DIR with the pinned Python package `onnx`, once.
# usage: node_test_data.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1
[ ! -e "$dir/index.json" ] || exit 0
venv=$(dirname "$dir")/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r tests/conformance/requirements.txt
"$venv/bin/python" tools/write_node_tests.py "$dir"
