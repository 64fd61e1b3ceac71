#!/usr/bin/env python3
"""Times AutoGraph and other runtimes on the same ONNX files, in turns, and prints ratios.

    python bench/peers.py DIR [--models a,b] [--rounds N] [--threads N] [--quick] [--json FILE]
        [--peers onnxruntime,openvino,torchscript,inductor] [--autograph build/autograph] [--flags=--tune]
        [--variant 'NAME=PROGRAM FLAGS'] [--optimize SECONDS]

DIR holds the files that export_models.py writes; `zoo:NAME` among the models is exported by the program. Each runtime
is a process of its own (peer_worker.py, or `autograph bench --serve`). A round asks one after the other to warm up
and to run for a while; only one process is ever active: the others are stopped by a signal, since a pool of threads
that waits for work may spin. A round counts with its fastest run, a runtime with the median of its rounds, and the
spread is that of the rounds. The ratio is AutoGraph to the faster of ONNX Runtime and OpenVINO: the median of the
ratios of each round, whose runs lie seconds apart, so that a machine whose speed drifts disturbs it less than the
times. Beside it stands that of the fastest rounds, and where the two differ much, the machine was disturbed; other
builds and flags (--variant) have ratios of their own. Before any time is taken, outputs must agree: the largest
|difference| is at most TOLERANCE times the largest magnitude.

Load to first result and peak memory come from fresh processes, also in turns: from making the session to the first
output, without starting the interpreter and importing the package, and VmHWM after one run. The interpreter with its
package is inside that figure; its size alone is printed below. torchscript and inductor run the module that was
exported, or what onnx2torch makes of the file, and are slow to start; they take no part in the ratio. Those on a GPU
(torchscript_cuda, inductor_cuda) do; all runtimes then get inputs on the host, and outputs end there.

With --optimize the row `autograph` is the plan that `autograph optimize` finds in so many seconds, loaded from its
file, and `unoptimised` the file as the others have it. The search takes its time before anything is measured. With
--plan it is a plan that was found before.

Exit code: 0 done, 6 some outputs differ or a runtime failed, 2 usage.
"""

import argparse
import concurrent.futures
import fcntl
import json
import os
import shlex
import statistics
import sys
import tempfile

import peer_processes
import peer_tables

MODELS = [
    "resnet50",
    "resnext50_32x4d",
    "inception_v3",
    "nasnet_large",
    "bert_base",
    "vit_b_16",
    "squeezenet1_1",
    "mobilenet_v3_large",
    "efficientnet_b0",
    "regnet_y_400mf",
    "densenet121",
    "googlenet",
    "convnext_tiny",
    "swin_t",
]
RATIO_PEERS = ("onnxruntime", "openvino", "torchscript_cuda", "inductor_cuda")
USUAL_PEERS = ("onnxruntime", "openvino")
LOADERS = concurrent.futures.ThreadPoolExecutor(16)


def make_peers(options, plan=None):
    """Name -> function that starts it: AutoGraph first, then its variants, then the others."""
    program = [options.autograph, *shlex.split(options.flags)]
    peers = {"autograph": lambda: peer_processes.AutoGraph(program, options.threads, plan)}
    if plan:
        peers["unoptimised"] = lambda: peer_processes.AutoGraph(program, options.threads)
    for variant in options.variant:
        name, _, command = variant.partition("=")
        words = shlex.split(command)
        peers[name] = lambda words=words: peer_processes.AutoGraph(words, options.threads)
    for kind in options.peers:
        peers[kind] = lambda kind=kind: peer_processes.Worker(kind, options.threads)
    return peers


def start_one(name, start, running, given, row):
    """Starts a peer anew and lets it load; it is stopped then, with its row filled in."""
    path, inputs, folder = given
    if "error" in row:
        return
    if name in running:
        running.pop(name).close()
    try:
        peer = start()
        running[name] = peer
        answer = peer.load(path, inputs, tempfile.mkdtemp(dir=folder))
        peer.pause()
    except peer_processes.PeerError as error:
        row["error"] = str(error)
        if name in running:
            running.pop(name).close()
        return
    row["version"] = peer.version
    row["baseline_bytes"] = peer.baseline_bytes
    row.setdefault("loads_ms", []).append(answer["load_ms"])
    row.setdefault("peaks_bytes", []).append(answer["peak_bytes"])
    row["outputs"] = answer["outputs"]


