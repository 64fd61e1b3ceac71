#!/usr/bin/env bash
# Writes the ONNX operator tests to DIR with the pinned Python package `onnx`, once for each version of package and tool.
# usage: node_test_data.sh DIR
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1
maker=$(cat tests/conformance/requirements.txt tools/write_node_tests.py | sha256sum)
[ ! -e "$dir/index.json" ] || [ "$(cat "$dir/maker" 2>/dev/null)" != "$maker" ] || exit 0
rm -rf "$dir"
venv=$(dirname "$dir")/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r tests/conformance/requirements.txt
"$venv/bin/python" tools/write_node_tests.py "$dir"
echo "$maker" >"$dir/maker"
