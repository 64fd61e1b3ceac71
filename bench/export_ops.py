#!/usr/bin/env python3
"""Writes ONNX models of one operator each at the sizes that it has in well-known networks, and a block of a U-Net.

    python bench/export_ops.py DIR
    python bench/peers.py DIR --models all --quick

What networks are made of is measured with whole networks (export_models.py). This finds the operator that is slow in a
model nobody tried yet: each of them should take no longer than in ONNX Runtime. Weights come from a fixed seed.
"""

import argparse
import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
RANDOM = numpy.random.default_rng(20230207)


def weights(*shape, scale=0.05):
    """Seeded weights."""
    return (RANDOM.standard_normal(shape) * scale).astype(numpy.float32)


def ints(*values):
    """A constant of 64-bit integers."""
    return numpy.array(values, dtype=numpy.int64)


def indices(extent, *shape):
    """Seeded indices below `extent`."""
    return RANDOM.integers(0, extent, shape).astype(numpy.int64)


class Case:
    """A model of one node: its inputs are shapes (of f32 given at run time), arrays (constants) or None (not given)."""

    def __init__(self, name, op, *inputs, outputs=1, dtypes=None, **attributes):
        self.name, self.op, self.inputs, self.attributes = name, op, inputs, attributes
        self.outputs, self.dtypes = outputs, dtypes or [TensorProto.FLOAT] * outputs

    def model(self):
        """The model."""
        names, given, constants = [], [], []
        for number, value in enumerate(self.inputs):
            names.append("" if value is None else f"x{number}")
            if isinstance(value, tuple):
                given.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, value))
            elif value is not None:
                constants.append(numpy_helper.from_array(value, names[-1]))
        outputs = [f"y{number}" for number in range(self.outputs)]
        results = [helper.make_tensor_value_info(y, t, None) for y, t in zip(outputs, self.dtypes)]
        node = helper.make_node(self.op, names, outputs, name=self.name, **self.attributes)
        graph = helper.make_graph([node], self.name, given, results, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 9
        return onnx.shape_inference.infer_shapes(model)


class UnetBlock:
    """Twice group norm, swish and convolution, as in diffusion U-Nets; the norm as torch's older exporter spells it.
    With a group for each channel it is an instance norm, as in networks for style."""

    def __init__(self, name, channels, extent, groups=32):
        self.name, self.channels, self.extent, self.groups = name, channels, extent, groups

    def model(self):
        """The model."""
        nodes, constants = [], []

        def constant(value):
            constants.append(numpy_helper.from_array(value, f"c{len(constants)}"))
            return constants[-1].name

        def node(op, *inputs, **attributes):
            nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
            return nodes[-1].output[0]

        shape = (1, self.channels, self.extent, self.extent)
        value = node("Conv", "x", constant(weights(self.channels, 4, 3, 3)), pads=[1] * 4)
        for _ in range(2):
            ones = constant(numpy.ones(self.groups, numpy.float32))
            zeros = constant(numpy.zeros(self.groups, numpy.float32))
            normal = node("Reshape", value, constant(ints(0, self.groups, -1)))
            normal = node("InstanceNormalization", normal, ones, zeros)
            normal = node("Reshape", normal, constant(ints(*shape)))
            normal = node("Mul", normal, constant(weights(self.channels, 1, 1, scale=1)))
            normal = node("Add", normal, constant(weights(self.channels, 1, 1)))
            swish = node("Mul", normal, node("Sigmoid", normal))
            value = node("Conv", swish, constant(weights(self.channels, self.channels, 3, 3)), pads=[1] * 4)
        graph = helper.make_graph(
            nodes,
            self.name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4) + shape[2:])],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
            constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 9
        return onnx.shape_inference.infer_shapes(model)