def start_all(options, path, plan, inputs, folder, rows):
    """Starts every peer `loads` times in turns; returns those started last, stopped, with rows filled in."""
    running = {}
    peers = make_peers(options, plan)
    # Beside other runs of this program the time to load says nothing. The threads stay: processes end with the thread
    # that started them.
    each = LOADERS.map if options.beside else map
    for _ in range(options.loads):
        list(each(lambda peer: start_one(*peer, running, (path, inputs, folder), rows[peer[0]]), peers.items()))
    for row in rows.values():
        if "error" not in row:
            row["load_ms"] = min(row["loads_ms"])
            row["peak_bytes"] = min(row.pop("peaks_bytes"))
    return {name: running[name] for name in peers if name in running}


def time_in_turns(options, running, rows):
    for name in running:
        rows[name]["rounds_ms"] = []
    for number in range(options.rounds):
        for name in list(running):
            try:
                answer = running[name].time(options.warmup, options.seconds)
                if number == 0:
                    rows[name]["idle_cpu_share"] = running[name].idle_cpu_share()
                running[name].pause()
            except peer_processes.PeerError as error:
                rows[name]["error"] = str(error)
                running.pop(name).close()
                continue
            rows[name]["rounds_ms"].append(answer["min_ms"])
    for name in running:
        rounds = rows[name]["rounds_ms"]
        rows[name].update(ms=statistics.median(rounds), spread_ms=[min(rounds), max(rounds)])


def ratios(rows):
    """AutoGraph against the best of RATIO_PEERS that were measured, and its load and memory against ONNX Runtime's."""
    own = rows["autograph"]
    times = {name: rows[name]["ms"] for name in RATIO_PEERS if "ms" in rows.get(name, {})}
    result = {}
    if "ms" in own and times and own.get("agrees"):
        result["best_peer"] = min(times, key=times.get)
        best = rows[result["best_peer"]]["rounds_ms"]
        for name, row in rows.items():
            if name not in peer_processes.KINDS and row.get("agrees") and "ms" in row:
                row["ratio"] = statistics.median(mine / other for mine, other in zip(row["rounds_ms"], best))
        result["ratio"] = own["ratio"]
        result["ratio_of_minima"] = own["spread_ms"][0] / min(rows[name]["spread_ms"][0] for name in times)
    other = rows.get("onnxruntime", {})
    for figure in ("load_ms", "peak_bytes"):
        if figure in own and figure in other:
            result[figure.split("_")[0] + "_ratio"] = own[figure] / other[figure]
    return result


def find_plan(options, path, folder, entry):
    """The file of the plan that a search finds, or None where none is asked for."""
    if options.plan or not options.optimize:
        return options.plan
    plan = os.path.join(folder, "found.agplan")
    command = [options.autograph, "optimize", path, "-o", plan, "--budget", str(options.optimize)]
    found = peer_processes.autograph_json([*command, "--threads", str(options.threads), "--json"])
    entry["search"] = {
        key: found[key]
        for key in ("search_seconds", "latency_before_ms", "latency_after_ms", "streams", "tuned", "rules_applied")
    }
    return plan


def exported(options, name, folder):
    """The file of a model of the zoo."""
    path = os.path.join(folder, name + ".onnx")
    peer_processes.autograph_json([options.autograph, "zoo", "export", name, "-o", path, "--json"])
    return path


def measure(options, name, path):
    """One entry of the result."""
    entry = {"model": name}
    with tempfile.TemporaryDirectory() as folder:
        if not path:
            path = exported(options, name, folder)
        plan = find_plan(options, path, folder, entry)
        measure_file(options, name, path, plan, entry)
    return entry


