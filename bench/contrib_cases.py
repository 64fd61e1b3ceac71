#!/usr/bin/env python3
"""Random calls of contrib ops, for bench/contrib_ops.py: one function an op draws operands and attributes."""

import numpy
from onnx import helper, numpy_helper

DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 3, "": 17}
F32, U8, I8, I32, I64 = numpy.float32, numpy.uint8, numpy.int8, numpy.int32, numpy.int64


class Case:
    """One node with its operands: arrays that become graph inputs or initializers, outputs that are compared."""

    def __init__(self, random, op, domain="com.microsoft"):
        self.random, self.op, self.domain = random, op, domain
        self.operands, self.names, self.attributes = {}, [], {}
        self.outputs, self.constants = [], set()
        self.tolerance, self.steps = 2e-4, 1
        self.meaningless = {}  # by output: where it may be anything
        self.dynamic = random.integers(3) == 0

    def add(self, name, array, constant=None):
        """An operand; None stands for one that is not given. `constant`: None draws."""
        self.names.append(name if array is not None else "")
        if array is not None:
            self.operands[name] = numpy.asarray(array)
            if constant or (constant is None and self.random.integers(2)):
                self.constants.add(name)

    def maybe(self, name, array, constant=None):
        self.add(name, array if self.random.integers(2) else None, constant)

    def yields(self, *names):
        self.outputs += names

    def set(self, **attributes):
        self.attributes.update(attributes)

    def model(self):
        inputs, initializers = [], []
        for name, array in self.operands.items():
            if name in self.constants:
                initializers.append(numpy_helper.from_array(array, name))
                continue
            dims = [f"{name}_{i}" for i in range(array.ndim)] if self.dynamic else array.shape
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims))
        names = list(self.names)
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(self.op, names, self.outputs, domain=self.domain, name="node", **self.attributes)
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs if name]
        graph = helper.make_graph([node], "contrib", inputs, outputs, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in DOMAINS.items()])
        model.ir_version = 9
        return model


OPS = {}


def op(function):
    OPS[function.__name__] = function
    return function


