#!/usr/bin/env bash
# Fuzzes each target for a while, seeded with the ONNX operator tests, and leaves crashes in build-fuzz/crashes.
# usage: fuzz.sh [SECONDS_PER_TARGET] [TARGET...]      (default: 600 seconds, all targets)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(onnx text npy safetensors)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)"
scripts/node_test_data.sh build-fuzz/node_tests_data
mkdir -p build-fuzz/crashes
status=0
for target in "${targets[@]}"; do
  corpus=build-fuzz/corpus/$target
  mkdir -p "$corpus"
  if [ "$target" = onnx ] && [ -z "$(ls "$corpus")" ]; then
    for model in build-fuzz/node_tests_data/*/model.onnx; do
      cp "$model" "$corpus/$(basename "$(dirname "$model")")"
    done
  fi
  echo "fuzz_$target: $seconds s"
  build-fuzz/fuzz_"$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/crashes/$target-" "$corpus" "tests/fuzz/regressions/$target" 2>"build-fuzz/$target.log" ||
    { status=1; echo "fuzz_$target found something: see build-fuzz/$target.log"; }
  grep -E 'stat::number_of_executed_units|stat::new_units_added' "build-fuzz/$target.log" || true
done
exit $status
