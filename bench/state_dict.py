#!/usr/bin/env python3
"""Takes a state dict of torchvision's ResNet-18 to AutoGraph, trains it there, and takes it back.

    cmake --build build --target example_torchvision_resnet
    python bench/state_dict.py build/example_torchvision_resnet [--steps 5]

Compares with PyTorch in f64 on the same weights: scores before training, the losses of all steps of SGD with momentum,
and the scores of the state dict that comes back, which PyTorch must load strictly. Weights are seeded; nothing is
downloaded. Exit code 6 where something is off by more than TOLERANCE of the largest, and by more than OWN_DIFFERENCES
times what PyTorch in f32 is off.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-3
OWN_DIFFERENCES = 4


def train(module, images, labels, steps):
    """The losses."""
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def scores_of(module, images):
    module.eval()
    with torch.no_grad():
        return module(images).numpy()


def outcome(state, dtype, images, labels, steps):
    """Scores before, losses, scores afterwards."""
    module = torchvision.models.resnet18()
    module.load_state_dict(state)
    module.to(dtype)
    x = torch.from_numpy(images).to(dtype)
    before = scores_of(module, x)
    losses = train(module, x, torch.from_numpy(labels), steps)
    return before, numpy.array(losses), scores_of(module, x)


def off_by(actual, expected):
    return float(numpy.abs(actual - expected).max() / numpy.abs(expected).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="example_torchvision_resnet")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(1)
    module = torchvision.models.resnet18()
    generator = numpy.random.default_rng(1)
    images = generator.standard_normal((8, 3, 96, 96)).astype(numpy.float32)
    labels = generator.integers(0, 1000, 8)
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("in.safetensors", "x.npy", "y.npy", "out.safetensors", "s.npy")]
        save_file(module.state_dict(), files[0])
        numpy.save(files[1], images)
        numpy.save(files[2], labels)
        words = [options.program, files[0], files[1], files[2], str(options.steps), files[3], files[4]]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        losses = numpy.array([float(line) for line in done.stdout.split()])
        back = torchvision.models.resnet18()
        back.load_state_dict(load_file(files[3]))
        ours = numpy.load(files[4]), losses, scores_of(back, torch.from_numpy(images))
    state = module.state_dict()
    exact, in_f32 = (outcome(state, kind, images, labels, options.steps) for kind in (torch.float64, torch.float32))
    agrees = True
    for what, *values in zip(("scores before", "losses", "scores of what came back"), ours, in_f32, exact):
        off, of_torch = (off_by(value, values[2]) for value in values[:2])
        print(f"{what:26} off by {off:.1e} of the largest (PyTorch in f32 {of_torch:.1e})")
        agrees = agrees and off <= max(TOLERANCE, OWN_DIFFERENCES * of_torch)
    return 0 if agrees else 6


if __name__ == "__main__":
    sys.exit(main())
