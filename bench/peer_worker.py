#!/usr/bin/env python3
"""One runtime in a process of its own, told what to do by lines of JSON on stdin; peers.py starts it.

    python bench/peer_worker.py KIND --threads N        KIND: onnxruntime openvino torchscript inductor
                                                   torchscript_cuda inductor_cuda

Prints {"version", "baseline_bytes"} once its package is imported, then answers each line by one line:

    {"do": "load", "model": FILE, "inputs": {NAME: FILE.npy}, "output_dir": DIR}
        -> {"load_ms", "peak_bytes", "outputs": {NAME: FILE.npy}}
    {"do": "time", "warmup": SECONDS, "seconds": SECONDS}
        -> {"min_ms", "median_ms", "mean_ms", "iterations"}

load_ms runs from making the session to the first output. peak_bytes is the largest resident size of the process up to
then, baseline_bytes the same before the load: the interpreter with the package. An answer {"error"} ends nothing.
"""

import argparse
import json
import os
import statistics
import sys
import time

import numpy

FEWEST_RUNS = 3


def peak_resident_bytes(process_id="self"):
    with open(f"/proc/{process_id}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class OnnxRuntime:
    """ONNX Runtime's CPU provider as it comes; inputs and outputs are bound, which saves some microseconds a run."""

    def __init__(self, threads):
        import onnxruntime

        self.package, self.threads = onnxruntime, threads
        self.version = onnxruntime.__version__

    def load(self, model, inputs):
        options = self.package.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 3
        session = self.package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        self.names = [output.name for output in session.get_outputs()]

        def bind_outputs():
            binding.clear_binding_outputs()
            for name in self.names:
                binding.bind_output(name, "cpu")

        def run_bound_anew():
            bind_outputs()
            session.run_with_iobinding(binding)

        def run():
            try:
                session.run_with_iobinding(binding)
            except RuntimeError:
                # An output of another rank than the file says: what one run has made is refused by the next.
                run_bound_anew()
                self.run = run_bound_anew

        bind_outputs()
        self.run = run
        self.binding = binding

    def outputs(self):
        return dict(zip(self.names, self.binding.copy_outputs_to_cpu()))


class OpenVino:
    """OpenVINO for latency, with f32 arithmetic: it may choose bf16 by itself where the processor has it."""

    def __init__(self, threads):
        import openvino

        self.package, self.threads = openvino, threads
        self.version = openvino.__version__.split("-")[0]

    def load(self, model, inputs):
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": self.threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        compiled = self.package.Core().compile_model(model, "CPU", settings)
        request = compiled.create_infer_request()
        for name, array in inputs.items():
            request.set_tensor(name, self.package.Tensor(array, shared_memory=True))
        self.run = lambda: request.infer(share_outputs=True)
        self.compiled, self.request = compiled, request

    def outputs(self):
        return {port.get_any_name(): self.request.get_tensor(port).data.copy() for port in self.compiled.outputs}


# The newest opset of whose operators onnx2torch has most forms; torch_forms.py has those of the others.
ONNX2TORCH_OPSET = 13


def module_of(model):
    """(module, names of its outputs) of an ONNX file: where PyTorch exported it, the module of that name that
    export_models.py exported, with the same weights; else what onnx2torch makes of the file. Models of the zoo use
    operators that are the same in opset 13 under a later number; peers.py compares the outputs."""
    import onnx

    proto = onnx.load(model)
    names = [output.name for output in proto.graph.output]
    if proto.producer_name == "pytorch":
        import export_models

        return export_models.build_module(os.path.splitext(os.path.basename(model))[0])[0], names
    import onnx2torch

    import torch_forms  # registers itself

    for opset in proto.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = min(opset.version, ONNX2TORCH_OPSET)
    return with_known_shapes(onnx2torch.convert(proto).eval()), names


def with_known_shapes(module):
    """Reshapes to constant shapes take numbers instead of a tensor, whose elements dynamo does not read."""
    import torch

    for node in list(module.graph.nodes):
        is_reshape = node.op == "call_module" and type(module.get_submodule(node.target)).__name__ == "OnnxReshape"
        if is_reshape and node.args[1].op == "get_attr":
            owner, _, name = node.args[1].target.rpartition(".")
            shape = getattr(module.get_submodule(owner), name).tolist()
            if 0 in shape:  # means: the extent of the input
                continue
            with module.graph.inserting_before(node):
                node.replace_all_uses_with(module.graph.call_function(torch.reshape, (node.args[0], tuple(shape))))
            module.graph.erase_node(node)
    module.recompile()
    return module


class Torch:
    """PyTorch, by TorchScript or inductor. The time to load is that of tracing or compiling, without the building of
    the module."""

    def __init__(self, threads, inductor, device="cpu"):
        import torch

        self.package, self.inductor, self.device = torch, inductor, device
        torch.set_num_threads(threads)
        torch.backends.cudnn.allow_tf32 = False  # f32 as the others compute it
        self.version = torch.__version__.split("+")[0]

    def prepare(self, model):
        self.module, self.names = module_of(model)

    def load(self, _, inputs):
        torch = self.package
        given = tuple(torch.from_numpy(array) for array in inputs.values())
        arrays = tuple(array.to(self.device) for array in given)
        self.module.to(self.device)
        if self.inductor and self.device != "cpu":
            compiled = torch.compile(self.module, mode="reduce-overhead")  # CUDA graphs
        elif self.inductor:
            import torch._inductor.config

            torch._inductor.config.freezing = True  # weights as constants, prepacked, as the others have them
            compiled = torch.compile(self.module)
        else:
            compiled = torch.jit.optimize_for_inference(torch.jit.trace(self.module, arrays, check_trace=False))

        def run():
            with torch.no_grad():
                self.result = compiled(*arrays)

        def run_there():
            """From the host and back to it, as `autograph bench` runs: copies count, and end what is waited for."""
            with torch.no_grad():
                results = compiled(*(array.to(self.device, non_blocking=True) for array in given))
                many = isinstance(results, (list, tuple))
                self.result = [result.cpu() for result in results] if many else results.cpu()

        self.run = run if self.device == "cpu" else run_there

    def outputs(self):
        results = self.result if isinstance(self.result, (list, tuple)) else [self.result]
        return {name: result.numpy() for name, result in zip(self.names, results)}


KINDS = {
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "torchscript": lambda threads: Torch(threads, inductor=False),
    "inductor": lambda threads: Torch(threads, inductor=True),
    "torchscript_cuda": lambda threads: Torch(threads, inductor=False, device="cuda"),
    "inductor_cuda": lambda threads: Torch(threads, inductor=True, device="cuda"),
}


def load(runtime, request):
    inputs = {name: numpy.load(file) for name, file in request["inputs"].items()}
    if hasattr(runtime, "prepare"):
        runtime.prepare(request["model"])
    runtime.inputs = inputs  # a runtime reads the arrays in place: they have to outlive this function
    begin = time.perf_counter()
    runtime.load(request["model"], inputs)
    runtime.run()
    load_ms = (time.perf_counter() - begin) * 1e3
    answer = {"load_ms": load_ms, "peak_bytes": peak_resident_bytes(), "outputs": {}}
    for index, (name, array) in enumerate(runtime.outputs().items()):
        answer["outputs"][name] = os.path.join(request["output_dir"], f"{index}.npy")
        numpy.save(answer["outputs"][name], array)
    return answer


def run_for(runtime, seconds):
    """Milliseconds of single runs, as many as fit into `seconds`, at least FEWEST_RUNS."""
    times = []
    stop = time.perf_counter() + seconds
    while len(times) < FEWEST_RUNS or time.perf_counter() < stop:
        begin = time.perf_counter()
        runtime.run()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def measure(runtime, request):
    run_for(runtime, request["warmup"])
    times = run_for(runtime, request["seconds"])
    return {
        "min_ms": min(times),
        "median_ms": statistics.median(times),
        "mean_ms": statistics.fmean(times),
        "iterations": len(times),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    # Answers alone go to stdout: what a package prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    runtime = KINDS[options.kind](options.threads)
    print(json.dumps({"version": runtime.version, "baseline_bytes": peak_resident_bytes()}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"load": load, "time": measure}[request["do"]](runtime, request)
        except Exception as error:  # the packages' errors have no common base; the caller reports the text
            text = str(error).strip().splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {text[-1]}"}
        print(json.dumps(answer), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
