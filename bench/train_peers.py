#!/usr/bin/env python3
"""Times a training step of AutoGraph and of PyTorch on the same models, in turns, and prints ratios.

    python bench/train_peers.py [--models a,b] [--rounds N] [--seconds S] [--threads N] [--peers eager,compile]
        [--batch N] [--optimizer sgd] [--autograph build/autograph] [--flags=--tune] [--device cuda] [--cold-pages]
        [--beside FILE] [--json FILE]
    python bench/train_peers.py --check [--training build/bench/bench_training] [--models a,b] [--steps N]
    python bench/train_peers.py --check --models exports|zoo|export:NAME|zoo:NAME [--autograph build/autograph]

A step is forward, backward and the update of all weights. The models stand in train_models.py; AutoGraph gets them as
ONNX files that torch exports, with the same weights. As in peers.py each runtime is a process of its own and only one
is ever active; a round asks one after the other, a runtime counts with the fastest step of each round and the ratio is
the median over the rounds of PyTorch's time (the better of eager and compiled) to AutoGraph's: above 1 AutoGraph is
faster. `first` is the time to the first step: load and compile, or torch.compile. A virtual machine hands free memory
back to its host, and to get 400 MB again takes it 0.3 to 0.9 s, of whoever asks first: right before each first step
another process touches as much (--cold-pages: none does). Memory is the peak of the process above what it takes before
it has a model. With --device cuda both run there, f32 without TF32, and a step of PyTorch
counts until its loss has come back.

With --check nothing is timed: the gradients of all weights (f32, batch norms with the statistics they were given) and
the losses of some steps of SGD and AdamW (with batch statistics) must equal those of PyTorch in f64: gradients within
GRADIENT_TOLERANCE of the largest one of their weight, losses within LOSS_TOLERANCE or OWN_DIFFERENCES times what those
of PyTorch in f32 are off. Of exports (train_exports.py) and of the zoo only gradients are compared, of a mean squared
error; where the rounding of f32 crosses a kink in every draw, and of all with --f64, in f64 on both sides, within
F64_TOLERANCE. Exit code 6 where they do not agree.
"""

import argparse
import fcntl
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import peer_processes
import train_check
from peer_worker import peak_resident_bytes

KINDS = ("eager", "compile")
MB = 1 << 20
# More than any step here needs, with some that is handed back at once.
TOUCHED_MB = 3072
# Prints the peak of a command in KB.
OWN_MEMORY = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def touch_pages(options):
    """Leaves free memory that the machine itself still holds, for who runs next."""
    if not options.cold_pages:
        subprocess.run([sys.executable, "-c", f"b'1' * ({TOUCHED_MB} << 20)"], check=True)


# ---- The process of PyTorch ------------------------------------------------------------------------------------------


def serve_torch(options):
    """Answers each line {"seconds"} by {"min_ms", "median_ms"}, after one {"first_ms", "before_mb"}."""
    import torch

    import train_models

    before_mb = peak_resident_bytes() / MB
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    device = options.device.partition(":")[0]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name = options.models
    module = train_models.build(name).train().to(device)
    arrays = train_models.draw(name, options.batch)
    x, target = (torch.from_numpy(array).to(device) for array in arrays)
    optimizer = train_models.make_optimizer(options.optimizer, module.parameters(), 1e-3)
    touch_pages(options)
    begin = time.perf_counter()
    mode = "reduce-overhead" if device == "cuda" else "default"  # CUDA graphs
    forward = torch.compile(module, mode=mode) if options.serve == "compile" else module

    def step():
        optimizer.zero_grad()
        loss = train_models.loss_of(name, forward(x), target)
        loss.backward()
        optimizer.step()
        if device != "cpu":
            loss.item()
            torch.cuda.synchronize()

    step()
    first_ms = (time.perf_counter() - begin) * 1e3
    print(json.dumps({"first_ms": first_ms, "before_mb": before_mb, "version": torch.__version__}), file=answers)
    for line in sys.stdin:
        times, stop = [], time.perf_counter() + json.loads(line)["seconds"]
        while len(times) < 3 or time.perf_counter() < stop:
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps({"min_ms": min(times), "median_ms": statistics.median(times)}), file=answers)


class Torch:
    def __init__(self, options, kind, name, batch):
        words = ["--serve", kind, "--models", name, "--batch", str(batch), "--threads", str(options.threads)]
        words += ["--device", options.device, *(["--cold-pages"] if options.cold_pages else [])]
        script = os.path.abspath(__file__)
        self.process = peer_processes.Process([sys.executable, script, *words, "--optimizer", options.optimizer])
        ready = self.process.read_answer()
        self.first_ms, self.version, self.before_mb = ready["first_ms"], ready["version"], ready["before_mb"]
        self.process.pause()

    def time(self, seconds):
        return self.process.ask(json.dumps({"seconds": seconds}))["min_ms"]