def recurrent(name, op, gates, length, batch, size, hidden, **attributes):
    """A recurrent layer; the linear_before_reset form of gru is what torch exports."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    return Case(
        name,
        op,
        (length, batch, size),
        weights(directions, gates * hidden, size),
        weights(directions, gates * hidden, hidden),
        weights(directions, 2 * gates * hidden),
        outputs=1,
        hidden_size=hidden,
        **attributes,
    )


def cases():
    """All of them; the names say where such a call comes from."""
    image = (1, 64, 112, 112)
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    up2 = numpy.array([1, 1, 2, 2], dtype=numpy.float32)
    one = lambda value: numpy.array(value, dtype=numpy.float32)
    yield recurrent("lstm_speech", "LSTM", 4, 100, 1, 256, 256)
    yield recurrent("lstm_batch16", "LSTM", 4, 50, 16, 512, 512)
    yield recurrent("lstm_bidirectional", "LSTM", 4, 64, 1, 128, 128, direction="bidirectional")
    yield recurrent("gru_speech", "GRU", 3, 100, 1, 256, 256, linear_before_reset=1)
    yield recurrent("rnn_small", "RNN", 1, 100, 1, 128, 128)
    yield Case("conv_transpose_unet", "ConvTranspose", (1, 256, 28, 28), weights(256, 128, 2, 2), strides=[2, 2])
    yield Case("conv_transpose_gan", "ConvTranspose", (1, 256, 16, 16), weights(256, 128, 4, 4), weights(128),
               strides=[2, 2], pads=[1, 1, 1, 1])
    yield Case("conv_transpose_1d", "ConvTranspose", (1, 256, 100), weights(256, 128, 16), strides=[8], pads=[4, 4])
    yield Case("conv1d_audio", "Conv", (1, 128, 3000), weights(256, 128, 3), weights(256), pads=[1, 1])
    yield Case("conv3d_video", "Conv", (1, 32, 8, 28, 28), weights(32, 32, 3, 3, 3), pads=[1] * 6)
    yield Case("conv_depthwise", "Conv", (1, 96, 56, 56), weights(96, 1, 3, 3), weights(96), pads=[1] * 4, group=96)
    yield Case("conv_dilated", "Conv", (1, 128, 28, 28), weights(128, 128, 3, 3), pads=[4] * 4, dilations=[4, 4])
    yield Case("conv_to_rgb", "Conv", (1, 64, 128, 128), weights(3, 64, 3, 3), weights(3), pads=[1] * 4)
    yield Case("conv_to_mask", "Conv", (1, 32, 172, 88), weights(1, 32, 7, 3), weights(1), pads=[3, 1, 3, 1])
    yield Case("conv_long_taps", "Conv", (1, 8, 172, 264), weights(8, 8, 3, 39), weights(8), pads=[1, 19, 1, 19])
    yield Case("conv_fir", "Conv", (1, 1, 22176), weights(1, 1, 256), strides=[2])
    yield Case("resize_nearest", "Resize", (1, 256, 20, 20), None, up2, mode="nearest", nearest_mode="floor",
               coordinate_transformation_mode="asymmetric")
    yield Case("resize_bilinear", "Resize", (1, 21, 65, 65), None, None, ints(1, 21, 513, 513), mode="linear")
    yield Case("resize_cubic", "Resize", (1, 3, 112, 112), None, up2, mode="cubic")
    yield Case("group_norm", "InstanceNormalization", (1, 32, 40960), weights(32), weights(32))
    yield UnetBlock("unet_block", 128, 64)
    yield UnetBlock("style_block", 64, 112, groups=64)
    yield Case("instance_norm", "InstanceNormalization", image, weights(64), weights(64))
    yield Case("lrn_alexnet", "LRN", (1, 96, 55, 55), size=5, alpha=1e-4, beta=0.75)
    yield Case("log_softmax", "LogSoftmax", (64, 10000), axis=-1)
    yield Case("hardmax", "Hardmax", (64, 1000), axis=-1)
    yield Case("reduce_max", "ReduceMax", image, ints(2, 3))
    yield Case("reduce_max_channels", "ReduceMax", image, ints(1))
    yield Case("reduce_l2", "ReduceL2", (128, 768), ints(-1))
    yield Case("reduce_mean_apart", "ReduceMean", (8, 64, 49, 64), ints(0, 2))
    yield Case("reduce_sum_square", "ReduceSumSquare", (128, 768), ints(-1))
    yield Case("reduce_log_sum_exp", "ReduceLogSumExp", (128, 1000), ints(-1))
    yield Case("argmax_logits", "ArgMax", (1, 128, 30522), axis=-1, dtypes=[i64])
    yield Case("argmax_segmentation", "ArgMax", (1, 21, 256, 256), axis=1, dtypes=[i64])
    yield Case("topk", "TopK", (1, 30522), ints(50), outputs=2, dtypes=[f32, i64])
    yield Case("topk_boxes", "TopK", (80, 8400), ints(100), outputs=2, dtypes=[f32, i64])
    yield Case("cumsum", "CumSum", (8, 128, 512), ints(1).reshape(()))
    yield Case("einsum_heads", "Einsum", (1, 12, 128, 64), (1, 12, 128, 64), equation="bhid,bhjd->bhij")
    yield Case("einsum_bilinear", "Einsum", (128, 64), weights(32, 64, 64), equation="ni,kij->nkj")
    yield Case("depth_to_space", "DepthToSpace", (1, 256, 60, 60), blocksize=2, mode="CRD")
    yield Case("space_to_depth", "SpaceToDepth", (1, 64, 120, 120), blocksize=2)
    yield Case("gather_rows", "Gather", weights(30522, 256), indices(30522, 1, 128), axis=0)
    yield Case("gather_elements", "GatherElements", (128, 4096), indices(4096, 128, 256), axis=1)
    yield Case("gather_nd", "GatherND", (64, 64, 256), indices(64, 1024, 2))
    yield Case("scatter_nd", "ScatterND", (1024, 256), ints(*range(0, 1024, 4)).reshape(256, 1), weights(256, 256))
    yield Case("scatter_elements", "ScatterElements", (128, 1024), indices(1024, 128, 64), weights(128, 64), axis=1,
               reduction="add")
    yield Case("one_hot", "OneHot", indices(1000, 256), ints(1000).reshape(()), numpy.array([0, 1], numpy.float32))
    yield Case("tile", "Tile", (1, 128, 1, 64), ints(1, 1, 16, 1))
    yield Case("pad_reflect", "Pad", image, ints(0, 0, 3, 3, 0, 0, 3, 3), mode="reflect")
    yield Case("trilu", "Trilu", (12, 256, 256), upper=0)
    yield Case("where", "Where", RANDOM.integers(0, 2, (1, 1, 256, 256)).astype(bool), (1, 12, 256, 256), one(-1e9))
    yield Case("max_pool_3d", "MaxPool", (1, 32, 8, 56, 56), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield Case("max_pool_indices", "MaxPool", image, outputs=2, dtypes=[f32, i64], kernel_shape=[2, 2], strides=[2, 2])
    yield Case("average_pool", "AveragePool", image, kernel_shape=[3, 3], pads=[1] * 4)
    yield Case("global_max_pool", "GlobalMaxPool", (1, 512, 14, 14))
    yield Case("lp_normalization", "LpNormalization", (128, 768), axis=-1)
    yield Case("mvn", "MeanVarianceNormalization", (1, 64, 56, 56), axes=[2, 3])
    yield Case("grid_sample", "GridSample", (1, 64, 56, 56), weights(1, 56, 56, 2, scale=0.5), mode="linear")
    yield Case("prelu", "PRelu", image, weights(64, 1, 1))
    yield Case("pow", "Pow", image, one(2.5))
    yield Case("erf", "Erf", (1, 128, 3072))
    yield Case("not_a_power_matmul", "MatMul", (1, 197, 384), weights(384, 1000))
    yield Case("gemv", "MatMul", (1, 4096), weights(4096, 4096))
    yield Case("batched_matmul", "MatMul", (12, 128, 64), (12, 64, 128))


def main():
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="where the files go")
    options = parser.parse_args()
    os.makedirs(options.directory, exist_ok=True)
    count = 0
    for case in cases():
        onnx.save(case.model(), os.path.join(options.directory, case.name + ".onnx"))
        count += 1
    print(f"{count} models in {options.directory}")


if __name__ == "__main__":
    main()
