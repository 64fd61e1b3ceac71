#!/usr/bin/env python3
"""Trains what `autograph train TASK` trains in PyTorch, too: the same model, data, held-out samples, optimiser and
schedule. Prints both accuracies and both speeds.

    python3 bench/learn_data.py DIR                                 # the files; Fashion-MNIST is a package of Debian
    python3 bench/learn_peers.py digits --data DIR/digits.csv [--seeds 3] [--epochs N] [--steps N] [--threads 2]
        [--autograph build/autograph] [--only autograph|torch]
    python3 bench/learn_peers.py text --data DIR/shakespeare.txt --curve 200
    python3 bench/learn_data.py DIR --draw-cifar10 2000             # pictures of noise in CIFAR-10's format
    python3 bench/learn_peers.py cifar10 --data DIR --curve 20

TASK is fashion, mnist, digits, cifar10, text, sru or tree. Programs run in turns, one at a time. Accuracy is that of
the last epoch on what was held out, the mean over seeds; samples a second are the median over seeds of the best epoch
of each. With --steps both end after so many (the schedule then spans those alone).

With --curve N both begin from the same weights and take the same batches in the same order, cropped and mirrored alike,
without dropout: prints the largest difference of the losses in the first N steps from those of PyTorch in f64, and
exits with 6 where it exceeds CURVE_TOLERANCE and OWN_DIFFERENCES times what those of PyTorch in f32 are off.
"""

import argparse
import copy
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import torch

import learn_data
import learn_models

CURVE_TOLERANCE = 1e-3
# Behind norms of batches and AdamW rounding alone parts the losses: how much more than those of PyTorch in f32.
OWN_DIFFERENCES = 4


def write_safetensors(path, state):
    header, offset = {}, 0
    for name, tensor in state.items():
        kind = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in state.values():
            file.write(tensor.detach().contiguous().numpy().tobytes())


def loss_of(scores, labels):
    return torch.nn.functional.cross_entropy(scores.flatten(0, -2), labels.flatten())


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        hits = sum(int((model(a).argmax(-1) == b).sum()) for a, b in zip(x.split(250), y.split(250)))
    model.train()
    return hits / y.numel()


def as_tensor(array, dtype):
    tensor = torch.from_numpy(array.copy())
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


class TorchRun:
    """Rows of (accuracy, samples a second) for each epoch, and the loss of each step; samples a second of all steps
    behind the first `warm_up`."""

    def __init__(self, task, seed, epochs, steps, model, warm_up=0, clock=time.perf_counter):
        dtype = next(model.parameters()).dtype
        (x, y), held_out = [[as_tensor(array, dtype) for array in part] for part in (task.training, task.held_out)]
        optimizer = task.optimizer(model)
        of_epoch = len(x) // task.batch
        total = min(epochs * of_epoch, steps or epochs * of_epoch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, task.rate, total_steps=total, cycle_momentum=False)
        self.rows, self.losses, seconds_of_steps = [], [], []
        for epoch in range((total + of_epoch - 1) // of_epoch):
            order = torch.from_numpy(learn_data.epoch_order(len(x), seed, epoch))
            count = min(of_epoch, total - epoch * of_epoch)
            begin = clock()
            for step in range(count):
                step_begin = clock()
                rows = order[step * task.batch : (step + 1) * task.batch]
                optimizer.zero_grad()
                loss = loss_of(model(task.changed(x[rows], rows, seed, epoch)), y[rows])
                loss.backward()
                if task.clip:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), task.clip)
                optimizer.step()
                schedule.step()
                self.losses.append(loss.item())
                seconds_of_steps.append(clock() - step_begin)
            seconds = clock() - begin
            self.rows.append((accuracy(model, *held_out), count * task.batch / seconds))
        measured = seconds_of_steps[warm_up:]
        self.samples_per_second = len(measured) * task.batch / sum(measured)


class AutographRun:
    def __init__(self, options, epochs, seed, *more):
        words = [options.autograph, "train", options.task, "--data", options.data, "--epochs", str(epochs), "--json"]
        words += ["--threads", str(options.threads), "--seed", str(seed), *more]
        if options.steps:
            words += ["--steps", str(options.steps)]
        result = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        self.rows = [(epoch["accuracy"], epoch["samples_per_second"]) for epoch in result["epochs"]]


def compare_curves(options, task):
    options.steps = options.curve
    torch.manual_seed(1)
    model = task.make(0.0)
    with tempfile.TemporaryDirectory() as folder:
        weights, metrics = pathlib.Path(folder, "weights.safetensors"), pathlib.Path(folder, "metrics.jsonl")
        write_safetensors(weights, model.state_dict())
        AutographRun(options, task.epochs, 0, "--from", str(weights), "--dropout", "0", "--metrics", str(metrics))
        ours = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
    exact = TorchRun(task, 0, task.epochs, options.steps, copy.deepcopy(model).double()).losses
    theirs = TorchRun(task, 0, task.epochs, options.steps, model).losses
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    worst, own = (max(abs(a - b) for a, b in zip(losses, exact)) for losses in (ours, theirs))
    step = max(range(len(ours)), key=lambda k: abs(ours[k] - exact[k]))
    print(json.dumps({"task": options.task, "steps": len(ours), "largest_difference": worst, "at_step": step + 1,
                      "largest_of_torch_in_f32": own, "autograph": {"first": ours[0], "last": ours[-1]},
                      "torch": {"first": theirs[0], "last": theirs[-1], "version": torch.__version__}}))  # fmt: skip
    return 0 if worst <= max(CURVE_TOLERANCE, OWN_DIFFERENCES * own) else 6


def compare_results(options, task):
    epochs = options.epochs or task.epochs
    runs = {"autograph": [], "torch": []}
    for seed in range(options.seeds):
        task = learn_models.Task(options.task, options.data, seed)
        if options.only != "torch":
            runs["autograph"].append(AutographRun(options, epochs, seed).rows)
        if options.only != "autograph":
            torch.manual_seed(seed)
            model = task.make(task.dropout)
            runs["torch"].append(TorchRun(task, seed, epochs, options.steps, model).rows)
    figures = {name: {"accuracy": statistics.fmean(rows[-1][0] for rows in of_seeds),
                      "samples_per_second": statistics.median(max(row[1] for row in rows) for rows in of_seeds)}
               for name, of_seeds in runs.items() if of_seeds}  # fmt: skip
    result = {"task": options.task, "epochs": epochs, "steps": options.steps, "seeds": options.seeds,
              "threads": options.threads, "torch_version": torch.__version__, **figures}  # fmt: skip
    if len(figures) == 2:
        ours, theirs = (figures[name]["samples_per_second"] for name in ("autograph", "torch"))
        result["speed"] = ours / theirs
    print(json.dumps(result))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["fashion", "mnist", "digits", "cifar10", "text", "sru", "tree"])
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--curve", type=int, default=0)
    parser.add_argument("--only", choices=["autograph", "torch"])
    parser.add_argument("--autograph", default="build/autograph")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    task = learn_models.Task(options.task, options.data, 0)
    return compare_curves(options, task) if options.curve else compare_results(options, task)


if __name__ == "__main__":
    sys.exit(main())
