#!/usr/bin/env bash
# All chains of the exhaustive test of epilogues, on every instruction set that this machine has: 2.1 million cases on
# each, some two hours of one processor altogether, in parts of some seconds each:
#
#   scripts/sweep_epilogues.sh [BUILD_DIR] [STRIDE] [--shard I/N] [--logs DIR]
#
# STRIDE: one case of every STRIDE (1 = all, the default). --shard 2/8 runs the second eighth of the parts. With --logs
# the logs stay in DIR, and parts that this build has passed there are not run again: a sweep that was stopped goes on.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "sweep_epilogues: $1 (scripts/sweep_epilogues.sh [BUILD_DIR] [STRIDE] [--shard I/N] [--logs DIR])" >&2
  exit 2
}

positional=()
shard=1 shards=1 logs=
while (($#)); do
  case $1 in
    --shard)
      [[ ${2:-} =~ ^([0-9]+)/([0-9]+)$ ]] || fail "--shard: expected I/N, got '${2:-}'"
      shard=$((10#${BASH_REMATCH[1]})) shards=$((10#${BASH_REMATCH[2]}))
      shift
      ;;
    --logs)
      logs=${2:-}
      [[ $logs ]] || fail "--logs: expected a folder"
      shift
      ;;
    -*) fail "unknown option $1" ;;
    *) positional+=("$1") ;;
  esac
  shift
done
((shard >= 1 && shard <= shards)) || fail "--shard: expected 1 to N of N, got $shard/$shards"
export program=${positional[0]:-build-test}/epilogues_test
export AG_EPILOGUES=${positional[1]:-1} OMP_WAIT_POLICY=passive
# Nearly every case makes primitives of its own. A full cache is searched for its oldest one each time: an eighth of all.
export DNNL_PRIMITIVE_CACHE_CAPACITY=8
[[ -x $program ]] || fail "no $program: build it, or name its folder"
[[ $logs ]] || logs=$(mktemp -d)
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)
# What another build or another stride has passed says nothing here.
export folder=$logs/stride-$AG_EPILOGUES-$(sha256sum "$program" | cut -c1-12)
mkdir -p "$folder"
echo "logs in $folder"

# Of each instruction set. Those that ran before must be the same ones.
export AG_EPILOGUES_PARTS=240

run_part() {
  local log=$folder/$1.$2.log
  grep -qs '^\[  PASSED  \]' "$log" && return
  local begin=$SECONDS
  if AG_EPILOGUES_PART=$2 DNNL_MAX_CPU_ISA=$1 "$program" >"$log.unfinished" 2>&1; then
    mv "$log.unfinished" "$log"
    echo "$1, part $2 of $AG_EPILOGUES_PARTS: passed, $((SECONDS - begin)) s"
  else
    echo "$1, part $2 of $AG_EPILOGUES_PARTS: FAILED, see $log.unfinished"
    return 1
  fi
}
export -f run_part

failed=0
for isa in ALL AVX512_CORE AVX2 AVX SSE41; do
  for ((part = shard - 1; part < AG_EPILOGUES_PARTS; part += shards)); do echo "$isa $part"; done
done | xargs -P "$(nproc)" -L 1 bash -c 'run_part "$0" "$1"' || failed=1

cases=$(grep -hoE '^[0-9]+ (cases|plans)' "$folder"/*.log 2>/dev/null | awk '{sum += $1} END {print sum + 0}')
echo "$(find "$folder" -name '*.log' | wc -l) of $((5 * AG_EPILOGUES_PARTS)) parts passed, $cases cases"
exit $failed
