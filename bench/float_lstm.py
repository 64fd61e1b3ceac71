"""A model whose 8-bit LSTMs are float LSTMs of the same weights: what ONNX Runtime's DynamicQuantizeLSTM approximates.

It rounds activations to 8 bits of their range in every step, AutoGraph to 16 or more. Through deep layers the two may
be far apart, so that AutoGraph is compared with this model instead.
"""

import numpy
import onnx
from onnx import helper, numpy_helper

QUANTIZED = "DynamicQuantizeLSTM"


def has_quantized_lstm(path):
    return any(node.op_type == QUANTIZED for node in onnx.load(path).graph.node)


def dequantized(constants, weights, scale, zero):
    """[directions, inputs, 4 hidden] with scales per direction or per column, as LSTM takes them."""
    spread = (slice(None), None, slice(None)) if constants[scale].ndim == 2 else (slice(None), None, None)
    real = constants[weights].astype(numpy.float32) - constants[zero].astype(numpy.float32)[spread]
    return (real * constants[scale][spread]).transpose(0, 2, 1).copy()


def write_float_model(path, target):
    """Writes the model of `path` with float LSTMs to `target`."""
    model = onnx.load(path)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for index, node in enumerate(model.graph.node):
        if node.op_type != QUANTIZED:
            continue
        names = list(node.input)
        weights = []
        for slot, scale in ((1, 8), (2, 10)):
            name = f"float_{index}_{slot}"
            real = dequantized(constants, names[slot], names[scale], names[scale + 1])
            model.graph.initializer.append(numpy_helper.from_array(real, name))
            weights.append(name)
        plain = helper.make_node("LSTM", [names[0], *weights, *names[3:8]], node.output, name=node.name)
        plain.attribute.extend(node.attribute)
        node.CopyFrom(plain)
    onnx.save(model, target)
