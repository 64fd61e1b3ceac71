#!/usr/bin/env bash
# What a short visit to a machine with an NVIDIA GPU is for: ops and models on it beside the reference, and times beside
# PyTorch. The machine needs the driver, CUDA's NVRTC (cuBLASLt and cuDNN where they are to be measured) and python3 with
# torch; AutoGraph travels with all libraries that it is linked to but those of the compiler.
#
#     bench/h200.sh bundle FILE.tar.xz [BUILD]     here: packs a build (default: build-bundle, which it makes)
#     tar xf FILE.tar.xz && autograph-gpu/h200.sh run [SECONDS [PART...]]     there
#
# `run` does what is left of the parts (default: warm ops models times plans table training sanitize) for so many seconds
# (default: 500), keeps what it has in $WORK (default: /tmp/autograph-gpu-work), copies it to $OUT where that is set, and can be
# called again: exit code 0 all done, 75 more to do. DEVICE names another device than cuda, PYTHON another python3, JOBS
# how many programs may run beside each other where no times are taken, MODELS and STRATEGIES others than all of the zoo
# and `sequential,list`, MEASUREMENTS a file that an earlier visit left as $OUT/measurements.db.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

fail() {
  echo "h200.sh: $*" >&2
  exit 2
}

# ---- Packing -------------------------------------------------------------------------------------------------------

# Libraries that a program is linked to, but those that come with every compiler.
libraries_of() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -vE '/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
}

bundle() {
  local file=$1 build=${2:-} root=$here/..
  if [ -z "$build" ]; then
    build=$root/build-bundle
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DAG_WITH_Z3=OFF -DAG_BUILD_TESTS=ON
    cmake --build "$build" --target autograph_cli bench_device_ops bench_device_models
  fi
  local folder
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # the name is known now, not at the end
  trap "rm -rf '$folder'" EXIT
  local to=$folder/autograph-gpu
  mkdir -p "$to/bin" "$to/lib" "$to/real" "$to/bench"
  local program
  for program in autograph bench_device_ops bench_device_models; do
    local from=$build/$program
    [ -x "$from" ] || from=$build/bench/$program
    [ -x "$from" ] || fail "no $program in $build"
    strip -o "$to/real/$program" "$from"
    # For this program alone: what else is started finds the libraries of the machine.
    printf '#!/bin/sh\nhere=$(dirname "$(dirname "$(readlink -f "$0")")")\n%s exec "$here/real/%s" "$@"\n' \
      'LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}' "$program" >"$to/bin/$program"
    chmod +x "$to/bin/$program"
    local library
    for library in $(libraries_of "$from"); do cp -Ln "$library" "$to/lib/"; done
  done
  cp "$here"/peers.py "$here"/peer_*.py "$here"/train_*.py "$to/bench/"
  cp "$here/h200.sh" "$to/"
  # What makes PyTorch modules of the zoo's files: Python alone, and left out where it cannot be had.
  python3 -m pip download -q --no-deps --dest "$to/wheels" onnx2torch 2>/dev/null || echo "without onnx2torch" >&2
  XZ_DEFAULTS=-T0 tar -C "$folder" -cJf "$file" autograph-gpu
  local bytes
  bytes=$(stat -c %s "$file")
  echo "$file: $((bytes / 1048576)) MiB"
  [ "$bytes" -lt $((64 * 1048576)) ] || fail "more than 64 MiB"
}

# ---- Running -------------------------------------------------------------------------------------------------------

device=${DEVICE:-cuda}
trained=${TRAINING-mlp cnn resnet18 transformer lstm}
jobs=${JOBS:-$((($(nproc) + 1) / 2))}
python=${PYTHON:-python3}
work=${WORK:-/tmp/autograph-gpu-work}
end=0
more=0

left() { echo $((end - $(date +%s))); }

# limited SECONDS COMMAND...: for so long at most, and no longer than there is time.
limited() {
  local seconds=$1 time_left
  shift
  time_left=$(left)
  [ "$seconds" -le "$time_left" ] || seconds=$time_left
  [ "$seconds" -gt 0 ] || return 124
  timeout -k 5 "$seconds" "$@"
}

lines_of() { if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi; }

# restarted FILE COMMAND...: starts a program that continues FILE again where a fault of the device ended it; what ended
# it twice has gone wrong otherwise. Exit code 1: more to do.
restarted() {
  local file=$1 fruitless=0 lines
  shift
  while [ "$(left)" -gt 10 ]; do
    lines=$(lines_of "$file")
    local code=0
    limited 100000 "$@" >&2 || code=$?
    [ "$code" -ne 0 ] || return 0
    [ "$code" -ne 7 ] || return 0 # no such device: doctor.json says why
    [ "$(lines_of "$file")" -gt "$lines" ] || fruitless=$((fruitless + 1))
    [ "$fruitless" -lt 3 ] || return 0
  done
  return 1
}