def floats(random, *shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(F32)


def bytes_of(random, dtype, *shape):
    info = numpy.iinfo(dtype)
    return random.integers(info.min, info.max + 1, shape).astype(dtype)


def scale_of(random, *shape):
    return random.uniform(0.004, 0.05, shape).astype(F32)


def zero_of(random, dtype, *shape):
    return random.integers(0 if dtype == U8 else -20, 40, shape).astype(dtype)


def pick(random, *choices):
    return choices[int(random.integers(len(choices)))]


def dims_of(random, low, high):
    return [int(random.integers(1, 7)) for _ in range(int(random.integers(low, high + 1)))]


def broadcast_pair(random):
    full = dims_of(random, 1, 4)
    part = [d if random.integers(3) else 1 for d in full][int(random.integers(len(full))):]
    return (full, part) if random.integers(2) else (full, full)


# ---- Quantized element by element ------------------------------------------------------------------------------


def quantized_binary(case, random):
    dtype = pick(random, U8, I8)
    a, b = broadcast_pair(random)
    for name, dims in (("A", a), ("B", b)):
        case.add(name, bytes_of(random, dtype, *dims), False)
        case.add(name + "_scale", scale_of(random), True)
        case.add(name + "_zero", zero_of(random, dtype), True)
    case.add("C_scale", random.uniform(0.02, 0.1, ()).astype(F32), True)
    case.add("C_zero", zero_of(random, dtype), True)
    case.yields("C")


@op
def QLinearAdd(case, random):
    quantized_binary(case, random)


@op
def QLinearMul(case, random):
    quantized_binary(case, random)


def quantized_unary(case, random, dims, optional=True, y_scale=None, dtype=None, zero=None):
    dtype = dtype or pick(random, U8, I8)
    case.add("X", bytes_of(random, dtype, *dims), False)
    case.add("X_scale", scale_of(random), True)
    add = case.maybe if optional else case.add
    add("X_zero", zero_of(random, dtype), True)
    case.add("Y_scale", numpy.array(y_scale, F32) if y_scale else scale_of(random), True)
    case.add("Y_zero", zero_of(random, dtype) if zero is None else numpy.array(zero, dtype), True)
    case.yields("Y")
    return dtype


@op
def QLinearLeakyRelu(case, random):
    quantized_unary(case, random, dims_of(random, 1, 4))
    case.set(alpha=float(pick(random, 0.1, 0.01, 0.3)))


@op
def QLinearSigmoid(case, random):
    quantized_unary(case, random, dims_of(random, 1, 4), y_scale=1 / 256)


@op
def QLinearSoftmax(case, random):
    dims = dims_of(random, 2, 4)
    case.set(axis=int(random.integers(-len(dims), len(dims))), opset=int(pick(random, 11, 13)))
    dtype = pick(random, U8, I8)
    quantized_unary(case, random, dims, False, 1 / 256, dtype, 0 if dtype == U8 else -128)


def images(random):
    return [int(random.integers(1, 3)), int(random.integers(1, 20)), int(random.integers(5, 12)),
            int(random.integers(5, 12))]


@op
def QLinearAveragePool(case, random):
    last = int(random.integers(2))
    kernel = [int(random.integers(1, 4)) for _ in range(2)]
    case.set(kernel_shape=kernel, strides=[int(random.integers(1, 3)) for _ in range(2)], channels_last=last,
             count_include_pad=int(random.integers(2)), ceil_mode=int(random.integers(2)))
    case.set(pads=[int(random.integers(0, (kernel[i % 2] + 1) // 2)) for i in range(4)])
    quantized_unary(case, random, images(random))


@op
def QLinearGlobalAveragePool(case, random):
    case.set(channels_last=int(random.integers(2)))
    quantized_unary(case, random, images(random), False)


@op
def QLinearConcat(case, random):
    dtype, dims = pick(random, U8, I8), dims_of(random, 1, 4)
    axis = int(random.integers(len(dims)))
    scale, zero = scale_of(random), zero_of(random, dtype)
    case.add("Y_scale", scale, True)
    case.add("Y_zero", zero, True)
    for i in range(int(random.integers(1, 5))):
        dims[axis] = int(random.integers(1, 6))
        same = random.integers(2)
        case.add(f"X{i}", bytes_of(random, dtype, *dims), False)
        case.add(f"X{i}_scale", scale if same else scale_of(random), True)
        case.add(f"X{i}_zero", zero if same else zero_of(random, dtype), True)
    case.set(axis=axis - (len(dims) if random.integers(2) else 0))
    case.yields("Y")


@op
def QLinearWhere(case, random):
    dtype, dims = pick(random, U8, I8), dims_of(random, 1, 4)
    case.add("condition", random.integers(0, 2, dims).astype(bool), False)
    for name in "XY":
        case.add(name, bytes_of(random, dtype, *dims), False)
        case.add(name + "_scale", scale_of(random), True)
        case.add(name + "_zero", zero_of(random, dtype), True)
    case.add("Z_scale", scale_of(random), True)
    case.add("Z_zero", zero_of(random, dtype), True)
    case.yields("Z")


@op
def QLinearConv(case, random):
    dtype = pick(random, U8, I8)
    n, c, h, w = images(random)
    last = int(random.integers(2))
    out, k = int(random.integers(1, 20)), int(pick(random, 1, 3))
    case.add("x", bytes_of(random, dtype, *([n, h, w, c] if last else [n, c, h, w])), False)
    case.add("x_scale", scale_of(random), True)
    case.add("x_zero", zero_of(random, dtype), True)
    per = () if random.integers(2) else (out,)
    case.add("w", bytes_of(random, I8, out, c, k, k), True)
    case.add("w_scale", scale_of(random, *per), True)
    case.add("w_zero", numpy.zeros(per, I8), True)
    case.add("y_scale", random.uniform(0.2, 1, ()).astype(F32), True)
    case.add("y_zero", zero_of(random, dtype), True)
    case.maybe("b", random.integers(-900, 900, out).astype(I32), True)
    case.set(kernel_shape=[k, k], pads=[k // 2] * 4, channels_last=last)
    case.yields("y")


@op
def QuantizeLinear(case, random):
    dims = dims_of(random, 1, 4)
    axis = int(random.integers(len(dims)))
    per = (dims[axis],) if random.integers(2) else ()
    dtype = pick(random, U8, I8, numpy.int16, numpy.uint16)
    case.add("x", floats(random, *dims), False)
    case.add("scale", scale_of(random, *per))
    case.add("zero", zero_of(random, U8, *per).astype(dtype))
    if per:
        case.set(axis=axis)
    case.yields("y")


@op
def DequantizeLinear(case, random):
    dims = dims_of(random, 1, 4)
    axis = int(random.integers(len(dims)))
    per = (dims[axis],) if random.integers(2) else ()
    dtype = pick(random, U8, I8, numpy.int16, numpy.uint16)
    case.add("x", bytes_of(random, dtype, *dims), False)
    case.add("scale", scale_of(random, *per))
    case.maybe("zero", zero_of(random, U8, *per).astype(dtype))
    if per:
        case.set(axis=axis)
    case.yields("y")


@op
def MulInteger(case, random):
    dtype = pick(random, U8, I8)
    a, b = broadcast_pair(random)
    for name, dims in (("A", a), ("B", b)):
        case.add(name, bytes_of(random, dtype, *dims), False)
        case.maybe(name + "_zero", zero_of(random, dtype), True)
    case.yields("C")


# ---- Quantized products ----------------------------------------------------------------------------------------


def right_side(random, k, n):
    """A quantized matrix, its scale and its zero point; per column or not."""
    dtype = pick(random, U8, I8)
    per = (n,) if random.integers(2) else (pick(random, (), (1,)))
    zero = pick(random, numpy.zeros(per, dtype), zero_of(random, dtype, *per))
    if random.integers(3) == 0:
        zero = numpy.full(per, 128 if dtype == U8 else 3, dtype)
    return bytes_of(random, dtype, k, n), scale_of(random, *per), zero


@op
def MatMulIntegerToFloat(case, random):
    rows, k, n = dims_of(random, 1, 3), int(random.integers(1, 40)), int(random.integers(1, 20))
    dtype = pick(random, U8, U8, I8)
    b, scale, zero = right_side(random, k, n)
    if dtype == I8:
        b = b.astype(I8)
        zero = zero.astype(I8)
    case.add("A", bytes_of(random, dtype, *rows, k), False)
    case.add("B", b)
    case.add("a_scale", scale_of(random))
    case.add("b_scale", scale)
    case.maybe("a_zero", zero_of(random, dtype))
    case.maybe("b_zero", zero)
    case.maybe("bias", floats(random, n))
    case.yields("Y")


@op
def DynamicQuantizeMatMul(case, random):
    rows, k, n = dims_of(random, 1, 3), int(random.integers(1, 40)), int(random.integers(1, 20))
    b, scale, zero = right_side(random, k, n)
    case.add("A", floats(random, *rows, k), False)
    case.add("B", b)
    case.add("b_scale", scale)
    case.maybe("b_zero", zero)
    case.maybe("bias", floats(random, n))
    case.yields("Y")


@op
def QGemm(case, random):
    m, k, n = (int(random.integers(1, 30)) for _ in range(3))
    dtype = pick(random, U8, I8)
    a_t, b_t = int(random.integers(2)), int(random.integers(2))
    b, scale, zero = right_side(random, k, n)
    if dtype == I8:
        b, zero = b.astype(I8), zero.astype(I8)
    case.add("A", bytes_of(random, dtype, *((k, m) if a_t else (m, k))), False)
    case.add("a_scale", scale_of(random), True)
    case.add("a_zero", zero_of(random, dtype), True)
    case.add("B", b.T.copy() if b_t else b)
    case.add("b_scale", scale, True)
    case.add("b_zero", zero, True)
    case.maybe("C", random.integers(-4000, 4000, pick(random, (n,), (m, n), (1, n))).astype(I32), True)
    if random.integers(2):
        case.add("y_scale", random.uniform(0.1, 1, ()).astype(F32), True)
        case.add("y_zero", zero_of(random, dtype), True)
    case.set(transA=a_t, transB=b_t, alpha=float(pick(random, 1.0, 1.0, 0.5)))
    case.yields("Y")


@op
def DynamicQuantizeLSTM(case, random):
    length, batch, size, hidden = (int(random.integers(1, 9)) for _ in range(4))
    direction = pick(random, "forward", "reverse", "bidirectional")
    dirs = 2 if direction == "bidirectional" else 1
    case.add("X", floats(random, length, batch, size), False)
    for name, rows in (("W", size), ("R", hidden)):
        case.add(name, bytes_of(random, I8, dirs, rows, 4 * hidden), True)
    case.maybe("B", floats(random, dirs, 8 * hidden), True)
    case.add("lengths", None)
    case.maybe("h", floats(random, dirs, batch, hidden, scale=0.3), False)
    case.maybe("c", floats(random, dirs, batch, hidden, scale=0.3), False)
    case.add("P", None)
    per = (dirs, 4 * hidden) if random.integers(2) else (dirs,)
    for name in "WR":
        case.add(name + "_scale", random.uniform(0.002, 0.006, per).astype(F32), True)
        case.add(name + "_zero", numpy.zeros(per, I8), True)
    case.set(hidden_size=hidden, direction=direction)
    case.yields("Y", "Y_h", "Y_c")
    # ONNX Runtime rounds the activations of every step to 8 bits.
    case.tolerance = 0.03


@op
def QAttention(case, random):
    batch, length, heads, size = 2, int(random.integers(1, 7)), int(pick(random, 1, 2, 3)), int(pick(random, 4, 8))
    hidden, rows = heads * size, int(random.integers(3, 30))
    b, scale, zero = right_side(random, rows, 3 * hidden)
    case.add("input", bytes_of(random, U8, batch, length, rows), False)
    case.add("weight", b, True)
    case.add("bias", floats(random, 3 * hidden), True)
    case.add("input_scale", scale_of(random) / 10, True)
    case.add("weight_scale", scale, True)
    past = int(random.integers(1, 5)) if random.integers(2) else 0
    mask = None if random.integers(2) else random.integers(1, length + past + 1, batch).astype(I32)
    case.add("mask_index", mask, False)
    case.maybe("input_zero", zero_of(random, U8), True)
    case.add("weight_zero", zero, True)
    case.yields("output")
    if past:
        case.add("past", floats(random, 2, batch, heads, past, size), False)
        case.yields("present")
    case.set(num_heads=heads, unidirectional=int(random.integers(2)))


# ---- Blocks ----------------------------------------------------------------------------------------------------


@op
def MatMulNBits(case, random):
    bits, block = int(pick(random, 4, 4, 8)), int(pick(random, 16, 32, 64, 128))
    n, k = int(random.integers(1, 40)), int(random.integers(1, 150))
    blocks = -(-k // block)
    constant = bool(random.integers(4))
    case.add("A", floats(random, *dims_of(random, 1, 2), k), False)
    case.add("B", bytes_of(random, U8, n, blocks, block * bits // 8), constant)
    case.add("scales", scale_of(random, *pick(random, (n, blocks), (n * blocks,))), constant)
    zero = pick(random, None, "packed", "float")
    if zero == "packed":
        case.add("zero", bytes_of(random, U8, n, -(-blocks * bits // 8)), constant)
    elif zero:
        case.add("zero", random.uniform(0, 15, (n, blocks)).astype(F32), constant)
    else:
        case.add("zero", None)
    case.add("g_idx", None)
    case.maybe("bias", floats(random, n), True)
    case.set(bits=bits, block_size=block, N=n, K=k)
    case.yields("Y")


@op
def GatherBlockQuantized(case, random):
    bits, block = int(pick(random, 4, 8)), int(pick(random, 16, 32))
    rows, blocks = int(random.integers(1, 30)), int(random.integers(1, 4))
    width = blocks * block - (2 * int(random.integers(4)) if block > 8 else 0)
    case.add("data", bytes_of(random, U8, rows, width * bits // 8), True)
    case.add("indices", random.integers(-rows, rows, dims_of(random, 1, 2)).astype(pick(random, I32, I64)), False)
    case.add("scales", scale_of(random, rows, blocks), True)
    case.maybe("zero", bytes_of(random, U8, rows, -(-blocks * bits // 8)), True)
    case.set(bits=bits, block_size=block, gather_axis=0, quantize_axis=int(pick(random, 1, -1)))
    case.yields("Y")


# ---- Fused products --------------------------------------------------------------------------------------------


def activation(case, random):
    name, count = pick(random, ("Relu", 0), ("Tanh", 0), ("Sigmoid", 0), ("LeakyRelu", 1), ("Clip", 2),
                       ("HardSigmoid", 2), (None, 0))
    if not name:
        return
    case.set(activation=name)
    if count:
        numbers = sorted(random.uniform(-0.5, 0.8, count)) if name == "Clip" else random.uniform(0.1, 0.5, count)
        case.set(activation_params=[float(x) for x in numbers])


@op
def FusedConv(case, random):
    n, c, h, w = images(random)
    out, k = int(random.integers(1, 20)), int(pick(random, 1, 3))
    group = 1
    if random.integers(3) == 0:
        group, out = c, c
    case.add("X", floats(random, n, c, h, w), False)
    case.add("W", floats(random, out, c // group, k, k, scale=0.3))
    case.add("B", floats(random, out))
    case.maybe("Z", floats(random, n, out, h, w), False)
    case.set(kernel_shape=[k, k], pads=[k // 2] * 4, group=group)
    activation(case, random)
    case.yields("Y")


@op
def NhwcFusedConv(case, random):
    n, c, h, w = images(random)
    out, k = int(random.integers(1, 20)), int(pick(random, 1, 3))
    case.add("X", floats(random, n, h, w, c), False)
    case.add("W", floats(random, out, c, k, k, scale=0.3), True)
    case.add("B", floats(random, out), True)
    case.maybe("Z", floats(random, n, h, w, out), False)
    case.set(kernel_shape=[k, k], pads=[k // 2] * 4)
    activation(case, random)
    case.yields("Y")


@op
def FusedMatMul(case, random):
    m, k, n = (int(random.integers(1, 20)) for _ in range(3))
    a_t, b_t = int(random.integers(2)), int(random.integers(2))
    batch = dims_of(random, 0, 2)
    a, b = batch + ([k, m] if a_t else [m, k]), (batch if random.integers(2) else []) + ([n, k] if b_t else [k, n])
    if len(batch) == 1 and random.integers(2):
        case.set(transBatchA=1)
        a = [a[1], a[0], a[2]]
    case.add("A", floats(random, *a), False)
    case.add("B", floats(random, *b))
    case.set(transA=a_t, transB=b_t, alpha=float(pick(random, 1.0, 0.125, -2.0)))
    case.yields("Y")


@op
def TransposeMatMul(case, random):
    m, k, n = (int(random.integers(1, 20)) for _ in range(3))
    a_t, b_t = int(random.integers(2)), int(random.integers(2))
    case.add("A", floats(random, 2, *((k, m) if a_t else (m, k))), False)
    case.add("B", floats(random, 2, *((n, k) if b_t else (k, n))))
    case.set(transA=a_t, transB=b_t, alpha=0.5)
    case.yields("Y")


@op
def FusedGemm(case, random):
    m, k, n = (int(random.integers(1, 20)) for _ in range(3))
    a_t, b_t = int(random.integers(2)), int(random.integers(2))
    case.add("A", floats(random, *((k, m) if a_t else (m, k))), False)
    case.add("B", floats(random, *((n, k) if b_t else (k, n))))
    case.maybe("C", floats(random, *pick(random, (n,), (m, n), (1, n))))
    case.set(transA=a_t, transB=b_t, alpha=float(pick(random, 1.0, 0.5)), beta=float(pick(random, 1.0, 2.0)))
    case.set(activation=pick(random, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu", "Softplus", "HardSigmoid"))
    if case.attributes["activation"] in ("LeakyRelu", "Elu", "HardSigmoid"):
        case.set(activation_alpha=0.25)
    if case.attributes["activation"] == "HardSigmoid":
        case.set(activation_beta=0.4)
    case.yields("Y")


# ---- Activations, normalizations -------------------------------------------------------------------------------


@op
def Gelu(case, random):
    case.add("X", floats(random, *dims_of(random, 1, 4)), False)
    case.yields("Y")


@op
def QuickGelu(case, random):
    Gelu(case, random)
    case.set(alpha=float(pick(random, 1.702, 1.0, -2.0)))


@op
def FastGelu(case, random):
    dims = dims_of(random, 1, 4)
    case.add("X", floats(random, *dims), False)
    case.maybe("bias", floats(random, dims[-1]))
    case.yields("Y")


@op
def BiasGelu(case, random):
    dims = dims_of(random, 1, 4)
    case.add("A", floats(random, *dims), False)
    case.add("B", floats(random, dims[-1]))
    case.yields("C")


def skip_operands(case, random, beta):
    batch, length, size = (int(random.integers(1, 9)) for _ in range(3))
    skip = pick(random, (batch, length, size), (1, length, size), (length, size)) if beta else (batch, length, size)
    case.add("input", floats(random, batch, length, size), False)
    case.add("skip", floats(random, *skip), False)
    case.add("gamma", floats(random, size))
    if beta:
        case.maybe("beta", floats(random, size))
    case.maybe("bias", floats(random, size))
    case.yields("output")
    if random.integers(2):
        case.yields("", "", "sum")
    case.set(epsilon=float(pick(random, 1e-12, 1e-5, 1e-3)))


@op
def SkipLayerNormalization(case, random):
    skip_operands(case, random, True)


@op
def SkipSimplifiedLayerNormalization(case, random):
    skip_operands(case, random, False)


@op
def SimplifiedLayerNormalization(case, random):
    case.domain = ""
    dims = dims_of(random, 2, 4)
    case.add("X", floats(random, *dims), False)
    case.add("scale", floats(random, dims[-1]))
    case.set(axis=-1, epsilon=float(pick(random, 1e-5, 1e-3)), stash_type=1)
    case.yields("Y")


@op
def LayerNormalization(case, random):
    case.domain = ""
    dims = dims_of(random, 2, 4)
    case.add("X", floats(random, *dims), False)
    case.add("scale", floats(random, dims[-1]))
    case.maybe("bias", floats(random, dims[-1]))
    case.set(axis=-1, epsilon=1e-5)
    case.yields("Y")


@op
def EmbedLayerNormalization(case, random):
    batch, length, size, words = (int(random.integers(1, 9)) for _ in range(4))
    segments = random.integers(2)
    case.add("ids", random.integers(0, words, (batch, length)).astype(I32), False)
    case.add("segments", random.integers(0, 2, (batch, length)).astype(I32) if segments else None, False)
    case.add("words", floats(random, words, size))
    case.add("positions", floats(random, length + 3, size))
    case.add("segment_table", floats(random, 2, size) if segments else None)
    case.add("gamma", floats(random, size))
    case.add("beta", floats(random, size))
    case.maybe("mask", random.integers(0, 2, (batch, length)).astype(I32), False)
    ids = random.integers(0, length, (pick(random, 1, batch), length)).astype(I32)
    case.maybe("position_ids", ids, False)
    case.set(epsilon=1e-5)
    case.yields("output", "mask_index")
    if random.integers(2):
        case.yields("sum")


# ---- Attention -------------------------------------------------------------------------------------------------


def masks(random, batch, length, total):
    return [None, random.integers(1, total + 1, batch).astype(I32),
            numpy.concatenate([random.integers(total // 2 + 1, total + 1, batch),
                               random.integers(0, total // 2 + 1, batch)]).astype(I32),
            random.integers(0, 2, (batch, total)).astype(I32),
            random.integers(0, 2, (batch, length, total)).astype(I32)]


@op
def Attention(case, random):
    batch, length, heads, size = int(random.integers(1, 4)), int(random.integers(1, 8)), int(pick(random, 1, 2, 3)), 4
    rows, hidden = int(random.integers(3, 20)), heads * size
    past = int(random.integers(1, 5)) if random.integers(3) == 0 else 0
    v_hidden = hidden if past or random.integers(2) else heads * 6
    case.add("input", floats(random, batch, length, rows), False)
    case.add("weights", floats(random, rows, 2 * hidden + v_hidden, scale=0.5), True)
    case.add("bias", floats(random, 2 * hidden + v_hidden), True)
    total = length + past
    case.add("mask", pick(random, *masks(random, batch, length, total)), False)
    case.tolerance = 2e-3  # a row that hides all keys adds up numbers of 10000
    case.add("past", floats(random, 2, batch, heads, past, size) if past else None, False)
    case.maybe("bias_qk", floats(random, pick(random, 1, batch), pick(random, 1, heads), length, total), False)
    case.set(num_heads=heads, unidirectional=int(random.integers(2)))
    if v_hidden != hidden:
        case.set(qkv_hidden_sizes=[hidden, hidden, v_hidden])
    if random.integers(3) == 0:
        case.set(scale=0.3)
    if random.integers(3) == 0:
        case.set(mask_filter_value=float(pick(random, -1e4, float(numpy.finfo(F32).min), -50.0)))
    case.yields("output")
    if past:
        case.yields("present")


@op
def MultiHeadAttention(case, random):
    batch, length, heads, size = int(random.integers(1, 4)), int(random.integers(1, 8)), int(pick(random, 1, 2, 3)), 4
    hidden, v_hidden = heads * size, heads * pick(random, 4, 6)
    cross = random.integers(4) == 0
    past = int(random.integers(1, 5)) if random.integers(3) == 0 and not cross else 0
    kv = int(random.integers(1, 8)) if random.integers(2) and not past else length
    case.add("query", floats(random, batch, length, hidden), False)
    if cross:
        case.add("key", floats(random, batch, heads, kv, size), False)
        case.add("value", floats(random, batch, heads, kv, size), False)
    else:
        if past:
            v_hidden = hidden
        case.add("key", floats(random, batch, kv, hidden), False)
        case.add("value", floats(random, batch, kv, v_hidden), False)
    case.add("bias", floats(random, 2 * hidden + v_hidden) if random.integers(2) and not cross else None, True)
    total = kv + past
    ends, _, keys, pairs = masks(random, batch, length, total)[1:]
    case.tolerance = 2e-3  # a row that hides all keys adds up numbers of 10000
    case.add("mask", pick(random, None, ends, keys, pairs), False)
    case.maybe("bias_qk", floats(random, pick(random, 1, batch), pick(random, 1, heads), length, total), False)
    case.add("past_key", floats(random, batch, heads, past, size) if past else None, False)
    case.add("past_value", floats(random, batch, heads, past, size) if past else None, False)
    case.set(num_heads=heads, unidirectional=int(random.integers(2)) if kv == length else 0)
    if random.integers(3) == 0:
        case.set(scale=0.3)
    case.yields("output")
    if past or (not cross and random.integers(3) == 0):
        case.yields("present_key", "present_value")


@op
def RotaryEmbedding(case, random):
    batch, length, heads, size = (int(random.integers(1, 5)) for _ in range(4))
    size *= 4
    packed, rotated = random.integers(2), size
    if random.integers(2):
        rotated = size // 2
        case.set(rotary_embedding_dim=rotated, num_heads=heads)
    dims = (batch, length, heads * size) if packed else (batch, heads, length, size)
    case.add("input", floats(random, *dims), False)
    whole = random.integers(0, 12, (batch, length)).astype(I64)
    case.add("ids", pick(random, numpy.array([3], I64), whole), False)
    for name in ("cos", "sin"):
        case.add(name, random.uniform(-1, 1, (12, rotated // 2)).astype(F32), True)
    case.set(interleaved=int(random.integers(2)))
    case.yields("output")


@op
def GroupQueryAttention(case, random):
    batch, kv_heads, group, size = int(random.integers(1, 4)), int(pick(random, 1, 2)), int(pick(random, 1, 2)), 16
    heads, mode = kv_heads * group, pick(random, "prompt", "first", "decode", "decode", "append")
    past = {"prompt": 0, "first": 0}.get(mode, int(random.integers(1, 8)))
    length = 1 if mode == "decode" else int(random.integers(1, 6))
    if mode == "append" and batch > 1:
        batch = 1
    packed = random.integers(2)
    total = past + length
    query = (heads + 2 * kv_heads if packed else heads) * size
    case.add("query", floats(random, batch, length, query), False)
    for name in ("key", "value"):
        case.add(name, None if packed else floats(random, batch, length, kv_heads * size), False)
    for name in ("past_key", "past_value"):
        case.add(name, None if mode == "prompt" else floats(random, batch, kv_heads, past, size), False)
    lengths = numpy.full(batch, total - 1, I32)
    if mode == "decode" and random.integers(2):
        lengths[1:] = random.integers(0, total, batch - 1)  # rows of a batch have keys of their own number
        behind = numpy.arange(total) > lengths[:, None]
        case.meaningless = dict.fromkeys(("present_key", "present_value"), behind[:, None, :, None])
    case.add("seqlens_k", lengths, False)
    case.add("total", numpy.array(total, I32), False)
    rotary = random.integers(2)
    for name in ("cos", "sin"):
        case.add(name, random.uniform(-1, 1, (32, size // 2)).astype(F32) if rotary else None, True)
    case.add("position_ids", None)
    case.maybe("bias_qk", floats(random, pick(random, 1, batch), pick(random, 1, heads), length, total), False)
    if not case.names[-1]:
        case.maybe("head_sink", floats(random, heads), True)
    case.set(num_heads=heads, kv_num_heads=kv_heads, do_rotary=int(rotary))
    if rotary:
        case.set(rotary_interleaved=int(random.integers(2)))
    if random.integers(4) == 0:
        case.set(local_window_size=int(random.integers(1, 6)))
    if random.integers(4) == 0:
        case.set(softcap=2.0)
    if random.integers(4) == 0:
        case.set(scale=0.3)
    if random.integers(6) == 0 and "bias_qk" not in case.names:
        case.set(smooth_softmax=1)
    case.yields("output", "present_key", "present_value")
