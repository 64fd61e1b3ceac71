#!/usr/bin/env bash
# What a short visit to a machine with an NVIDIA GPU is for: ops and models on it beside the reference, and times beside
# PyTorch. The machine needs the driver, CUDA's NVRTC (cuBLASLt and cuDNN where they are to be measured) and python3 with
# torch; AutoGraph travels with all libraries that it is linked to but those of the compiler.
#
#     bench/h200.sh bundle FILE.tar.xz [BUILD]     here: packs a build (default: build-bundle, which it makes)
#     tar xf FILE.tar.xz && autograph-gpu/h200.sh run [SECONDS [PART...]]     there
#
# `run` does what is left of the parts (default: ops models table training sanitize) for so many seconds (default: 500), keeps what it
# has in $WORK (default: /tmp/autograph-gpu-work), copies it to $OUT where that is set, and can be called again: exit
# code 0 all done, 75 more to do. DEVICE names another device than cuda, PYTHON another python3, MEASUREMENTS a file that an
# earlier visit left as $OUT/measurements.db.
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
    cmake --build "$build" --target autograph_cli bench_device_ops
  fi
  local folder
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # the name is known now, not at the end
  trap "rm -rf '$folder'" EXIT
  local to=$folder/autograph-gpu
  mkdir -p "$to/bin" "$to/lib" "$to/bench"
  local program
  for program in autograph bench_device_ops; do
    local from=$build/$program
    [ -x "$from" ] || from=$build/bench/$program
    [ -x "$from" ] || fail "no $program in $build"
    strip -o "$to/bin/$program" "$from"
    local library
    for library in $(libraries_of "$from"); do cp -Ln "$library" "$to/lib/"; done
  done
  cp "$here"/peers.py "$here"/peer_*.py "$here"/train_*.py "$to/bench/"
  cp "$here/h200.sh" "$to/"
  # What makes PyTorch modules of the zoo's files: Python alone, and left out where it cannot be had.
  python3 -m pip download -q --no-deps --dest "$to/wheels" onnx2torch 2>/dev/null || echo "without onnx2torch" >&2
  tar -C "$folder" -cJf "$file" autograph-gpu
  local bytes
  bytes=$(stat -c %s "$file")
  echo "$file: $((bytes / 1048576)) MiB"
  [ "$bytes" -lt $((64 * 1048576)) ] || fail "more than 64 MiB"
}

# ---- Running -------------------------------------------------------------------------------------------------------

device=${DEVICE:-cuda}
python=${PYTHON:-python3}
work=${WORK:-/tmp/autograph-gpu-work}
end=0
more=0

left() { echo $((end - $(date +%s))); }

# limited SECONDS COMMAND...: with the libraries of the bundle, for so long at most, and no longer than there is time.
limited() {
  local seconds=$1 time_left
  shift
  time_left=$(left)
  [ "$seconds" -le "$time_left" ] || seconds=$time_left
  [ "$seconds" -gt 0 ] || return 124
  LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout -k 5 "$seconds" "$@"
}

lines_of() { if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi; }

# Starts the program again where a fault of the device ended it; what ended it twice has gone wrong otherwise.
ops_with() {
  local file=$1 samples=$2 fruitless=0 lines
  shift 2
  while [ "$(left)" -gt 10 ]; do
    lines=$(lines_of "$file")
    local code=0
    limited 100000 "$@" "$here/bin/bench_device_ops" "$device" "$file" "$samples" $(($(left) - 5)) >&2 || code=$?
    [ "$code" -ne 0 ] || return 0
    [ "$code" -ne 7 ] || return 0 # no such device: doctor.json says why
    [ "$(lines_of "$file")" -gt "$lines" ] || fruitless=$((fruitless + 1))
    [ "$fruitless" -lt 3 ] || return 0
  done
  more=1
}

ops() { ops_with "$work/ops.jsonl" 3; }

