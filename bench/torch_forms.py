"""Operators of ONNX that onnx2torch has no form of, in PyTorch, for models of the zoo (peer_worker.module_of).

Each is registered under the version that onnx2torch finds where the opset is said to be 13. Weights stay operands, so
that their gradients can be asked for.
"""

import torch
from onnx2torch.node_converters.registry import add_converter
from onnx2torch.utils.common import OnnxMapping, OnnxToTorchModule, OperationConverterResult

ONNX_OPSET = 13


class Form(torch.nn.Module, OnnxToTorchModule):
    """A function of the operands, some of which may be left out, with the node's attributes by name."""

    def __init__(self, function, given, attributes):
        super().__init__()
        self.function, self.given, self.attributes = function, given, attributes

    def forward(self, *operands):
        found = iter(operands)
        return self.function(*[next(found) if is_given else None for is_given in self.given], **self.attributes)


def register(operation_type, version):
    def decorate(function):
        @add_converter(operation_type=operation_type, version=version)
        def _(node, graph):
            inputs = [name for name in node.input_values if name]
            return OperationConverterResult(
                torch_module=Form(function, [bool(name) for name in node.input_values], dict(node.attributes)),
                onnx_mapping=OnnxMapping(inputs=tuple(inputs), outputs=tuple(node.output_values)),
            )

        return function

    return decorate


@register("LayerNormalization", ONNX_OPSET)
def layer_normalization(x, scale, bias=None, axis=-1, epsilon=1e-5, stash_type=1):
    return torch.nn.functional.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


@register("RMSNormalization", ONNX_OPSET)
def rms_normalization(x, scale, axis=-1, epsilon=1e-5, stash_type=1):
    axes = tuple(range(axis % x.ndim, x.ndim))
    return x * torch.rsqrt((x * x).mean(axes, keepdim=True) + epsilon) * scale


@register("LpNormalization", 1)
def lp_normalization(x, axis=-1, p=2):
    return x / torch.linalg.vector_norm(x, p, axis, keepdim=True)


@register("Gelu", ONNX_OPSET)
def gelu(x, approximate="none"):
    return torch.nn.functional.gelu(x, approximate=approximate)


@register("ScatterElements", ONNX_OPSET)
def scatter_elements(x, indices, updates, axis=0, reduction="none"):
    assert reduction in ("none", "add")
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    return x.scatter(axis, indices, updates) if reduction == "none" else x.scatter_add(axis, indices, updates)


def _steps(x, direction, d):
    """In the order of direction number d."""
    steps = range(x.shape[0])
    return reversed(steps) if direction == "reverse" or d == 1 else steps


def _check_defaults(r, lengths, peepholes, others):
    """No lengths, no peepholes, and other attributes as if they were not there."""
    size = others.pop("hidden_size", r.shape[-1])
    assert lengths is None and peepholes is None and size == r.shape[-1] and not any(others.values())


@register("LSTM", 7)
def lstm(x, w, r, b=None, lengths=None, h=None, c=None, p=None, direction="forward", **others):
    """Gates in ONNX's order: input, output, forget, cell."""
    _check_defaults(r, lengths, p, others)
    everything, last, last_cell = [], [], []
    for d in range(w.shape[0]):
        bias = b[d].view(2, -1).sum(0) if b is not None else 0
        state = h[d] if h is not None else x.new_zeros(x.shape[1], r.shape[-1])
        cell = c[d] if c is not None else x.new_zeros(x.shape[1], r.shape[-1])
        states = [None] * x.shape[0]
        for t in _steps(x, direction, d):
            i, o, f, g = (x[t] @ w[d].T + state @ r[d].T + bias).chunk(4, -1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            states[t] = state = torch.sigmoid(o) * torch.tanh(cell)
        everything.append(torch.stack(states))
        last.append(state)
        last_cell.append(cell)
    return torch.stack(everything, 1), torch.stack(last), torch.stack(last_cell)


@register("GRU", 7)
def gru(x, w, r, b=None, lengths=None, h=None, direction="forward", linear_before_reset=0, **others):
    """Gates in ONNX's order: update, reset, hidden."""
    _check_defaults(r, lengths, None, others)
    everything, last = [], []
    for d in range(w.shape[0]):
        of_x, of_h = b[d].view(2, 3, -1) if b is not None else x.new_zeros(2, 3, r.shape[-1])
        w_z, w_r, w_h = w[d].chunk(3)
        r_z, r_r, r_h = r[d].chunk(3)
        state = h[d] if h is not None else x.new_zeros(x.shape[1], r.shape[-1])
        states = [None] * x.shape[0]
        for t in _steps(x, direction, d):
            update = torch.sigmoid(x[t] @ w_z.T + state @ r_z.T + of_x[0] + of_h[0])
            reset = torch.sigmoid(x[t] @ w_r.T + state @ r_r.T + of_x[1] + of_h[1])
            kept = reset * (state @ r_h.T + of_h[2]) if linear_before_reset else (reset * state) @ r_h.T + of_h[2]
            states[t] = state = (1 - update) * torch.tanh(x[t] @ w_h.T + of_x[2] + kept) + update * state
        everything.append(torch.stack(states))
        last.append(state)
    return torch.stack(everything, 1), torch.stack(last)
