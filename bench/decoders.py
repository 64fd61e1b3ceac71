#!/usr/bin/env python3
"""Times language models with packed weights and a key/value cache in AutoGraph and others, in turns, and prints ratios.

    python bench/decoders.py [--models llama,qwen2,...|FILE.onnx,...] [--forms int4,int8,...] [--steps 1+255,128+0,...]
        [--keep DIR] [--rounds N] [--threads N] [--autograph build/autograph] [--realtime] [--flags=FLAGS] [--json FILE]

Makes decoders with seeded random weights of usual widths and few layers, as ONNX Runtime's generative extension exports
them (`onnxruntime_genai.models.builder`): GroupQueryAttention with a cache, MatMulNBits. Forms: `int4` (blocks of 32, x
may be rounded to bytes: accuracy level 4), `int4_128`, `int4_f32` (with zero points, x stays f32), `int4_qdq` (blocks
of 32 that a DequantizeLinear reads before a MatMul), `int8` (blocks of 128), `f16` (int4 with half precision around
it), `nf4` (bitsandbytes) and `f32`. A step N+P is N tokens after P others.
A file must take what those exports take, or what those of optimum do, with or without `use_cache_branch`; an encoder
gave 64 states.

Every contestant is a process of its own, and only one is active at a time. A round counts with its fastest run, a
contestant with the median of its rounds; ratios are medians of the ratios in each round. Errors are the largest
|difference| of the logits from those of ONNX Runtime, as a share of the largest: rounding x to bytes, as it does and
AutoGraph does not, costs some per cent of random networks. Exit code: 0 done, 6 logits are further apart than that, 2
usage.
"""

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile

import numpy
import onnx
import torch
import transformers
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16
from tokenizers import Tokenizer, models

import peer_processes

WORDS = 32000
ENCODED = 64  # states that an encoder gave
SLIDING_WINDOW = 128  # that gpt_oss has unless told otherwise
COMMON = {"vocab_size": WORDS, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
# Name -> configuration and class, by their names in transformers, and what is not the default.
MODELS = {
    "llama": ("Llama", {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
                        "num_attention_heads": 16, "num_key_value_heads": 4}),
    "qwen2": ("Qwen2", {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 12,
                        "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 8,
                        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}),
    "phi3": ("Phi3", {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 6,
                      "num_attention_heads": 16, "num_key_value_heads": 16}),
    # Mixtures of experts; gpt_oss in f32 alone, since the exporter wants its own 4-bit weights else.
    "gpt_oss": ("GptOss", {"hidden_size": 960, "intermediate_size": 960, "num_hidden_layers": 4, "head_dim": 64,
                           "num_attention_heads": 16, "num_key_value_heads": 4, "num_local_experts": 16,
                           "num_experts_per_tok": 4}),
    "lfm2_moe": ("Lfm2Moe", {"hidden_size": 1024, "intermediate_size": 3072, "moe_intermediate_size": 512,
                             "num_hidden_layers": 6, "num_dense_layers": 2, "num_attention_heads": 16,
                             "num_key_value_heads": 4, "num_experts": 32, "num_experts_per_tok": 4,
                             "layer_types": ["conv", "conv", "full_attention"] * 2}),
}
FORMS = ("int4", "int4_128", "int4_f32", "int4_qdq", "int8", "f16", "nf4", "f32")
# The largest difference of logits, as a share of the largest: of x in bytes, of half precision and of f32.
ROUNDED, EXACT = 8e-2, 1e-3
TOLERANCE = dict.fromkeys(("int4", "int4_128", "int4_qdq", "int8", "f16"), ROUNDED)
# Rounding x chooses other experts of random networks for some tokens.
MIXTURES, OTHER_EXPERTS = ("gpt_oss", "lfm2_moe"), 3e-1


def write_checkpoint(name, folder):
    """A model of transformers with seeded random weights, and a tokenizer, which the exporter wants to see."""
    kind, settings = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**COMMON, **settings)
    getattr(transformers, f"{kind}ForCausalLM")(config).to(torch.float32).save_pretrained(folder)
    words = Tokenizer(models.BPE(vocab={f"t{i}": i for i in range(100)}, merges=[]))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="t1", eos_token="t2")
    tokenizer.save_pretrained(folder)