sanitize() {
  command -v compute-sanitizer >/dev/null || return 0
  local tool
  for tool in memcheck racecheck; do
    [ ! -e "$work/$tool.done" ] || continue
    ops_with "$work/$tool.jsonl" 1 compute-sanitizer --tool "$tool" --log-file "$work/$tool.log"
    [ "$more" -eq 1 ] || touch "$work/$tool.done"
  done
}

zoo_models() { limited 30 "$here/bin/autograph" zoo list --json | "$python" -c '
import json, sys
print("\n".join(model["name"] for model in json.load(sys.stdin)["models"]))'; }

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
  mkdir -p "$work/models"
  for name in ${MODELS:-$(zoo_models)}; do
    one "$work/models/$name.json" 120 "$here/bin/autograph" check "zoo:$name" --device "$device" --json
  done
}

# A file for each model, so that a call that ends in one begins with it.
table() {
  local name code
  mkdir -p "$work/table" "$work/site"
  if ls "$here"/wheels/*.whl >/dev/null 2>&1; then
    "$python" -m pip install -q --no-index --no-deps --target "$work/site" "$here"/wheels/*.whl >&2 || true
  fi
  local flags="--device $device --tune --cache-dir $work/cache"
  for name in ${MODELS:-$(zoo_models)}; do
    local file=$work/table/$name.json
    [ ! -s "$file" ] || continue
    if [ "$(left)" -lt 60 ]; then
      more=1
      return 0
    fi
    code=0
    PYTHONPATH=$work/site limited 240 "$python" "$here/bench/peers.py" "$work" --models "zoo:$name" --quick \
      --autograph "$here/bin/autograph" --flags="$flags" --peers "${PEERS:-torchscript_cuda,inductor_cuda}" \
      --variant "list=$here/bin/autograph $flags --strategy list" --json "$file.part" >"$file.log" 2>&1 || code=$?
    if [ -s "$file.part" ]; then
      mv "$file.part" "$file"
    else
      printf '{"error": {"code": %d, "message": "see %s.log"}}\n' "$code" "${file##*/}" >"$file"
    fi
  done
}

# Training steps beside those of PyTorch. A file for each model, as above.
training() {
  local name
  mkdir -p "$work/training"
  for name in ${TRAINING:-mlp cnn resnet18 transformer lstm}; do
    local file=$work/training/$name.json code=0
    [ ! -s "$file" ] || continue
    if [ "$(left)" -lt 60 ]; then
      more=1
      return 0
    fi
    limited 200 "$python" "$here/bench/train_peers.py" --models "$name" --device "$device" --rounds 3 --seconds 1 \
      --autograph "$here/bin/autograph" --peers "${TRAINING_PEERS:-eager,compile}" --json "$file.part" >"$file.log" 2>&1 || code=$?
    if [ -s "$file.part" ]; then
      mv "$file.part" "$file"
    else
      printf '{"error": {"code": %d, "message": "see %s.log"}}\n' "$code" "${file##*/}" >"$file"
    fi
  done
}

keep() {
  [ -n "${OUT:-}" ] || return 0
  mkdir -p "$OUT"
  LD_LIBRARY_PATH=$here/lib "$here/bin/autograph" cache export "$OUT/measurements.db" --cache-dir "$work/cache" >&2 || true
  tar -C "$work" --exclude=./cache --exclude=./site -cJf "$OUT/results.tar.xz" .
  cp "$work"/*.json "$work"/*.jsonl "$OUT/" 2>/dev/null || true
}

run() {
  local seconds=${1:-500}
  [ $# -eq 0 ] || shift
  local parts=("$@")
  [ ${#parts[@]} -gt 0 ] || parts=(ops models table training sanitize)
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
      ops | models | table | training | sanitize) "$part" ;;
      *) fail "part: expected ops, models, table, training or sanitize, got '$part'" ;;
    esac
    [ "$(left)" -gt 0 ] || more=1
  done
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
