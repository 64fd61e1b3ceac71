#!/usr/bin/env bash
# The main job, from nothing: installs what is missing, builds, then imports, checks, runs and times one CNN and one
# transformer of the zoo and prints a table. Takes no arguments; run it in a fresh clone on Debian 12.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
make
python3 scripts/demo_table.py build/autograph