def export(checkpoint, folder, precision):
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", checkpoint, "-i", checkpoint]
    command += ["-o", folder, "-p", precision, "-e", "cpu", "-c", os.path.join(folder, "cache")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def quantize(source, target, form):
    model = onnx.load(source)
    if form == "f16":
        halves = convert_float_to_float16(model, keep_io_types=False, disable_shape_infer=True, op_block_list=[])
        onnx.save(halves, target, save_as_external_data=True, location="model.onnx.data")
        return
    if form == "nf4":
        quantizer = MatMulBnb4Quantizer(model, 1, 64)
    else:
        bits, block, level = {
            "int4_128": (4, 128, 4),
            "int4_f32": (4, 32, None),
            "int4_qdq": (4, 32, None),
            "int8": (8, 128, 4),
        }[form]
        quantizer = MatMulNBitsQuantizer(
            model,
            block_size=block,
            is_symmetric=form in ("int4_qdq", "int8"),
            accuracy_level=level,
            bits=bits,
            quant_format=QuantFormat.QDQ if form == "int4_qdq" else QuantFormat.QOperator,
        )
    quantizer.process()
    quantizer.model.save_model_to_file(target, True)


def write_model(name, form, folder):
    """The path of a model in a form; made, with what it is made of, unless it is there."""
    path = os.path.join(folder, f"{name}_{form}", "model.onnx")
    if os.path.exists(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if form in ("int4", "f32"):
        checkpoint = os.path.join(folder, f"{name}_checkpoint")
        if not os.path.exists(checkpoint):
            write_checkpoint(name, checkpoint)
        export(checkpoint, os.path.dirname(path), "int4" if form == "int4" else "fp32")
    else:
        quantize(write_model(name, "int4" if form == "f16" else "f32", folder), path, form)
    return path


def draw_inputs(path, tokens, past):
    """Inputs for a step: words, positions, a mask of ones, a cache of normal numbers, and what an encoder gave."""
    random = numpy.random.default_rng(0)
    total = tokens + past
    known = {"batch_size": 1, "total_sequence_length": total, "past_sequence_length + sequence_length": total}
    known |= dict.fromkeys(("sequence_length", "decoder_sequence_length"), tokens)
    known |= dict.fromkeys(("past_sequence_length", "past_decoder_sequence_length"), past)
    known["past_sliding_length"] = max(total, SLIDING_WINDOW)
    known |= dict.fromkeys(("encoder_sequence_length", "encoder_sequence_length_out"), ENCODED)
    graph = onnx.load(path, load_external_data=False).graph
    words = next(info for info in graph.output if info.name == "logits").type.tensor_type.shape.dim[-1].dim_value
    attention = next((node for node in graph.node if node.op_type == "GroupQueryAttention"), None)
    if attention:
        cosines = next(tensor for tensor in graph.initializer if tensor.name == attention.input[7])
        known["kv_cache_dim"] = 2 * cosines.dims[1]
    inputs = {}
    for info in graph.input:
        shape = [dim.dim_value or known[dim.dim_param] for dim in info.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if info.name == "use_cache_branch":
            inputs[info.name] = numpy.full(shape, past > 0)
        elif info.name.endswith("input_ids"):
            inputs[info.name] = random.integers(3, words or WORDS, shape)
        elif info.name == "position_ids":
            inputs[info.name] = numpy.arange(past, total, dtype=dtype).reshape(shape)
        elif info.name.endswith("mask"):
            inputs[info.name] = numpy.ones(shape, dtype)
        else:
            inputs[info.name] = random.standard_normal(shape).astype(dtype)
    return inputs


def measure(path, tokens, past, options, folder):
    """Milliseconds of all rounds and logits of each contestant."""
    files = {}
    for number, (name, array) in enumerate(draw_inputs(path, tokens, past).items()):
        files[name] = os.path.join(folder, f"x{number}.npy")
        numpy.save(files[name], array)
    program = [options.autograph, *options.flags.split()]
    start = {"autograph": lambda: peer_processes.AutoGraph(program, options.threads)}
    for peer in options.peers.split(","):
        start[peer] = lambda peer=peer: peer_processes.Worker(peer, options.threads)
    rows, running = {}, {}
    try:
        for label, begin in start.items():
            running[label] = begin()
            output_dir = os.path.join(folder, label)
            os.makedirs(output_dir, exist_ok=True)
            try:
                answer = running[label].load(path, files, output_dir)
            except peer_processes.PeerError as error:
                print(f"{label}: {error}", file=sys.stderr)
                running.pop(label).close()
                continue
            rows[label] = {"logits": numpy.load(answer["outputs"]["logits"]).astype(numpy.float64)}
            running[label].pause()
        for label, times in peer_processes.time_in_turns(running, options.rounds, 0.2, options.seconds).items():
            rows[label]["ms"] = times
    finally:
        for peer in running.values():
            peer.close()
    return rows


def report(title, form, step, rows):
    """Prints a line; the same as numbers, and whether the logits are near enough."""
    ours = rows["autograph"]
    line = {"model": title, "form": form, "step": step, "ms": statistics.median(ours["ms"]), "ratios": {}}
    for label, row in rows.items():
        if label == "autograph":
            continue
        line["ratios"][label] = statistics.median(a / b for a, b in zip(ours["ms"], row["ms"]))
    line["error"] = peer_processes.difference(rows["onnxruntime"]["logits"], ours["logits"])
    ratios = "  ".join(f"{label} {ratio:.2f}" for label, ratio in line["ratios"].items())
    print(f"{title:8} {form:9} {step:8} {line['ms']:9.2f} ms   to {ratios}   error {line['error']:.1e}", flush=True)
    tolerance = TOLERANCE.get(form, EXACT)
    return line, line["error"] <= (OTHER_EXPERTS if title in MIXTURES and tolerance == ROUNDED else tolerance)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--forms", default="int4", help="of models that are made here: " + ", ".join(FORMS))
    parser.add_argument("--steps", default="1+255,1+2047,8+0,128+0")
    parser.add_argument("--peers", default="onnxruntime", help="onnxruntime, openvino")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--flags", default="", help="more flags for AutoGraph, for example --flags=--fixed-threads")
    parser.add_argument("--realtime", action="store_true", help="put what is measured before other work; needs root")
    parser.add_argument("--keep", help="folder for the models, which stay there")
    parser.add_argument("--json", help="file for the numbers")
    options = parser.parse_args()
    logging.disable(logging.INFO)  # the quantizers tell of every node
    peer_processes.Process.realtime = options.realtime
    forms = options.forms.split(",")
    if unknown := [form for form in forms if form not in FORMS]:
        parser.error(f"no form {unknown[0]}: forms are {', '.join(FORMS)}")
    if "onnxruntime" not in options.peers.split(","):
        parser.error("--peers: errors are those to onnxruntime, which is missing")
    lines, good = [], True
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        for name in options.models.split(","):
            is_made = name in MODELS
            if not is_made and not os.path.exists(name):
                parser.error(f"no model or file {name}: models are {', '.join(MODELS)}")
            for form in forms if is_made else ["file"]:
                path = write_model(name, form, folder) if is_made else name
                for step in options.steps.split(","):
                    tokens, past = (int(number) for number in step.split("+"))
                    rows = measure(path, tokens, past, options, temporary)
                    line, is_near = report(os.path.basename(name), form, step, rows)
                    lines.append(line)
                    good = good and is_near
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(lines, file, indent=1)
    return 0 if good else 6


if __name__ == "__main__":
    sys.exit(main())