def measure_file(options, name, path, plan, entry):
    info = peer_processes.autograph_json(
        [options.autograph, "info", path, "--roofline", "--threads", str(options.threads), "--json"]
    )
    entry.update(flops=info["flops"], parameter_bytes=info["parameter_bytes"])
    entry["roofline_ms"] = (info.get("roofline") or {}).get("bound_ms")
    rows = {peer: {} for peer in make_peers(options, plan)}
    with tempfile.TemporaryDirectory() as folder:
        inputs = peer_processes.draw_inputs(info["inputs"], name, folder)
        with peer_processes.sharing(options.beside, fcntl.LOCK_SH):
            running = start_all(options, path, plan, inputs, folder, rows)
        try:
            peer_processes.compare_outputs(rows, options.tolerance)
            with peer_processes.sharing(options.beside, fcntl.LOCK_EX):
                time_in_turns(options, running, rows)
        finally:
            for peer in running.values():
                peer.close()
    for row in rows.values():
        row.pop("outputs", None)
    entry["peers"] = rows
    entry.update(ratios(rows))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="where the .onnx files are")
    parser.add_argument(
        "--models", default=",".join(MODELS), help="names, paths to .onnx, zoo:NAME or all (default: the 14 models)"
    )
    parser.add_argument("--peers", default=",".join(USUAL_PEERS), help="the others (default: %(default)s)")
    parser.add_argument("--autograph", default="build/autograph", help="the program (default: %(default)s)")
    parser.add_argument("--flags", default="", help="more flags for `autograph bench`, for example --flags=--tune")
    parser.add_argument(
        "--variant", action="append", default=[], metavar="NAME=PROGRAM FLAGS", help="another AutoGraph, in turns too"
    )
    parser.add_argument("--optimize", type=float, metavar="SECONDS", help="measure what a search of this long finds")
    parser.add_argument("--plan", metavar="FILE", help="measure this plan, of the one model, in the same way")
    parser.add_argument("--rounds", type=int, help="rounds (default: 5, with --quick 3)")
    parser.add_argument("--loads", type=int, help="fresh processes for load and memory (default: 3, with --quick 1)")
    parser.add_argument("--seconds", type=float, help="measured in a round (default: 1, with --quick 0.3)")
    parser.add_argument("--warmup", type=float, help="seconds before that (default: 0.3, with --quick 0.1)")
    parser.add_argument("--threads", type=int, default=2, help="of each runtime (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="share of the magnitude (default: %(default)s)")
    parser.add_argument(
        "--realtime", action="store_true", help="put what is measured before the machine's other work; needs root"
    )
    parser.add_argument(
        "--beside", metavar="FILE", help="a file that other runs of this program are given, too: they load at the same"
        " time, and times are taken one after the other, when all have loaded",
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, for a first look")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON, after each model")
    options = parser.parse_args()
    if not os.access(options.autograph, os.X_OK):
        parser.error(f"--autograph: expected a program, got {options.autograph} (run make first)")
    for name, usual, quick in (("rounds", 5, 3), ("loads", 3, 1), ("seconds", 1.0, 0.3), ("warmup", 0.3, 0.1)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)
        if getattr(options, name) < (0 if name in ("seconds", "warmup") else 1):
            parser.error(f"--{name}: expected more, got {getattr(options, name)}")
    if options.models == "all":
        files = sorted(os.listdir(options.directory))
        options.models = ",".join(os.path.splitext(file)[0] for file in files if file.endswith(".onnx"))
    options.peers = [kind for kind in options.peers.split(",") if kind]
    for kind in options.peers:
        if kind not in peer_processes.KINDS:
            parser.error(f"--peers: expected some of {', '.join(peer_processes.KINDS)}, got {kind}")
    for variant in options.variant:
        if "=" not in variant:
            parser.error(f"--variant: expected NAME=PROGRAM FLAGS, got {variant}")
    return options


def main():
    options = parse_arguments()
    peer_processes.Process.realtime = options.realtime
    result = {"schema": 1, "machine": peer_processes.machine(options), "models": []}
    result["settings"] = {
        name: getattr(options, name)
        for name in ("threads", "rounds", "loads", "seconds", "warmup", "flags", "realtime", "optimize")
    }
    print(peer_tables.heading(result), flush=True)
    for word in options.models.split(","):
        is_zoo = word.startswith("zoo:")
        path = word if word.endswith(".onnx") else os.path.join(options.directory, word + ".onnx")
        name = word[len("zoo:") :] if is_zoo else os.path.splitext(os.path.basename(path))[0]
        try:
            if is_zoo:
                path = None
            elif not os.path.exists(path):
                raise peer_processes.PeerError(f"no file {path} (export_models.py writes it)")
            entry = measure(options, name, path)
        except peer_processes.PeerError as error:
            entry = {"model": name, "error": str(error), "peers": {}}
        result["models"].append(entry)
        print(peer_tables.progress_line(entry), file=sys.stderr, flush=True)
        if options.json:
            peer_tables.write_json(options.json, result)
    print(peer_tables.tables(result))
    return 6 if peer_tables.failures(result) else 0


if __name__ == "__main__":
    sys.exit(main())
