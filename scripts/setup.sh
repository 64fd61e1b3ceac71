#!/usr/bin/env bash
# Installs what AutoGraph needs and this machine lacks: Debian packages, and with --tests the Python package that writes
# the ONNX operator tests. Sourced or run by demo.sh and test.sh; does nothing when everything is there.
set -euo pipefail

packages=(g++ cmake ninja-build make pkg-config git libfmt-dev libhwy-dev libsqlite3-dev libxxhash-dev nlohmann-json3-dev libcli11-dev
  zlib1g-dev libpng-dev libjpeg-dev libtiff-dev libwebp-dev libopenjp2-7-dev
  libprotobuf-dev protobuf-compiler libonnx-dev libdnnl-dev libz3-dev opencl-c-headers graphviz python3)
[ "${1:-}" != --tests ] || packages+=(libgtest-dev librapidcheck-dev python3-venv clang-format-14 man-db pocl-opencl-icd)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}" >&2
  if [ "$(id -u)" -ne 0 ]; then
    echo "not root: run 'apt-get install ${missing[*]}' first" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
