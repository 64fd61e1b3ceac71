#!/usr/bin/env python3
"""Trains the Tree-LSTM of `autograph train tree` in PyTorch, too, on the same trees, and compares accuracy and speed.

    python3 bench/python_trees.py trees.npz
    python3 bench/tree_peers.py trees.npz [--epochs 8] [--threads 2] [--rounds 3] [--autograph build/autograph]

Both walk over the positions of a batch of trees at once, with the same formulas, sizes and optimiser and batches of
equal size; weights and batches are drawn apart. Programs run in turns, one at a time. Prints a line of JSON: accuracy
on a sixth of the trees, the best of the last three epochs, and samples a second, the median over rounds of the best
epoch of each.
"""
import argparse
import json
import statistics
import subprocess
import time

import numpy
import torch

HIDDEN, WIDTH, BATCH, RATE, DROPOUT = 128, 64, 32, 2e-3, 0.2


class TreeLstm(torch.nn.Module):
    def __init__(self, types, nodes, classes, dropout=DROPOUT):
        super().__init__()
        self.nodes = nodes
        self.types = torch.nn.Embedding(types, WIDTH)
        self.of_type = torch.nn.Linear(WIDTH, 5 * HIDDEN)
        self.of_children_weight = torch.nn.Parameter(torch.empty(5 * HIDDEN, 2 * HIDDEN))
        torch.nn.init.xavier_uniform_(self.of_children_weight)
        self.dropout = torch.nn.Dropout(dropout)
        self.head = torch.nn.Linear(HIDDEN, classes)

    def forward(self, tree):
        gates = self.of_type(self.types(tree[:, 0])).unbind(1)
        rows = torch.arange(len(tree))[:, None]
        states = [torch.zeros(len(tree), 2 * HIDDEN)]  # a node's h beside its c, by position; 0: none
        for position in range(self.nodes):
            # Nodes look back to any position: what is there so far is one tensor.
            so_far = torch.stack(states, 1)
            children = so_far[rows, tree[:, 1:, position]]
            h = children[..., :HIDDEN].reshape(len(tree), 2 * HIDDEN)
            all_gates = gates[position] + h @ self.of_children_weight.T
            i, child, sibling, o, u = all_gates.chunk(5, 1)
            cells = children[..., HIDDEN:]
            c = i.sigmoid() * u.tanh() + child.sigmoid() * cells[:, 0] + sibling.sigmoid() * cells[:, 1]
            states.append(torch.cat([o.sigmoid() * c.tanh(), c], 1))
        return self.head(self.dropout(states[-1][:, :HIDDEN]))


def accuracy(model, trees, labels):
    model.eval()
    with torch.no_grad():
        parts = zip(trees.split(256), labels.split(256))
        hits = sum(int((model(part).argmax(1) == of_part).sum()) for part, of_part in parts)
    model.train()
    return hits / len(trees)


def train_torch(trees, labels, epochs, seed):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(trees), generator=generator)
    held_out, training = order[: len(trees) // 6], order[len(trees) // 6 :]
    torch.manual_seed(seed)
    model = TreeLstm(int(trees[:, 0].max()) + 1, trees.shape[2], int(labels.max()) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    steps = len(training) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=epochs * steps, cycle_momentum=False
    )
    rows = []
    for _ in range(epochs):
        shuffled = training[torch.randperm(len(training), generator=generator)]
        start = time.perf_counter()
        for step in range(steps):
            batch = shuffled[step * BATCH : (step + 1) * BATCH]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(trees[batch]), labels[batch]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        seconds = time.perf_counter() - start
        rows.append((accuracy(model, trees[held_out], labels[held_out]), steps * BATCH / seconds))
    return rows


def train_autograph(options, seed):
    words = [options.autograph, "train", "tree", "--data", options.trees, "--epochs", str(options.epochs)]
    words += ["--threads", str(options.threads), "--seed", str(seed), "--json"]
    result = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return [(epoch["accuracy"], epoch["samples_per_second"]) for epoch in result["epochs"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", help="what python_trees.py has written")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--autograph", default="build/autograph")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = numpy.load(options.trees)
    trees, labels = torch.from_numpy(data["tree"]), torch.from_numpy(data["label"])
    results = {"autograph": [], "torch": []}
    for seed in range(options.rounds):
        results["autograph"].append(train_autograph(options, seed))
        results["torch"].append(train_torch(trees, labels, options.epochs, seed))
    figures = {
        name: {
            "accuracy": statistics.fmean(max(row[0] for row in rows[-3:]) for rows in rounds),
            "samples_per_second": statistics.median(max(row[1] for row in rows) for rows in rounds),
        }
        for name, rounds in results.items()
    }
    ratio = figures["autograph"]["samples_per_second"] / figures["torch"]["samples_per_second"]
    setup = {"trees": len(trees), "epochs": options.epochs, "threads": options.threads}
    print(json.dumps({**setup, **figures, "speed": ratio}))


if __name__ == "__main__":
    main()
