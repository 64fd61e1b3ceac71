#!/usr/bin/env python3
"""Runs what ONNX Runtime's optimiser and quantiser make of models, and compares with ONNX Runtime on the same files.

    python bench/contrib_files.py [--only NAME,NAME] [--large] [--time] [--autograph build/autograph] [--keep DIR]

Small models with seeded weights, written as exporters write them: a residual CNN, a BERT encoder, an LSTM and a decoder
with a key/value cache and 4-bit weights. Each goes through ONNX Runtime's optimiser (extended, all), the optimiser of
transformers, dynamic and static quantisation (QOperator, QDQ) and the quantiser of blocks of weights, where that
applies. With --large the layers have the sizes of ResNet-18 and BERT-base. --time measures both in turns.

A quantized result that falls on the other of two steps is passed on by every layer behind it, so that quantized files
may differ by 5 % of the largest magnitude. Exit code: 0 all agree, 6 one differs or is refused.
"""

import argparse
import collections
import os
import statistics
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

import peer_processes

EXACT, QUANTIZED = 2e-3, 5e-2


class Builder:
    """Nodes and seeded weights of a graph."""

    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)
        self.nodes, self.weights, self.inputs = [], [], []

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def weight(self, *shape, scale=1.0):
        return self.constant((self.random.standard_normal(shape) * scale).astype(numpy.float32))

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x, rows, columns):
        product = self.add("MatMul", x, self.weight(rows, columns, scale=rows**-0.5))
        return self.add("Add", self.weight(columns, scale=0.1), product)

    def layer_norm(self, x, size):
        scale = self.constant((1 + 0.1 * self.random.standard_normal(size)).astype(numpy.float32))
        return self.add("LayerNormalization", x, scale, self.weight(size, scale=0.1), axis=-1, epsilon=1e-5)

    def model(self, **outputs):
        for name, value in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "model", self.inputs, infos, self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 9
        return model


