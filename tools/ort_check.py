#!/usr/bin/env python3
"""Checks exported models with onnx.checker and onnxruntime.

usage: ort_check.py MODELS TESTS

MODELS holds NAME.onnx, exported again from the ONNX operator test TESTS/NAME. Every model must pass the checker, and
where onnxruntime can run the original it must give the same numbers for the re-exported one. Needs the packages onnx,
onnxruntime and numpy. Exit code 1 when one differs.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper


def run(model: bytes, inputs: list) -> list:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs)))


def read_inputs(folder: pathlib.Path) -> list:
    count = len(list(folder.glob("input_*.pb")))
    tensors = []
    for i in range(count):
        tensors.append(numpy_helper.to_array(onnx.load_tensor(str(folder / f"input_{i}.pb"))))
    return tensors


def check(path: pathlib.Path, tests: pathlib.Path) -> str:
    """What is wrong with one model: "" when nothing is, "skipped" when onnxruntime cannot run the original."""
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        return f"checker: {error}"
    original = tests / path.stem
    try:
        inputs = read_inputs(original / "test_data_set_0")
        expected = run((original / "model.onnx").read_bytes(), inputs)
    except Exception:  # what the original cannot do says nothing about the export
        return "skipped"
    try:
        actual = run(path.read_bytes(), inputs)
    except Exception as error:
        return f"onnxruntime: {error}"
    for a, b in zip(actual, expected):
        same = a.dtype == b.dtype and a.shape == b.shape
        if not same or not (np.array_equal(a, b) or np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)):
            return "numbers differ"
    return ""


def main() -> int:
    models, tests = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    counts = {"ok": 0, "skipped": 0, "failed": 0}
    for path in sorted(models.glob("*.onnx")):
        problem = check(path, tests)
        counts["ok" if not problem else "skipped" if problem == "skipped" else "failed"] += 1
        if problem not in ("", "skipped"):
            print(f"{path.stem}: {problem.splitlines()[0][:200]}")
    print(counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
