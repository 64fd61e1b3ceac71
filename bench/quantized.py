#!/usr/bin/env python3
"""Times models in f32, in bf16 and quantized to 8 bits, in AutoGraph and ONNX Runtime, in turns, and prints ratios.

    python bench/quantized.py [--models cnn,mlp,FILE.onnx,...] [--rounds N] [--threads N] [--autograph build/autograph]
        [--keep DIR] [--realtime] [--flags=FLAGS]

Makes the models with seeded random weights: `cnn`, the layers of ResNet-18, and `mlp`, the products of a transformer
(four times 768 -> 3072 -> 768 with gelu, 128 rows). A file (of export_models.py, for example) must have static shapes.
ONNX Runtime's quantizer makes quantize-dequantize (QDQ) forms of
them, with a scale per output channel of the weights. Both runtimes then run the same QDQ file. Every contestant is a
process of its own, and only one is active at a time. A round counts with its fastest run, a contestant with the median
of its rounds.

Errors are the largest |difference| as a share of the largest magnitude: `to f32` from ONNX Runtime on the f32 file, so
what the precision costs; `to peer` from ONNX Runtime on the same file, so what the kernels differ in. Exit code: 0
done, 6 something is further from ONNX Runtime on the same file than the precision explains, 2 usage.
"""

import argparse
import os
import statistics
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
import onnxruntime.quantization.shape_inference

import peer_processes

OPSET = 17
CALIBRATION_INPUTS = 8
WORDS = 1000
# What outputs may differ by from ONNX Runtime on the same file, as a share of the largest magnitude. A quantized result
# that goes to the other of two steps is passed on by every layer behind it.
TOLERANCE = {"f32": 1e-3, "bf16": 3e-2, "int8": 5e-2}


