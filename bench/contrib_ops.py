#!/usr/bin/env python3
"""Compares contrib ops (com.microsoft) and classic models (ai.onnx.ml) with ONNX Runtime, one by one, on random calls.

    python bench/contrib_ops.py [--cases N] [--seed S] [--only OP,OP] [--autograph build/autograph] [--keep DIR]

Makes models of one node, inputs and initializers at random, runs ONNX Runtime without its optimiser and `autograph run`
on the same inputs and compares every output. Results of 8 bits may differ by one step, since the runtimes add up in
another order. Calls that ONNX Runtime itself refuses are skipped and counted. Exit code: 0 all agree, 6 one differs.
"""

import argparse
import collections
import concurrent.futures
import concurrent.futures.process
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

import classic_cases  # adds its calls to OPS
from contrib_cases import OPS, Case


def run_here(model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


class Peer:
    """ONNX Runtime in a process of its own: some of its ops divide by zero."""

    def __init__(self):
        self.pool = None

    def run(self, model, inputs):
        if not self.pool:
            self.pool = concurrent.futures.ProcessPoolExecutor(1)
        try:
            return self.pool.submit(run_here, model.SerializeToString(), inputs).result()
        except concurrent.futures.process.BrokenProcessPool:
            self.pool = None
            raise


PEER = Peer()


def run_ours(autograph, folder, model, inputs):
    onnx.save(model, os.path.join(folder, "model.onnx"))
    command = [autograph, "run", os.path.join(folder, "model.onnx"), "--output-dir", folder]
    for name, array in inputs.items():
        path = os.path.join(folder, f"in_{name}.npy")
        numpy.save(path, array.astype(str) if array.dtype.kind == "O" else array)
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[:300]}")
    return [numpy.load(os.path.join(folder, f"{i}_{v.name}.npy")) for i, v in enumerate(model.graph.output)]


def difference(name, ours, peer, case):
    """What is wrong with the output of this name, or ""."""
    if peer.dtype.kind == "O":
        peer = peer.astype(str)
    if ours.shape != peer.shape or (ours.dtype != peer.dtype and peer.dtype.kind != "U"):
        return f"{ours.dtype}{list(ours.shape)} instead of {peer.dtype}{list(peer.shape)}"
    if ours.size == 0:
        return ""
    if peer.dtype.kind == "U":
        return "" if (ours == peer).all() else f"{ours.tolist()} instead of {peer.tolist()}"
    if name in case.meaningless:
        ours, peer = (numpy.where(case.meaningless[name], 0, array) for array in (ours, peer))
    gap = numpy.abs(ours.astype(numpy.float64) - peer.astype(numpy.float64))
    if ours.dtype.kind in "iu":
        return "" if gap.max() <= case.steps else f"off by {gap.max():.0f} steps"
    limit = case.tolerance * max(1.0, float(numpy.abs(peer).max()))
    return "" if gap.max() <= limit else f"off by {gap.max():.3g}, limit {limit:.3g}"


def check(autograph, name, seed, keep):
    """One random call: "ok", "skipped", or what is wrong."""
    random = numpy.random.default_rng(seed)
    case = Case(random, name)
    OPS[name](case, random)
    model = case.model()
    inputs = {k: v for k, v in case.operands.items() if k not in case.constants}
    try:
        expected = PEER.run(model, inputs)
    except Exception as error:  # what ONNX Runtime refuses says nothing about us
        if os.environ.get("SHOW_SKIPPED"):
            print(f"{name} seed {seed}: skipped: {str(error)[:300]}")
        return "skipped"
    with tempfile.TemporaryDirectory() as scratch:
        folder = scratch
        if keep:
            folder = os.path.join(keep, f"{name}_{seed}")
            os.makedirs(folder, exist_ok=True)
        try:
            actual = run_ours(autograph, folder, model, inputs)
        except RuntimeError as error:
            return f"{error} ({case.attributes})"
    for value, ours, peer in zip(model.graph.output, actual, expected):
        problem = difference(value.name, ours, peer, case)
        if problem:
            shapes = {k: list(v.shape) for k, v in case.operands.items()}
            return f"{value.name}: {problem} ({case.attributes}, {shapes})"
    return "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20, help="calls of each op")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="ops to try, separated by commas")
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--keep", help="folder in which the models stay")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(OPS)
    failed = False
    for name in names:
        counts, problems = collections.Counter(), []
        for i in range(arguments.cases):
            result = check(arguments.autograph, name, arguments.seed * 100000 + i, arguments.keep)
            counts[result if result in ("ok", "skipped") else "wrong"] += 1
            if result not in ("ok", "skipped"):
                problems.append(f"    seed {arguments.seed * 100000 + i}: {result}")
        print(f"{name:34} {counts['ok']:4} ok {counts['skipped']:4} skipped {counts['wrong']:4} wrong", flush=True)
        for problem in problems[:5]:
            print(problem)
        failed = failed or counts["wrong"] > 0
    return 6 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
