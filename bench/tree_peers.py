#!/usr/bin/env python3
"""Trains the Tree-LSTM of `autograph train tree` line by line on the tape, captured, and in PyTorch (line by line), on
the same trees, from the same weights and with the same batches: losses and speed.

    python3 bench/python_trees.py trees.npz
    cmake --build build --target bench_trees
    python3 bench/tree_peers.py trees.npz [--program build/bench_trees] [--steps 45] [--threads 1] [--rounds 3]

Programs run in turns, one at a time, without dropout. Prints a line of JSON: samples a second of processor time, the
median over rounds, that of AutoGraph divided by PyTorch's, and by how much losses differ from those line by line at
most. Exit status 6 where they differ by more than TOLERANCE. `learn_peers.py tree` compares accuracies.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import learn_models
import learn_peers

TOLERANCE = 1e-3
WARM_UP = 2  # steps that are not measured, as in trees.cpp


def run_torch(options, state):
    task = learn_models.Task("tree", options.trees, 0)
    model = task.make(0.0)
    model.load_state_dict(state)
    return learn_peers.TorchRun(task, 0, task.epochs, options.steps, model, warm_up=WARM_UP, clock=time.process_time)


def run_ours(options, how, weights):
    words = [options.program, options.trees, how, "--from", str(weights), "--steps", str(options.steps)]
    words += ["--threads", str(options.threads)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", help="what python_trees.py has written")
    parser.add_argument("--program", default="build/bench_trees")
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    state = learn_models.Task("tree", options.trees, 0).make(0.0).state_dict()
    speeds, losses = {"eager": [], "captured": [], "torch": []}, {}
    with tempfile.TemporaryDirectory() as folder:
        weights = pathlib.Path(folder, "weights.safetensors")
        learn_peers.write_safetensors(weights, state)
        for _ in range(options.rounds):
            for how in ("eager", "captured"):
                result = run_ours(options, how, weights)
                speeds[how].append(result["samples_per_cpu_second"])
                losses[how] = result["losses"]
            peer = run_torch(options, state)
            speeds["torch"].append(peer.samples_per_second)
            losses["torch"] = peer.losses
    median = {name: statistics.median(of_rounds) for name, of_rounds in speeds.items()}
    apart = {name: max(abs(a - b) for a, b in zip(losses["eager"], losses[name])) for name in ("captured", "torch")}
    ratios = {how: median[how] / median["torch"] for how in ("eager", "captured")}
    print(json.dumps({"steps": options.steps, "threads": options.threads, "torch_version": torch.__version__,
                      "samples_per_cpu_second": median, "to_torch": ratios, "losses_apart": apart}))  # fmt: skip
    return 0 if max(apart.values()) <= TOLERANCE else 6


if __name__ == "__main__":
    sys.exit(main())
