"""What train_peers.py --check compares: gradients and losses of AutoGraph in f32 with those of PyTorch in f64."""

import json
import math
import os
import subprocess
import tempfile

import numpy

import peer_processes

GRADIENT_TOLERANCE = 1e-4
F64_TOLERANCE = 1e-8
LOSS_TOLERANCE = 1e-3
NEXT_TO_NOTHING = 1e-3
DRAWS = 4
# How far from the truth losses may be, to those of PyTorch in f32: rounding alone parts steps of a steep descent.
OWN_DIFFERENCES = 4
RATES = {"sgd": 0.05, "adamw": 1e-3}
ZOO = "zoo:"
EXPORT = "export:"


# ---- Models that learn -----------------------------------------------------------------------------------------------


def torch_as(dtype, name, arrays):
    """Module, input and target; indices stay what they are."""
    import torch

    import train_models

    x, target = (torch.from_numpy(array) for array in arrays)
    return train_models.build(name).to(dtype), x.to(dtype) if x.is_floating_point() else x, target


def torch_gradients(name, arrays):
    import torch

    import train_models

    module, x, target = torch_as(torch.float64, name, arrays)
    train_models.loss_of(name, module.eval()(x), target).backward()
    return {key: weight.grad.numpy() for key, weight in module.named_parameters()}