# beside COMMAND...: in the background, where no more than $jobs are.
beside() {
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || more=1; done
  "$@" &
}

all_beside() {
  while [ -n "$(jobs -p)" ]; do wait -n || more=1; done
}

# ops_with NAME SAMPLES COMMAND...: in as many programs as may run beside each other.
ops_with() {
  local name=$1 samples=$2 part
  shift 2
  for ((part = 0; part < jobs; ++part)); do
    beside restarted "$work/$name.$part.jsonl" "$@" "$here/bin/bench_device_ops" "$device" "$work/$name.$part.jsonl" \
      "$samples" $(($(left) - 5)) "$part" "$jobs"
  done
}

ops() {
  ops_with ops 3
  all_beside
}

sanitize() {
  command -v compute-sanitizer >/dev/null || return 0
  local tool
  for tool in memcheck racecheck; do
    ops_with "$tool" 1 compute-sanitizer --tool "$tool" --log-file "$work/$tool.%p.log"
  done
  all_beside
}

zoo_models() { limited 30 "$here/bin/autograph" zoo list --json | "$python" -c '
import json, sys
print("\n".join(model["name"] for model in json.load(sys.stdin)["models"]))'; }

# settle FILE CODE: takes what a program wrote beside FILE, or notes that it ended without.
settle() {
  if [ -s "$1.part" ]; then
    mv "$1.part" "$1"
  else
    printf '{"error": {"code": %d, "message": "see %s.log"}}\n' "$2" "${1##*/}" >"$1"
  fi
}

# one FILE SECONDS COMMAND...: the JSON that a command prints, once; what ends without any is noted as an error.
one() {
  local file=$1 seconds=$2 code=0
  shift 2
  [ ! -s "$file" ] || return 0
  if [ "$(left)" -lt 20 ]; then
    more=1
    return 0
  fi
  limited "$seconds" "$@" >"$file.part" 2>"$file.log" || code=$?
  if [ ! -s "$file.part" ]; then
    if [ "$code" -ge 124 ] && [ "$(left)" -lt 5 ]; then
      more=1 # the time of this call was over, not that of the model
      return 0
    fi
    printf '{"error": {"code": %d, "message": "ended without a result, see %s.log"}}\n' "$code" "${file##*/}" >"$file.part"
  fi
  mv "$file.part" "$file"
}

models() {
  local name
  for name in ${MODELS:-$(zoo_models)}; do
    beside restarted "$work/models.$name.jsonl" "$here/bin/bench_device_models" "$device" "$work/models.$name.jsonl" \
      "${STRATEGIES:-sequential,list}" "$name"
  done
  all_beside
}

# What AutoGraph takes by itself, a model after the other: kernels that are measured ("times"), and what a search finds
# ("plans").
times() {
  local name
  mkdir -p "$work/times"
  for name in ${MODELS:-$(zoo_models)}; do
    one "$work/times/$name.json" 60 "$here/bin/autograph" bench "zoo:$name" --device "$device" --threads 2 --tune \
      --seconds 0.5 --json --cache-dir "$work/cache"
  done
}

plans() {
  local name
  all_beside # trials on the device want it to themselves
  mkdir -p "$work/plans"
  for name in ${MODELS:-$(zoo_models)}; do
    one "$work/plans/$name.json" 120 "$here/bin/autograph" optimize "zoo:$name" -o "$work/plans/$name.agplan" --json \
      --device "$device" --threads 2 --budget "${BUDGET:-12}" --cache-dir "$work/cache"
  done
}

# peers_row SECONDS NAME FLAGS..: runs of a model of the zoo beside those of PyTorch.
peers_row() {
  PYTHONPATH=$work/site limited "$1" "$python" "$here/bench/peers.py" "$work" --models "zoo:$2" \
    --autograph "$here/bin/autograph" --peers "${PEERS:-torchscript_cuda,inductor_cuda}" "${@:3}"
}

# What PyTorch compiles for a model it keeps on disk: made while other parts run, since it takes minutes of the processor
# and little of the device. Times taken here are dropped.
warm_row() {
  peers_row 300 "$1" --rounds 1 --loads 1 --seconds 0 --warmup 0 --flags="--device $device --cache-dir $work/cache-warm" \
    --beside "$work/warm/$1.lock" --json "$work/warm/$1.json" >"$work/warm/$1.log" 2>&1 || true
}

warm_rows() {
  local name
  [ "$(left)" -le 240 ] || end=$(($(date +%s) + 240)) # what is not compiled by then is left to the parts that need it
  for name in $trained; do
    [ -s "$work/warm/training.$name.json" ] || beside training_row "$name" "$work/warm/training.$name.json" --rounds 1 --seconds 0
  done
  for name in ${MODELS:-$(zoo_models)}; do
    [ -s "$work/warm/$name.json" ] || beside warm_row "$name"
  done
  all_beside
}

warm() {
  mkdir -p "$work/warm"
  python_packages
  warm_rows &
}

python_packages() {
  mkdir -p "$work/site"
  if ls "$here"/wheels/*.whl >/dev/null 2>&1 && [ ! -e "$work/site/onnx2torch" ]; then
    "$python" -m pip install -q --no-index --no-deps --target "$work/site" "$here"/wheels/*.whl >&2 || true
  fi
}

# A file for each model, so that a call that ends in one begins with it. All load beside each other, since inductor takes
# minutes, and are timed one after the other; the kernels of AutoGraph have been measured by `times`. Where `plans` found
# a plan, it is the row "autograph", and "tuned" stands beside it.
table_row() {
  local name=$1 code=0 file=$work/table/$1.json flags="--device $device --cache-dir $work/cache" own=()
  if [ -s "$work/plans/$name.agplan" ]; then
    own=(--flags="$flags" --plan "$work/plans/$name.agplan" --variant "tuned=$here/bin/autograph $flags --tune")
  else
    own=(--flags="$flags --tune")
  fi
  peers_row 400 "$name" --quick "${own[@]}" --beside "$work/table.lock" --json "$file.part" >"$file.log" 2>&1 || code=$?
  [ -s "$file.part" ] || [ "$(left)" -gt 5 ] || return 1
  settle "$file" "$code"
}

table() {
  local name
  all_beside # what `warm` compiles
  mkdir -p "$work/table"
  python_packages
  for name in ${MODELS:-$(zoo_models)}; do
    [ -s "$work/table/$name.json" ] || beside table_row "$name"
  done
  all_beside
}

# training_row NAME FILE FLAGS..: steps of training beside those of PyTorch.
training_row() {
  local name=$1 file=$2 code=0
  shift 2
  limited 300 "$python" "$here/bench/train_peers.py" --models "$name" --device "$device" --cold-pages "$@" \
    --autograph "$here/bin/autograph" --flags="--tune --cache-dir $work/cache-training" \
    --peers "${TRAINING_PEERS:-eager,compile}" --json "$file.part" >"$file.log" 2>&1 || code=$?
  [ -s "$file.part" ] || [ "$(left)" -gt 5 ] || return 1
  settle "$file" "$code"
}

# A file for each model, as above.
training() {
  local name
  all_beside
  mkdir -p "$work/training"
  for name in $trained; do
    [ -s "$work/training/$name.json" ] || beside training_row "$name" "$work/training/$name.json" --rounds 3 --seconds 1 \
      --beside "$work/table.lock"
  done
  all_beside
}

keep() {
  [ -n "${OUT:-}" ] || return 0
  mkdir -p "$OUT"
  "$here/bin/autograph" cache export "$OUT/measurements.db" --cache-dir "$work/cache" >&2 || true
  # Plans have their weights with them.
  tar -C "$work" --exclude='./cache*' --exclude=./site --exclude='*.agplan' -cJf "$OUT/results.tar.xz" .
  cp "$work/doctor.json" "$OUT/"
}

# How many lines say what, and those that do not say "right".
summary() {
  local part
  for part in ops models memcheck racecheck; do
    cat "$work/$part".*.jsonl 2>/dev/null | grep -v '"begun"' | sed -E 's/.*"status":"([^"]*)".*/\1/' | sort | uniq -c |
      sed "s/^/$part: /" || true
  done
  cat "$work"/*.jsonl 2>/dev/null | grep -vE '"status":"(begun|right)"' | cut -c1-400 || true
}

run() {
  local seconds=${1:-500}
  [ $# -eq 0 ] || shift
  local parts=("$@")
  [ ${#parts[@]} -gt 0 ] || parts=(warm ops models times plans table training sanitize)
  end=$(($(date +%s) + seconds))
  mkdir -p "$work"
  export XDG_CACHE_HOME=$work/cache
  # What an earlier visit measured.
  if [ -n "${MEASUREMENTS:-}" ] && [ ! -e "$work/imported" ]; then
    limited 30 "$here/bin/autograph" cache import "$MEASUREMENTS" --cache-dir "$work/cache" >&2 && touch "$work/imported"
  fi
  trap keep EXIT
  limited 60 "$here/bin/autograph" doctor --json >"$work/doctor.json" || true
  nvidia-smi -q -d CLOCK,TEMPERATURE,POWER >"$work/gpu.txt" 2>&1 || true
  local part
  for part in "${parts[@]}"; do
    case $part in
      ops | models | warm | times | plans | table | training | sanitize) "$part" ;;
      *) fail "part: expected ops, models, warm, times, plans, table, training or sanitize, got '$part'" ;;
    esac
    [ "$(left)" -gt 0 ] || more=1
  done
  summary
  [ "$more" -eq 0 ] || exit 75
}

case ${1:-} in
  bundle)
    [ $# -ge 2 ] || fail "bundle: which file?"
    bundle "${@:2}"
    ;;
  run) run "${@:2}" ;;
  *) fail "expected bundle or run, got '${1:-}'" ;;
esac
