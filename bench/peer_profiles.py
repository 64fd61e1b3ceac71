#!/usr/bin/env python3
"""Where AutoGraph, ONNX Runtime and OpenVINO spend their time on the same ONNX file, by kind of op.

    python bench/peer_profiles.py FILE.onnx [--rounds N] [--threads N] [--autograph build/autograph] [--flags=--tune]
        [--json FILE]

Every runtime is asked by its own profiler, one after the other, N rounds of some runs each, in processes of their own.
A kind of op counts with its fastest round: milliseconds of a run. Profilers make runs longer, those of the others by
some microseconds for each op; peers.py compares whole runs. Ops that a runtime fuses count where most of their work is:
a convolution with its residual is a convolution.

Exit code: 0 done, 1 a runtime failed, 2 usage.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

# Kinds by the words in the name of an op or kernel; the first that fits counts.
KINDS = [
    ("attention", ["attention"]),
    ("convolution", ["conv"]),
    ("product", ["matmul", "gemm", "fullyconnected"]),
    ("recurrent", ["lstm", "gru", "rnn"]),
    ("normalization", ["norm", "mvn"]),
    ("softmax", ["softmax"]),
    ("pool", ["pool"]),
    ("layout", ["reorder", "transpose", "permute"]),
    ("copy", ["concat", "split", "slice", "gather", "reshape", "expand", "pad"]),
]
RUNTIMES = ["AutoGraph", "ONNX Runtime", "OpenVINO"]
RUNS = 20


def kind_of(name):
    lower = name.lower()
    return next((kind for kind, words in KINDS if any(word in lower for word in words)), "elementwise and others")


def inputs_of(model):
    """Numbers for the inputs; extents that are not known become 1."""
    import numpy
    import onnx

    random = numpy.random.default_rng(0)
    graph = onnx.load(model, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        inputs[value.name] = (
            random.standard_normal(dims).astype(dtype) if dtype.kind == "f" else numpy.ones(dims, dtype)
        )
    return inputs


def node_times_of_onnxruntime(model, threads):
    """Milliseconds of the fastest run of each node, by its name and op."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/profile"
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        inputs = inputs_of(model)
        for _ in range(RUNS):
            session.run(None, inputs)
        events = json.loads(pathlib.Path(session.end_profiling()).read_text(encoding="utf-8"))
    times = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            times[event["name"].removesuffix("_kernel_time"), event["args"]["op_name"]].append(event["dur"] / 1e3)
    return {node: min(of_node) for node, of_node in times.items()}


def profile_onnxruntime(model, threads):
    return [(op, ms) for (_, op), ms in node_times_of_onnxruntime(model, threads).items()]


def profile_openvino(model, threads):
    import openvino

    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "PERF_COUNT": True,
    }
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    inputs = inputs_of(model)
    times = collections.defaultdict(list)
    for _ in range(RUNS):
        request.infer(inputs)
        for node in request.get_profiling_info():
            times[node.node_name, node.node_type].append(node.real_time.total_seconds() * 1e3)
    return [(op, min(of_node)) for (_, op), of_node in times.items()]


def profile_autograph(options):
    command = [options.autograph, "profile", options.model, "--json", "--threads", str(options.threads)]
    command += options.flags.split()
    document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # What follows the name of a kernel is an algorithm: products may run as convolutions.
    return [(op["op"] if op["op"] != "fused" else op["kernel"].split()[0], op["ms"]) for op in document["ops"]]


def by_kind(ops):
    sums = collections.Counter()
    for name, ms in ops:
        sums[kind_of(name)] += ms
    return dict(sums)


def profile(runtime, options):
    if runtime == "AutoGraph":
        return by_kind(profile_autograph(options))
    # Their threads may spin on; so each has a process that ends.
    command = [sys.executable, __file__, options.model, "--threads", str(options.threads), "--worker", runtime]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def keep_least(best, times):
    for key, ms in times.items():
        best[key] = min(ms, best.get(key, ms))


def table(best):
    kinds = sorted({kind for times in best.values() for kind in times}, key=lambda k: -best["AutoGraph"].get(k, 0))
    lines = ["| ms | " + " | ".join(RUNTIMES) + " |", "|---" * 4 + "|"]
    for kind in kinds:
        cells = [f"{best[r][kind]:.3f}" if kind in best[r] else "" for r in RUNTIMES]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    lines.append("| sum | " + " | ".join(f"{sum(best[r].values()):.3f}" for r in RUNTIMES) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--flags", default="")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--worker", choices=RUNTIMES[1:], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        ask = profile_onnxruntime if options.worker == "ONNX Runtime" else profile_openvino
        print(json.dumps(by_kind(ask(options.model, options.threads))))
        return 0
    best = {runtime: {} for runtime in RUNTIMES}
    for _ in range(options.rounds):
        for runtime in RUNTIMES:
            try:
                times = profile(runtime, options)
            except subprocess.CalledProcessError as error:
                print(f"{runtime}: {error}\n{error.stderr}", file=sys.stderr)
                return 1
            keep_least(best[runtime], times)
    print(table(best))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(best, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