def torch_losses(dtype, name, arrays, kind, steps):
    import train_models

    module, x, target = torch_as(dtype, name, arrays)
    module.train()
    optimizer = train_models.make_optimizer(kind, module.parameters(), RATES[kind])
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = train_models.loss_of(name, module(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run_training(options, files, name, kind, gradients=None):
    import train_models

    words = [options.training, files["model"], files["x"], files["target"], train_models.loss_kind(name), kind]
    words += [str(RATES[kind]), str(options.steps), *([gradients] if gradients else [])]
    return json.loads(output_of(words))["losses"]


def output_of(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise peer_processes.PeerError((done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1])
    return done.stdout


def losses_off(losses, expected):
    if len(losses) != len(expected):
        return math.inf
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(losses, expected))


def worst_gradient(actual, expected):
    """(share, name) of the weight whose gradient is farthest off. Some are 0 but for rounding errors, such as that of a
    bias in front of a softmax: next to nothing is what is small beside the gradients of the others."""
    worst = (0.0, "")
    least = max(numpy.abs(gradient).max() for gradient in expected.values()) * NEXT_TO_NOTHING
    for name, gradient in expected.items():
        if name not in actual:
            return math.inf, f"{name}: no gradient"
        difference = numpy.abs(gradient - actual[name]).max() / max(least, numpy.abs(gradient).max())
        worst = max(worst, (float(numpy.nan_to_num(difference, nan=math.inf)), name))
    return worst


def read_folder(folder, names):
    files = {name: os.path.join(folder, name + ".npy") for name in names}
    return {name: numpy.load(file) for name, file in files.items() if os.path.exists(file)}


def check_model(options, name, write_files):
    import torch

    import train_models

    batch = options.batch or min(train_models.MODELS[name][1], 4)
    arrays = train_models.draw(name, batch)
    agrees = True
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as gradients:
        files = write_files(name, folder, batch)
        for kind in RATES:
            losses = run_training(options, files, name, kind, gradients if kind == "sgd" else None)
            expected = torch_losses(torch.float64, name, arrays, kind, options.steps)
            worst = losses_off(losses, expected)
            of_torch = losses_off(torch_losses(torch.float32, name, arrays, kind, options.steps), expected)
            agrees = agrees and worst <= max(LOSS_TOLERANCE, OWN_DIFFERENCES * of_torch)
            print(
                f"{name:12} {kind:6} {options.steps} steps: losses off by {worst:.1e} (last {expected[-1]:.4f}; "
                f"PyTorch in f32 {of_torch:.1e})",
                flush=True,
            )
        expected = torch_gradients(name, arrays)
        share, weight = worst_gradient(read_folder(gradients, expected), expected)
        print(f"{name:12} gradients off by {share:.1e} of their largest ({weight})", flush=True)
        return agrees and share <= GRADIENT_TOLERANCE


# ---- Files -----------------------------------------------------------------------------------------------------------


def widen(path):
    """Makes f64 of all that is f32 in a file."""
    import onnx

    model = onnx.load(path)
    f32, f64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def widened(tensor):
        if tensor.data_type == f32:
            array = onnx.numpy_helper.to_array(tensor).astype(numpy.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))

    for tensor in model.graph.initializer:
        widened(tensor)
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        if value.type.tensor_type.elem_type == f32:
            value.type.tensor_type.elem_type = f64
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widened(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == f32:
                attribute.i = f64
    onnx.save(model, path)


def gradients_of_file(options, path, inputs, target, folder, in_f64=False):
    """{name: gradient of the mean squared error of the first output} by `autograph grad` and `autograph run`."""
    derived = os.path.join(folder, "gradients.onnx")
    output_of([options.autograph, "grad", path, "--loss", "mse", "-o", derived])
    if in_f64:
        widen(derived)
    words = [options.autograph, "run", derived, "--output-dir", folder, "--json", "--threads", str(options.threads)]
    for name, array in {**inputs, "target": target}.items():
        file = os.path.join(folder, f"input_{len(words)}.npy")
        numpy.save(file, array.astype(numpy.float64) if in_f64 and array.dtype == numpy.float32 else array)
        words += ["--input", f"{name}={file}"]
    prefix, found = "grad/", {}
    for output in json.loads(output_of(words))["outputs"]:
        if output["name"].startswith(prefix):
            found[output["name"].removeprefix(prefix)] = numpy.load(output["file"])
    return found


def verdict(name, actual, expected, in_f32):
    """`in_f32`: of PyTorch; None where the actual ones are f64, too."""
    share, weight = worst_gradient(actual, expected)
    beside = "both in f64" if in_f32 is None else f"PyTorch in f32 {worst_gradient(in_f32, expected)[0]:.1e}"
    print(f"{name:28} {len(expected):4} gradients off by {share:.1e} of their largest ({weight}; {beside})", flush=True)
    return share <= (F64_TOLERANCE if in_f32 is None else GRADIENT_TOLERANCE)


def check_draws(check_once, options, name):
    """Where a sum next to a kink is rounded to its other side, gradients jump, in PyTorch's f32 no less: then other
    inputs are drawn. A wrong rule is wrong for all of them. Of networks with so many that each draw meets some, f64
    decides; it is asked of all others with --f64."""
    agrees = any(check_once(options, name, draw) for draw in range(DRAWS))
    return agrees if agrees and not options.f64 else check_once(options, name, 0, in_f64=True)


def check_export(options, name, draw, in_f64=False):
    """A model of torchvision or transformers, as PyTorch exports it."""
    import torch

    import train_exports

    x, target = train_exports.draw(name, draw)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        train_exports.export(name, path, x)
        actual = gradients_of_file(options, path, {"x": x}, target, folder, in_f64)
    expected = train_exports.gradients(name, (x, target), torch.float64)
    in_f32 = None if in_f64 else train_exports.gradients(name, (x, target), torch.float32)
    return verdict(EXPORT + name, actual, expected, in_f32)


def check_zoo(options, name, draw, in_f64=False):
    """A model of the zoo, which PyTorch reads by onnx2torch."""
    import torch

    import train_zoo

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        output_of([options.autograph, "zoo", "export", name, "-o", path])
        try:
            zoo = train_zoo.ZooModel(path, draw + 1)
        except NotImplementedError as error:  # onnx2torch has no such op: nothing is said about the model
            print(f"{ZOO + name:28} left out: {error}", flush=True)
            return True
        actual = gradients_of_file(options, path, zoo.inputs, zoo.target, folder, in_f64)
        expected, in_f32 = zoo.gradients(torch.float64), None if in_f64 else zoo.gradients(torch.float32)
        return verdict(ZOO + name, zoo.merged(actual), expected, in_f32)


def check(options, name, write_files):
    """Prints what was compared; True where all agree."""
    try:
        if name.startswith(EXPORT):
            return check_draws(check_export, options, name.removeprefix(EXPORT))
        if name.startswith(ZOO):
            return check_draws(check_zoo, options, name.removeprefix(ZOO))
        return check_model(options, name, write_files)
    except peer_processes.PeerError as error:
        print(f"{name:28} failed: {error}", flush=True)
        return False
