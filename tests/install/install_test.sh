#!/usr/bin/env bash
# Installs the build into a temporary prefix, then builds and runs a project that finds it with find_package.
# usage: install_test.sh BUILD_DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" >"$prefix/install.log" || { cat "$prefix/install.log"; exit 1; }
cmake -S "$here/consumer" -B "$prefix/consumer" -DCMAKE_PREFIX_PATH="$prefix" >"$prefix/configure.log" ||
  { cat "$prefix/configure.log"; exit 1; }
cmake --build "$prefix/consumer" >"$prefix/build.log" || { cat "$prefix/build.log"; exit 1; }
"$prefix/consumer/consumer"
