#!/usr/bin/env bash
# Runs clang-tidy 14 over sources of src; exit 1 where it finds something. A file takes 5 to 10 seconds.
#
# usage: tidy.sh [-p BUILD_DIR] [--analyze] [--all | --since COMMIT | FILE...]     (default: build-tidy, --since main)
#
# --since takes the .cpp files below src that differ from COMMIT, uncommitted ones included. A changed header is only
# seen through the sources that include it: name those, or take --all. --analyze adds the static analyzer (30 s a file).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 2; }
build=build-tidy since=main all=0 checks=() files=()
while [ $# -gt 0 ]; do
  case $1 in
    -p) [ $# -ge 2 ] || usage; build=$2; shift ;;
    --since) [ $# -ge 2 ] || usage; since=$2; shift ;;
    --all) all=1 ;;
    --analyze) checks=("--checks=clang-analyzer-*,-clang-analyzer-optin.*") ;;
    -*) usage ;;
    *) files+=("$1") ;;
  esac
  shift
done
tidy=$(command -v clang-tidy-14) || { echo "clang-tidy-14 is missing: apt-get install clang-tidy-14" >&2; exit 2; }
# Configured, not built: each source needs a command of its own, which groups do not have.
[ "$build" != build-tidy ] || cmake --preset test -B build-tidy -DAG_UNITY=OFF -DAG_BUILD_TESTS=OFF >/dev/null
[ -e "$build/compile_commands.json" ] || { echo "$build/compile_commands.json is missing: configure it with AG_UNITY=OFF" >&2; exit 2; }

if [ $all = 1 ]; then
  mapfile -t files < <(git ls-files 'src/*.cpp')
elif [ ${#files[@]} -eq 0 ]; then
  base=$(git merge-base HEAD "$since")
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp'
                         git ls-files --others --exclude-standard -- 'src/*.cpp'; } | sort -u)
fi
[ ${#files[@]} -gt 0 ] || { echo "tidy: no source changed since $since"; exit 0; }

# Without g++'s precompiled headers, which clang cannot read: so a source that leans on one is found, too.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
sed -E 's/ -Winvalid-pch -include [^ ]+cmake_pch\.hxx//; s/ -fpch-preprocess//' "$build/compile_commands.json" \
  >"$commands/compile_commands.json"

# clang-tidy counts the warnings it hides on stderr, and says there too when a file does not compile.
tidy_one() {
  local log
  log=$("$@" 2>&1) && return 0
  printf '%s\n' "$log" | grep -vE '^[0-9]+ warnings?( and [0-9]+ errors?)? generated|^Suppressed |^Use -header-filter|treated as errors?$'
  return 1
}
export -f tidy_one
if printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" \
    bash -c 'tidy_one "$@"' _ "$tidy" -p "$commands" --quiet --extra-arg=-Wno-unknown-warning-option "${checks[@]}"; then
  echo "tidy: ${#files[@]} files, nothing found"
else
  echo "tidy: findings above, in ${#files[@]} files" >&2
  exit 1
fi
