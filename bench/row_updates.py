"""A step of gradient descent on a table of which few rows are read: rows alone, the whole table, and torch's two ways.

    python bench/row_updates.py --autograph build/autograph

Prints one line of JSON: the medians in milliseconds of steps taken in turns, and how often the whole table takes as
long as its rows. Exits with status 1 where that is less than the target.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

TARGET = 10


def write_model(path, rows, width, reads):
    table = numpy.random.default_rng(0).standard_normal((rows, width), dtype=numpy.float32)
    indices = numpy.random.default_rng(1).integers(0, rows, reads)
    # The indices are moved by an input, so that nothing of them is computed while compiling.
    nodes = [
        helper.make_node("Add", ["indices", "shift"], ["moved"]),
        helper.make_node("Mod", ["moved", "rows"], ["read"]),
        helper.make_node("Gather", ["table", "read"], ["slices"]),
        helper.make_node("Mul", ["slices", "slices"], ["output"]),
    ]
    shift = helper.make_tensor_value_info("shift", TensorProto.INT64, [1])
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [reads, width])
    named = {"table": table, "indices": indices, "rows": numpy.array([rows])}
    constants = [numpy_helper.from_array(array, name) for name, array in named.items()]
    graph = helper.make_graph(nodes, "lookup", [shift], [output], constants)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)
    return torch.from_numpy(table), torch.from_numpy(indices)


def step_ms(program, path, *flags):
    command = [program, "bench", path, "--train", "--loss", "mean", "--seconds", "1", "--json", *flags]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(answer)["latency_ms"]["median"]


def torch_step_ms(table, indices, sparse):
    layer = torch.nn.Embedding.from_pretrained(table.clone(), freeze=False, sparse=sparse)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    times = []
    for _ in range(12):
        start = time.perf_counter()
        optimizer.zero_grad()
        layer(indices).square().mean().backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--reads", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/lookup.onnx"
        table, indices = write_model(path, options.rows, options.width, options.reads)
        ways = {
            "rows_ms": lambda: step_ms(options.autograph, path),
            "whole_ms": lambda: step_ms(options.autograph, path, "--disable-pass", "update_rows"),
            "torch_sparse_ms": lambda: torch_step_ms(table, indices, True),
            "torch_dense_ms": lambda: torch_step_ms(table, indices, False),
        }
        times = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, way in ways.items():
                times[name].append(way())
    result = {name: round(statistics.median(values), 4) for name, values in times.items()}
    result["ratio"] = round(result["whole_ms"] / result["rows_ms"], 1)
    print(json.dumps(result))
    return 0 if result["ratio"] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
