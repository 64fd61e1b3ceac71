#!/usr/bin/env bash
# All chains of the exhaustive test of epilogues, on every instruction set that this machine has:
#
#   scripts/sweep_epilogues.sh [BUILD_DIR] [STRIDE]      one case of every STRIDE (1 = all; default 1)
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build-test}/epilogues_test
export AG_EPILOGUES=${2:-1} OMP_WAIT_POLICY=passive
parts=$(nproc)
logs=$(mktemp -d)
echo "logs in $logs"

failed=0
for isa in ALL AVX512_CORE AVX2 AVX SSE41; do
  begin=$SECONDS
  running=()
  for ((part = 0; part < parts; ++part)); do
    AG_EPILOGUES_PARTS=$parts AG_EPILOGUES_PART=$part DNNL_MAX_CPU_ISA=$isa "$program" >"$logs/$isa.$part.log" 2>&1 &
    running+=($!)
  done
  for process in "${running[@]}"; do wait "$process" || failed=1; done
  echo "$isa: $((SECONDS - begin)) s"
  grep -hE '^[0-9]+ (cases|plans)' "$logs/$isa".*.log || true
done
exit $failed