def cnn(large):
    """Residual blocks with every op that the quantiser knows: sums, concats, pools, leaky relu, sigmoid gates."""
    b = Builder(1)
    side, widths = (224, [64, 128, 256, 512]) if large else (48, [16, 24])
    b.input("x", TensorProto.FLOAT, ["batch", 3, side, side])

    def conv(x, c_in, c_out, kernel, stride=1, group=1):
        weights = b.weight(c_out, c_in // group, kernel, kernel, scale=(2 * group / (c_in * kernel * kernel)) ** 0.5)
        return b.add("Conv", x, weights, b.weight(c_out, scale=0.1), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                     pads=[kernel // 2] * 4, group=group)

    x = b.add("Relu", conv("x", 3, widths[0], 7, 2))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = widths[0]
    for stage, width in enumerate(widths):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            y = conv(b.add("Relu", conv(x, channels, width, 3, stride)), width, width, 3)
            skip = x if channels == width and stride == 1 else conv(x, channels, width, 1, stride)
            x = b.add("Relu", b.add("Add", y, skip))
            channels = width
    if not large:
        left = b.add("LeakyRelu", conv(x, channels, channels, 1), alpha=0.1)
        gate = b.add("Sigmoid", conv(b.add("GlobalAveragePool", x), channels, channels, 1))
        right = b.add("Mul", conv(x, channels, channels, 3, group=channels), gate)
        x = b.add("Concat", left, right, b.add("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), axis=1)
        x = b.add("Resize", x, "", b.constant(numpy.array([1, 1, 2, 2], numpy.float32)), mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        channels *= 3
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    classes = 1000 if large else 10
    y = b.add("Gemm", x, b.weight(classes, channels, scale=0.5), b.weight(classes, scale=0.1), transB=1)
    inputs = {"x": b.random.standard_normal((1, 3, side, side)).astype(numpy.float32)}
    return b.model(y=b.add("Softmax", y, axis=-1) if not large else y), inputs


def bert(large):
    """An encoder as torch exports it: ids, types and a mask in, shapes computed while running."""
    b = Builder(2)
    layers, heads, size, length = (4, 12, 64, 128) if large else (2, 4, 8, 12)
    hidden, words = heads * size, 1000
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        b.input(name, TensorProto.INT64, ["batch", "length"])
    integers = lambda *values: b.constant(numpy.array(values, numpy.int64))
    number = lambda value: b.constant(numpy.array(value, numpy.float32))
    extent = lambda x, axis: b.add("Gather", b.add("Shape", x), integers(axis), axis=0)
    word = b.add("Gather", b.weight(words, hidden, scale=0.5), "input_ids")
    kind = b.add("Gather", b.weight(2, hidden, scale=0.5), "token_type_ids")
    ids = b.add("Slice", integers(*range(512)), integers(0), extent("input_ids", 1), integers(0))
    place = b.add("Gather", b.weight(512, hidden, scale=0.5), b.add("Unsqueeze", ids, integers(0)))
    x = b.layer_norm(b.add("Add", b.add("Add", word, kind), place), hidden)
    mask = b.add("Cast", b.add("Unsqueeze", b.add("Unsqueeze", "attention_mask", integers(1)), integers(2)),
                 to=TensorProto.FLOAT)
    mask = b.add("Mul", b.add("Sub", number(1), mask), number(-10000))
    for _ in range(layers):
        batch, count = extent(x, 0), extent(x, 1)
        split = b.add("Concat", batch, count, integers(heads), integers(size), axis=0)
        join = b.add("Concat", batch, count, integers(hidden), axis=0)
        q, k, v = (b.add("Transpose", b.add("Reshape", b.linear(x, hidden, hidden), split),
                         perm=[0, 2, 3, 1] if i == 1 else [0, 2, 1, 3]) for i in range(3))
        scores = b.add("Div", b.add("MatMul", q, k), number(size**0.5))
        weights = b.add("Softmax", b.add("Add", scores, mask), axis=-1)
        y = b.add("Reshape", b.add("Transpose", b.add("MatMul", weights, v), perm=[0, 2, 1, 3]), join)
        x = b.layer_norm(b.add("Add", b.linear(y, hidden, hidden), x), hidden)
        up = b.linear(x, hidden, 4 * hidden)
        bell = b.add("Add", b.add("Erf", b.add("Div", up, number(2**0.5))), number(1))
        gelu = b.add("Mul", b.add("Mul", up, bell), number(0.5))
        x = b.layer_norm(b.add("Add", b.linear(gelu, 4 * hidden, hidden), x), hidden)
    mask_array = numpy.ones((1 if large else 2, length), numpy.int64)
    mask_array[0, -length // 4:] = 0
    inputs = {"input_ids": b.random.integers(0, words, mask_array.shape),
              "token_type_ids": b.random.integers(0, 2, mask_array.shape), "attention_mask": mask_array}
    return b.model(y=x), inputs


def lstm(large):
    b = Builder(3)
    length, hidden = (100, 256) if large else (9, 16)
    x, rows = b.input("x", TensorProto.FLOAT, [length, "batch", 40]), 40
    for _ in range(2):
        y = b.add("LSTM", x, b.weight(2, 4 * hidden, rows, scale=0.1), b.weight(2, 4 * hidden, hidden, scale=0.1),
                  b.weight(2, 8 * hidden, scale=0.1), hidden_size=hidden, direction="bidirectional", outputs=3)[0]
        x = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]),
                  b.constant(numpy.array([0, 0, -1], numpy.int64)))
        rows = 2 * hidden
    inputs = {"x": b.random.standard_normal((length, 2, 40)).astype(numpy.float32)}
    return b.model(y=b.linear(x, rows, 30)), inputs


def decoder(large):
    """As exporters of language models write it: cache, rotary embedding, root mean square norms, gated units."""
    b = Builder(4)
    layers, heads, kv_heads, size, past = (4, 12, 4, 64, 200) if large else (2, 4, 2, 16, 7)
    hidden, words = heads * size, 2000 if large else 100
    b.input("input_ids", TensorProto.INT64, ["batch", "length"])
    b.input("attention_mask", TensorProto.INT64, ["batch", "total"])
    angles = numpy.outer(numpy.arange(512), 10000.0 ** (-numpy.arange(size // 2) / (size / 2)))
    cosines, sines = (b.constant(f(angles).astype(numpy.float32)) for f in (numpy.cos, numpy.sin))
    integers = lambda *values: b.constant(numpy.array(values, numpy.int64))
    contrib = lambda op, *inputs, **more: b.add(op, *inputs, domain="com.microsoft", **more)
    keys = b.add("Cast", b.add("Sub", b.add("ReduceSum", "attention_mask", integers(1), keepdims=0), integers(1)),
                 to=TensorProto.INT32)
    total = b.add("Cast", b.add("Gather", b.add("Shape", "attention_mask"), b.constant(numpy.array(1, numpy.int64))),
                  to=TensorProto.INT32)
    scale = lambda: b.constant((1 + 0.1 * b.random.standard_normal(hidden)).astype(numpy.float32))
    x = b.add("Gather", b.weight(words, hidden), "input_ids")
    y = b.add("SimplifiedLayerNormalization", x, scale(), axis=-1, epsilon=1e-5)
    outputs, inputs = {}, {}
    product = lambda x, rows, columns: b.add("MatMul", x, b.weight(rows, columns, scale=rows**-0.5))
    for i in range(layers):
        for kind in ("key", "value"):
            name = b.input(f"past_{i}_{kind}", TensorProto.FLOAT, ["batch", kv_heads, "past", size])
            inputs[name] = b.random.standard_normal((1, kv_heads, past, size)).astype(numpy.float32)
        q, k, v = (product(y, hidden, n * size) for n in (heads, kv_heads, kv_heads))
        attention = contrib("GroupQueryAttention", q, k, v, f"past_{i}_key", f"past_{i}_value", keys, total, cosines,
                            sines, num_heads=heads, kv_num_heads=kv_heads, do_rotary=1, outputs=3)
        outputs[f"present_{i}_key"], outputs[f"present_{i}_value"] = attention[1:]
        residual = product(attention[0], hidden, hidden)
        y, _, _, x = contrib("SkipSimplifiedLayerNormalization", x, residual, scale(), epsilon=1e-5, outputs=4)
        gate, up = product(y, hidden, 4 * hidden), product(y, hidden, 4 * hidden)
        unit = b.add("Mul", b.add("Mul", gate, b.add("Sigmoid", gate)), up)
        residual = product(unit, 4 * hidden, hidden)
        y, _, _, x = contrib("SkipSimplifiedLayerNormalization", x, residual, scale(), epsilon=1e-5, outputs=4)
    for node in b.nodes:
        if node.op_type == "SkipSimplifiedLayerNormalization":
            node.output[1], node.output[2] = "", ""
    inputs["input_ids"] = b.random.integers(0, words, (1, 1))
    inputs["attention_mask"] = numpy.ones((1, past + 1), numpy.int64)
    return b.model(logits=product(y, hidden, words), **outputs), inputs


# ---- What ONNX Runtime's tools make of a file ------------------------------------------------------------------


def optimised(level):
    def write(path, target, _inputs):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = level
        options.optimized_model_filepath = target
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    return write


def transformer_optimised(path, target, _inputs):
    from onnxruntime.transformers import optimizer

    optimizer.optimize_model(path, "bert", opt_level=0).save_model_to_file(target)


def dynamic(path, target, _inputs):
    quantization.quantize_dynamic(path, target, weight_type=quantization.QuantType.QInt8,
                                  extra_options={"DefaultTensorType": TensorProto.FLOAT})


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, inputs):
        random = numpy.random.default_rng(5)
        self.draws = iter([inputs] + [{k: random.standard_normal(v.shape).astype(v.dtype) for k, v in inputs.items()}
                                      for _ in range(3)])

    def get_next(self):
        return next(self.draws, None)


def static(quant_format, activations):
    def write(path, target, inputs):
        quantization.quantize_static(path, target, Calibration(inputs), quant_format=quant_format,
                                     per_channel=True, activation_type=activations,
                                     weight_type=quantization.QuantType.QInt8)

    return write


def blocks(bits, symmetric):
    def write(path, target, _inputs):
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        quantizer = MatMulNBitsQuantizer(onnx.load(path), bits=bits, block_size=32, is_symmetric=symmetric)
        quantizer.process()
        quantizer.model.save_model_to_file(target, use_external_data_format=False)

    return write


def chain(*writers):
    def write(path, target, inputs):
        for i, writer in enumerate(writers):
            step = target if i + 1 == len(writers) else f"{target}.{i}.onnx"
            writer(path, step, inputs)
            path = step

    return write


LEVELS = onnxruntime.GraphOptimizationLevel
EXTENDED, ALL = optimised(LEVELS.ORT_ENABLE_EXTENDED), optimised(LEVELS.ORT_ENABLE_ALL)
OPERATOR, QDQ = quantization.QuantFormat.QOperator, quantization.QuantFormat.QDQ
UNSIGNED, SIGNED = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
PLAIN = {"extended": (EXTENDED, EXACT), "all": (ALL, EXACT), "dynamic": (dynamic, QUANTIZED),
         "dynamic extended": (chain(dynamic, EXTENDED), QUANTIZED)}
STATIC = {"qoperator": (static(OPERATOR, UNSIGNED), QUANTIZED), "qoperator s8": (static(OPERATOR, SIGNED), QUANTIZED),
          "qdq": (static(QDQ, UNSIGNED), QUANTIZED),
          "qdq extended": (chain(static(QDQ, UNSIGNED), EXTENDED), QUANTIZED),
          "qdq all": (chain(static(QDQ, UNSIGNED), ALL), QUANTIZED),
          "qoperator all": (chain(static(OPERATOR, UNSIGNED), ALL), QUANTIZED)}
BLOCKS = {f"{bits} bits{' symmetric' if symmetric else ''}": (blocks(bits, symmetric), EXACT)
          for bits in (4, 8) for symmetric in (True, False)}
MODELS = {
    "cnn": (cnn, {**PLAIN, **STATIC}),
    "bert": (bert, {**PLAIN, "transformers": (transformer_optimised, EXACT),
                    "transformers dynamic": (chain(transformer_optimised, dynamic), QUANTIZED),
                    "transformers dynamic all": (chain(transformer_optimised, dynamic, ALL), QUANTIZED), **BLOCKS}),
    "lstm": (lstm, PLAIN),
    "decoder": (decoder, {"extended": (EXTENDED, EXACT), **BLOCKS,
                          "4 bits extended": (chain(blocks(4, True), EXTENDED), EXACT)}),
}


# ---- Comparing -------------------------------------------------------------------------------------------------


def contrib_counts(path):
    counts = collections.Counter()
    for node in onnx.load(path).graph.node:
        if node.domain not in ("", "ai.onnx") or node.op_type == "SimplifiedLayerNormalization":
            counts[node.op_type] += 1
    return " ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def peer_results(path, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def block_flags():
    """What ONNX Runtime's optimiser, which runs on this machine here, does not write into its files."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return ["--channel-block", "16" if "avx512f" in info.read() else "8"]


def our_results(program, path, files, folder, names):
    command = [program, "run", path, *block_flags(), "--output-dir", folder]
    for name, file in files.items():
        command += ["--input", f"{name}={file}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[:400]}")
    return {name: numpy.load(os.path.join(folder, f"{i}_{name}.npy")) for i, name in enumerate(names)}


def timed(program, path, files, folder, threads):
    """Milliseconds of both, measured in turns, and their ratio."""
    running = {"ours": peer_processes.AutoGraph([program, *block_flags()], threads),
               "peer": peer_processes.Worker("onnxruntime", threads)}
    try:
        for label, process in running.items():
            target = os.path.join(folder, label)
            os.makedirs(target, exist_ok=True)
            process.load(path, files, target)
            process.pause()
        times = peer_processes.time_in_turns(running, 5, 0.2, 0.5)
    finally:
        for process in running.values():
            process.close()
    ours, peer = (statistics.median(times[label]) for label in ("ours", "peer"))
    return f"{ours:8.2f} ms, ONNX Runtime {peer:8.2f} ms, ratio {ours / peer:.2f}"


def check(label, writer, tolerance, source, inputs, options, folder):
    path = os.path.join(folder, label.replace(" ", "_") + ".onnx")
    if not os.path.exists(path):
        writer(source, path, inputs)
    files = {}
    for name, array in inputs.items():
        files[name] = os.path.join(folder, f"{name}.npy")
        numpy.save(files[name], array)
    print(f"{label:34}", end=" ", flush=True)
    expected = peer_results(path, inputs)
    try:
        actual = our_results(options.autograph, path, files, folder, list(expected))
    except RuntimeError as error:
        print(f"REFUSED {error}\n{'':34} {contrib_counts(path)}")
        return False
    worst = max(peer_processes.difference(expected[name], actual[name]) for name in expected)
    good = worst <= tolerance
    times = timed(options.autograph, path, files, folder, options.threads) if options.time else ""
    print(f"{'ok' if good else 'DIFFERS':8} {worst:9.2e} {times}\n{'':34} {contrib_counts(path)}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="models or variants such as 'bert,cnn qdq'")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--keep", help="folder for the models, which stay there and are used again")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(MODELS)
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name, (make, variants) in MODELS.items():
            if not any(part == name or part.startswith(name + " ") for part in chosen):
                continue
            model, inputs = make(options.large)
            source = os.path.join(folder, f"{name}.onnx")
            onnx.save(model, source)
            for variant, (writer, tolerance) in variants.items():
                label = f"{name} {variant}"
                if name in chosen or label in chosen:
                    good = check(label, writer, tolerance, source, inputs, options, folder) and good
    return 0 if good else 6


if __name__ == "__main__":
    sys.exit(main())