class Builder:
    """Nodes and seeded weights of a graph with one input and one output."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, *shape, scale=1.0):
        name = f"w{len(self.weights)}"
        array = (self.random.standard_normal(shape) * scale).astype(numpy.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.array(value, dtype=numpy.float32), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def model(self, shape, last):
        value = helper.make_tensor_value_info
        self.nodes.append(helper.make_node("Identity", [last], ["y"], name="out"))
        inputs, outputs = [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "model", inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 9
        return onnx.shape_inference.infer_shapes(model)


def cnn():
    b = Builder(1)

    def conv(x, channels_in, channels_out, kernel, stride):
        scale = (2 / (channels_in * kernel * kernel)) ** 0.5
        weights = b.weight(channels_out, channels_in, kernel, kernel, scale=scale)
        pads = [kernel // 2] * 4
        bias = b.weight(channels_out, scale=0.1)
        return b.add("Conv", x, weights, bias, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=pads)

    x = b.add("Relu", conv("x", 3, 64, 7, 2))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, width in enumerate([64, 128, 256, 512]):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            y = b.add("Relu", conv(x, channels, width, 3, stride))
            y = conv(y, width, width, 3, 1)
            skip = x if channels == width and stride == 1 else conv(x, channels, width, 1, stride)
            x = b.add("Relu", b.add("Add", y, skip))
            channels = width
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    y = b.add("Gemm", x, b.weight(1000, 512, scale=0.05), b.weight(1000, scale=0.1), transB=1)
    return b.model([1, 3, 224, 224], y)


def mlp():
    b = Builder(2)
    x = "x"
    for _ in range(4):
        up = b.add("Add", b.add("MatMul", x, b.weight(768, 3072, scale=0.03)), b.weight(3072, scale=0.1))
        bell = b.add("Add", b.add("Erf", b.add("Div", up, b.number(2**0.5))), b.number(1))
        gelu = b.add("Mul", b.add("Mul", up, bell), b.number(0.5))
        down = b.add("Add", b.add("MatMul", gelu, b.weight(3072, 768, scale=0.02)), b.weight(768, scale=0.1))
        x = b.add("Add", x, down)
    return b.model([128, 768], x)


MODELS = {"cnn": cnn, "mlp": mlp}


def draw_inputs(graph, random):
    """Inputs of a model: normal floats, or numbers of words."""
    known = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for info in graph.input:
        if info.name in known:
            continue
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        if info.type.tensor_type.elem_type == TensorProto.INT64:
            inputs[info.name] = random.integers(0, WORDS, shape)
        else:
            inputs[info.name] = random.standard_normal(shape).astype(numpy.float32)
    return inputs


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, graph, count):
        random = numpy.random.default_rng(3)
        self.inputs = iter([draw_inputs(graph, random) for _ in range(count)])

    def get_next(self):
        return next(self.inputs, None)


def write_models(name, folder):
    """Writes a model and its quantized form; returns both paths and inputs."""
    stem = os.path.splitext(os.path.basename(name))[0]
    quantized = os.path.join(folder, f"{stem}_int8.onnx")
    if name in MODELS:
        path = prepared = os.path.join(folder, f"{stem}.onnx")
        onnx.save(MODELS[name](), path)
        count = CALIBRATION_INPUTS
    else:
        # As the quantizer wants it: batch norms folded, shapes inferred. Statistics of large networks take long.
        path, prepared, count = name, os.path.join(folder, f"{stem}_prepared.onnx"), 2
        quantization.shape_inference.quant_pre_process(path, prepared, skip_symbolic_shape=True)
    graph = onnx.load(prepared, load_external_data=False).graph
    quantization.quantize_static(
        prepared,
        quantized,
        Calibration(graph, count),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    return path, quantized, draw_inputs(graph, numpy.random.default_rng(4))


def contestants(path, quantized, options):
    """Name -> (precision, file, how to start it)."""
    program = [options.autograph, *options.flags.split()]
    threads = options.threads
    return {
        "onnxruntime f32": ("f32", path, lambda: peer_processes.Worker("onnxruntime", threads)),
        "onnxruntime int8": ("int8", quantized, lambda: peer_processes.Worker("onnxruntime", threads)),
        "autograph f32": ("f32", path, lambda: peer_processes.AutoGraph(program, threads)),
        "autograph bf16": ("bf16", path, lambda: peer_processes.AutoGraph([*program, "--precision", "bf16"], threads)),
        "autograph int8": ("int8", quantized, lambda: peer_processes.AutoGraph(program, threads)),
    }


def measure(name, options, folder):
    path, quantized, inputs = write_models(name, folder)
    input_files = {}
    for number, (input_name, array) in enumerate(inputs.items()):
        input_files[input_name] = os.path.join(folder, f"x{number}.npy")
        numpy.save(input_files[input_name], array)
    rows, running = {}, {}
    try:
        for label, (precision, file, start) in contestants(path, quantized, options).items():
            peer = running[label] = start()
            output_dir = os.path.join(folder, label.replace(" ", "_"))
            os.makedirs(output_dir, exist_ok=True)
            try:
                answer = peer.load(file, input_files, output_dir)
            except peer_processes.PeerError as error:
                if precision != "bf16":
                    raise
                print(f"{label}: {error}", file=sys.stderr)  # a processor without bf16
                running.pop(label).close()
                continue
            first = sorted(answer["outputs"])[0]
            rows[label] = {"precision": precision, "y": numpy.load(answer["outputs"][first])}
            peer.pause()
        for label, times in peer_processes.time_in_turns(running, options.rounds, 0.3, options.seconds).items():
            rows[label]["ms"] = times
    finally:
        for peer in running.values():
            peer.close()
    return rows


def report(name, rows):
    """Prints the table of one model; False when something is too far from ONNX Runtime."""
    base = statistics.median(rows["autograph f32"]["ms"])
    f32 = rows["onnxruntime f32"]["y"]
    costs = {"f32": 0, "bf16": 0, "int8": 2 * peer_processes.difference(f32, rows["onnxruntime int8"]["y"])}
    good = True
    print(f"\n{name:18} {'ms':>8} {'to f32':>7} {'to peer':>8}   error to f32   to peer")
    for label, row in rows.items():
        ms = statistics.median(row["ms"])
        peer = rows["onnxruntime int8" if row["precision"] == "int8" else "onnxruntime f32"]
        cost = peer_processes.difference(f32, row["y"])
        apart = peer_processes.difference(peer["y"], row["y"])
        # Both sides may be as far from the f32 model as the quantization takes them.
        allowed = max(TOLERANCE[row["precision"]], costs[row["precision"]])
        good = good and apart <= allowed
        ratio = ms / statistics.median(peer["ms"])
        print(f"{label:18} {ms:8.3f} {ms / base:7.2f} {ratio:8.2f}   {cost:12.2e} {apart:9.2e}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--flags", default="", help="more flags for AutoGraph, for example --flags=--fixed-threads")
    parser.add_argument("--realtime", action="store_true", help="put what is measured before other work; needs root")
    parser.add_argument("--keep", help="folder for the models, which stay there")
    options = parser.parse_args()
    peer_processes.Process.realtime = options.realtime
    names = options.models.split(",")
    if unknown := [name for name in names if name not in MODELS and not os.path.exists(name)]:
        parser.error(f"no model or file {unknown[0]}: models are {', '.join(MODELS)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        results = [report(name, measure(name, options, folder)) for name in names]
    return 0 if all(results) else 6


if __name__ == "__main__":
    sys.exit(main())
