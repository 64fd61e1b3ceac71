#!/usr/bin/env python3
"""Layers of ONNX files that take longer in AutoGraph than in ONNX Runtime, by the profilers of both.

    python bench/peer_layers.py FILE.onnx... [--rounds N] [--threads N] [--autograph build/autograph] [--flags=--tune]
        [--ratio R] [--share S]

Both run in turns, a layer counts with its fastest run. A step of AutoGraph is compared with all nodes of ONNX Runtime
that do its work, as far as their names tell: those that either made of several have the name of one of them, or of its
output. Printed are steps that take R times as long (1.3 unless told) and at least a share S of the sum longer (0.01),
the slowest first, with kernel and layout; then the sums. Where only a part of a step was found there, it looks slower
than it is: look at what the node fused.

Exit code: 0 done, 1 a runtime failed, 2 usage.
"""

import argparse
import json
import os
import subprocess
import sys

from peer_profiles import keep_least, node_times_of_onnxruntime

# What ONNX Runtime puts behind the names of nodes that it makes of others.
SUFFIXES = ("", "_nchwc", "_output_0", "_output_0_nchwc", "_token_0")


def steps_of_autograph(options, model):
    command = [options.autograph, "profile", model, "--json", "--threads", str(options.threads)]
    command += options.flags.split()
    document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {(op["name"], op["kernel"], op["layout"]): op["ms"] for op in document["ops"]}


def nodes_of_onnxruntime(options, model):
    command = [sys.executable, __file__, model, "--threads", str(options.threads), "--worker"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(options, model):
    ours, theirs = {}, {}
    for _ in range(options.rounds):
        keep_least(ours, steps_of_autograph(options, model))
        keep_least(theirs, nodes_of_onnxruntime(options, model))
    total = sum(ours.values())
    rows, taken = [], set()
    for (name, kernel, layout), ms in ours.items():
        names = {part.strip() + suffix for part in name.split(" + ") for suffix in SUFFIXES} & theirs.keys() - taken
        taken |= names
        rows.append((ms - sum(theirs[n] for n in names), ms, name, kernel, layout, bool(names)))
    print(f"{os.path.basename(model)}: {total:.3f} ms, ONNX Runtime {sum(theirs.values()):.3f} ms")
    for more, ms, name, kernel, layout, is_found in sorted(rows, reverse=True):
        if is_found and more > options.share * total and ms > options.ratio * (ms - more):
            print(f"  {ms:8.3f} {ms - more:8.3f}  {kernel}  {layout}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--flags", default="")
    parser.add_argument("--ratio", type=float, default=1.3)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        times = node_times_of_onnxruntime(options.models[0], options.threads)
        print(json.dumps({name: ms for (name, _), ms in times.items()}))
        return 0
    for model in options.models:
        try:
            compare(options, model)
        except subprocess.CalledProcessError as error:
            print(f"{model}: {error}\n{error.stderr}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