class AutoGraph:
    def __init__(self, options, files, name):
        import train_models

        words = [options.autograph, "bench", files["model"], "--train", "--serve", "--threads", str(options.threads)]
        words += ["--loss", train_models.loss_kind(name), "--optimizer", options.optimizer]
        words += ["--device", options.device, *shlex.split(options.flags)]
        words += ["--input", f"x={files['x']}"]  # labels are drawn: the model itself has no input for them
        before_mb = self.own_mb(options)
        touch_pages(options)
        self.process = peer_processes.Process(words)
        ready = self.process.read_answer()
        self.first_ms = ready["compile_ms"] + ready["first_run_ms"]
        self.before_mb = before_mb
        self.process.pause()

    @staticmethod
    def own_mb(options):
        """What the program takes that has read no model."""
        words = [sys.executable, "-c", OWN_MEMORY, options.autograph, "--version"]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) / 1024

    def time(self, seconds):
        return self.process.ask(f"0 {seconds}")["latency_ms"]["min"]


# ---- Timing ----------------------------------------------------------------------------------------------------------


def write_files(name, folder, batch):
    import train_models

    files = {kind: os.path.join(folder, kind + ".npy") for kind in ("x", "target")}
    for kind, array in zip(("x", "target"), train_models.draw(name, batch)):
        numpy.save(files[kind], array)
    files["model"] = os.path.join(folder, name + ".onnx")
    train_models.export(name, files["model"], batch)
    return files


def measure(options, name):
    import train_models

    batch = options.batch or train_models.MODELS[name][1]
    row = {"model": name, "batch": batch, "runtimes": {}}
    running = {}
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(name, folder, batch)
        starts = {"autograph": lambda: AutoGraph(options, files, name)}
        for kind in options.peers:
            starts[kind] = lambda kind=kind: Torch(options, kind, name, batch)
        with peer_processes.sharing(options.beside, fcntl.LOCK_SH):
            for runtime, start in starts.items():
                try:
                    running[runtime] = start()
                    row["runtimes"][runtime] = {"first_ms": running[runtime].first_ms, "rounds_ms": []}
                except peer_processes.PeerError as error:
                    row["runtimes"][runtime] = {"error": str(error)}
        with peer_processes.sharing(options.beside, fcntl.LOCK_EX):
            for _ in range(options.rounds):
                for runtime, peer in running.items():
                    row["runtimes"][runtime]["rounds_ms"].append(peer.time(options.seconds))
                    peer.process.pause()
        for runtime, peer in running.items():
            peak_mb = peak_resident_bytes(peer.process.child.pid) / MB
            row["runtimes"][runtime]["memory_mb"] = peak_mb - peer.before_mb
            peer.process.close()
    for runtime in running:
        figures = row["runtimes"][runtime]
        figures["samples_per_second"] = batch / statistics.median(figures["rounds_ms"]) * 1e3
    if "autograph" in running and len(running) > 1:
        ours = row["runtimes"]["autograph"]["rounds_ms"]
        others = [row["runtimes"][kind]["rounds_ms"] for kind in running if kind != "autograph"]
        row["ratio"] = statistics.median(min(theirs) / our for our, *theirs in zip(ours, *others))
    return row


def print_row(row):
    cells = []
    for runtime, figures in row["runtimes"].items():
        if "error" in figures:
            cells.append(f"{runtime}: {figures['error']}")
        else:
            first = f"(first {figures['first_ms'] / 1e3:.1f} s, {figures['memory_mb']:.0f} MB)"
            cells.append(f"{runtime} {figures['samples_per_second']:9.1f}/s {first}")
    print(f"{row['model']:12} batch {row['batch']:3}  {'  '.join(cells)}  ratio {row.get('ratio', math.nan):.2f}")


# ---- The command line ------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mlp,cnn,resnet18,transformer,lstm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--batch", type=int, help="instead of each model's own")
    parser.add_argument("--optimizer", choices=train_check.RATES, default="sgd")
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--flags", default="", help="more flags for `autograph bench`, for example --flags=--tune")
    parser.add_argument("--device", default="cpu", help="of both; PyTorch knows cpu and cuda alone")
    parser.add_argument("--training", default="build/bench/bench_training")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--f64", action="store_true", help="with --check: of exports and of the zoo also in f64")
    parser.add_argument("--json")
    parser.add_argument("--cold-pages", action="store_true", help="count what a virtual machine takes to get memory")
    parser.add_argument("--beside", metavar="FILE", help="as in peers.py: load beside others, be timed alone")
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    return parser.parse_args()


def all_names(options, names):
    """With the names of all exports and of the whole zoo in place of these words."""
    import train_exports

    found = []
    for name in names:
        if name == "exports":
            found += [train_check.EXPORT + export for export in train_exports.NAMES]
        elif name == "zoo":
            listed = json.loads(train_check.output_of([options.autograph, "zoo", "list", "--json"]))["models"]
            found += [train_check.ZOO + model["name"] for model in listed]
        else:
            found.append(name)
    return found


def main():
    options = parse()
    if options.serve:
        serve_torch(options)
        return 0
    names = options.models.split(",")
    if options.check:
        return 0 if all([train_check.check(options, name, write_files) for name in all_names(options, names)]) else 6
    rows = []
    for name in names:
        rows.append(measure(options, name))
        print_row(rows[-1])
        sys.stdout.flush()
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 6 if any("error" in figures for row in rows for figures in row["runtimes"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
