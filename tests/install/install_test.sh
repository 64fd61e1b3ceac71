#!/usr/bin/env bash
# Installs the build into a temporary prefix, then builds and runs projects that find it with find_package: a user's, and
# a backend of its own.
# usage: install_test.sh BUILD_DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" >"$prefix/install.log" || { cat "$prefix/install.log"; exit 1; }
for project in consumer backend; do
  folder=$prefix/$project
  cmake -S "$here/$project" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" >"$prefix/configure.log" ||
    { cat "$prefix/configure.log"; exit 1; }
  cmake --build "$folder" >"$prefix/build.log" || { cat "$prefix/build.log"; exit 1; }
  "$folder/consumer"
done
