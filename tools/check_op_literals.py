#!/usr/bin/env python3
"""Names of ops as text where ops are told apart: a pass or kernel asks definitions (`&op == &conv_def()`) and
traits, which the compiler checks; a name as text is found wrong when it runs, if at all.

    python3 tools/check_op_literals.py [ROOT]

Text is allowed where ALLOWED says why. Exit code: 0 all are allowed, 1 some are not.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("accuracy", "backends", "cost", "device", "optimize", "prove", "runtime", "schedule")
# (file, text): why it is not the name of an op, or must be text.
ALLOWED = {
    ("src/optimize/passes/fold/fold_pad.cpp", "constant"): "a mode of pad",
    ("src/prove/verify/draft/draft_row.cpp", "momentum"): "an attribute of batch_normalization",
    ("src/prove/verify/draft/draft_shape.cpp", "constant"): "a mode of pad",
    ("src/backends/cpu/normalization/batch_norm_training.cpp", "momentum"): "an attribute of batch_normalization",
    ("src/backends/cpu/shape/box_copy.cpp", "constant"): "a mode of pad",
    ("src/backends/cpu/onednn/conv/backward_cost.cpp", "gemm"): "part of the name of an implementation in oneDNN",
    ("src/backends/cpu/onednn/conv/conv.cpp", "gemm"): "part of the name of an implementation in oneDNN",
    ("src/backends/cpu/onednn/int8.cpp", "gemm"): "part of the name of an implementation in oneDNN",
    ("src/backends/cpu/simd/normalization/lrn.cpp", "size"): "an attribute of lrn",
    ("src/backends/cpu/shape/repeating_copies.cpp", "constant"): "a mode of pad",
    ("src/backends/cpu/simd/normalization/class_loss.cpp", "sum"): "a reduction of losses",
    ("src/backends/cpu/simd/recurrent/recurrent_layer.cpp", "clip"): "an attribute of recurrent ops",
    ("src/backends/cuda/lt_problem.cpp", "tanh"): "an approximation of gelu",
    ("src/backends/gpu/emit/class_loss.cpp", "sum"): "a reduction of losses",
    ("src/backends/gpu/emit/gradient/norm_gradient.cpp", "momentum"): "an attribute of batch_normalization",
    ("src/backends/gpu/emit/lrn.cpp", "size"): "an attribute of lrn",
    ("src/backends/gpu/emit/random/random_tensor.cpp", "mean"): "an attribute of random_normal",
    ("src/backends/gpu/emit/recurrent.cpp", "clip"): "an attribute of recurrent ops",
}
LITERAL = re.compile(r'"([a-z0-9_]+)"')


def names_of_ops():
    """The words of ag_ops() and ag_op_table() in src/ops/CMakeLists.txt."""
    text = re.sub(r"#.*", "", (ROOT / "src/ops/CMakeLists.txt").read_text(encoding="utf-8"))
    names = set()
    for words in re.findall(r"ag_ops\(([^)]*)\)", text):
        names.update(words.split()[1:])
    for words in re.findall(r"ag_op_table\(([^)]*)\)", text):
        names.update(words.split()[2:])
    return names


def main():
    ops = names_of_ops()
    found, wrong, unused = 0, 0, set(ALLOWED)
    paths = [path for folder in FOLDERS for path in sorted((ROOT / "src" / folder).rglob("*"))]
    for path in paths:
        if path.suffix not in (".h", ".cpp"):
            continue
        file = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text in LITERAL.findall(re.sub(r"//.*", "", line)):
                if text not in ops:
                    continue
                found += 1
                unused.discard((file, text))
                if (file, text) not in ALLOWED:
                    wrong += 1
                    print(f'{file}:{number}: "{text}": write {text}_def(), ask a trait, or say in ALLOWED why not')
    for file, text in sorted(unused):
        wrong += 1
        print(f'{file}: "{text}": stands in ALLOWED and is not there any more')
    print(f"op literals: {len(ops)} ops, {found} names as text, {wrong} without a reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
