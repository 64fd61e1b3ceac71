"""Models of the zoo as PyTorch modules by onnx2torch, for the gradients that train_peers.py --check compares.

onnx2torch gives weights names of its own and a copy to each reader, transposed where PyTorch wants that: which tensor
is a copy of which weight of the file is seen from the elements. Weights of equal elements are compared by the sum of
their gradients.
"""

import warnings

import numpy
import onnx
import torch

import peer_worker

HIDES = 1e6  # masks have such numbers, and do not learn
INDICES_BELOW = 100  # every vocabulary and table has as many rows


def _key(array):
    return array.shape, array.tobytes()


class ZooModel:
    def __init__(self, path, seed):
        warnings.filterwarnings("ignore")
        self.path = path
        graph = onnx.load(path).graph
        random = numpy.random.default_rng(seed)
        self.inputs = {value.name: self._draw(random, value) for value in graph.input}
        arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.groups = {}  # elements -> names of the weights that have them
        for name, array in arrays.items():
            if array.dtype == numpy.float32 and array.size > 1 and numpy.abs(array).max() < HIDES:
                self.groups.setdefault(_key(array), []).append(name)
        with torch.no_grad():
            shape = self._run(self._module(torch.float32)).shape
        self.target = random.standard_normal(shape).astype(numpy.float32)

    @staticmethod
    def _draw(random, value):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            return random.standard_normal(shape).astype(numpy.float32)
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        return random.integers(0, INDICES_BELOW, shape).astype(kind)

    def _module(self, dtype):
        """Sets self.copies: (names, tensor, is transposed)."""
        module, _ = peer_worker.module_of(self.path)
        self.copies = []
        for part in module.modules():
            for name, tensor in [*part._parameters.items(), *part._buffers.items()]:
                if tensor is None or not tensor.is_floating_point() or tensor.numel() < 2:
                    continue
                array = tensor.detach().numpy()
                names, turned = self.groups.get(_key(array)), False
                if names is None and array.ndim == 2:
                    names, turned = self.groups.get(_key(numpy.ascontiguousarray(array.T))), True
                if names is None or name in ("running_mean", "running_var"):
                    continue
                learns = torch.nn.Parameter(tensor.detach().clone().to(dtype))
                delattr(part, name)
                part.register_parameter(name, learns)
                self.copies.append((names[0], learns, turned))
        return module.to(dtype)

    def _run(self, module, dtype=torch.float32):
        inputs = (torch.from_numpy(array) for array in self.inputs.values())
        outputs = module(*(x.to(dtype) if x.is_floating_point() else x for x in inputs))
        return outputs if isinstance(outputs, torch.Tensor) else outputs[0]

    def gradients(self, dtype):
        module = self._module(dtype)
        y = self._run(module, dtype)
        torch.nn.functional.mse_loss(y, torch.from_numpy(self.target).to(y.dtype)).backward()
        found = {}
        for name, tensor, turned in self.copies:
            if tensor.grad is not None:
                gradient = (tensor.grad.T if turned else tensor.grad).numpy()
                found[name] = found[name] + gradient if name in found else gradient
        return found

    def merged(self, gradients):
        """Those of weights of equal elements added up, under the name of the first."""
        found = {}
        for names in self.groups.values():
            known = [gradients[name] for name in names if name in gradients]
            if known:
                found[names[0]] = sum(known[1:], known[0])
        return found
