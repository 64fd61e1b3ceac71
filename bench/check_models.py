#!/usr/bin/env python3
"""Runs ONNX files and every model of the zoo in ONNX Runtime and in AutoGraph on the same inputs, and compares.

    python bench/check_models.py DIR [--autograph build/autograph] [--json FILE] [--only NAME ...] [--no-zoo]
        [--strategies sequential,taso,.. [--budget SECONDS]]

DIR holds .onnx files, for example those of export_models.py. Zoo models are exported by `autograph zoo export` first:
the check covers export and import too. Inputs are drawn from a seed and the model's name; symbolic dims become 2.
A model is right when the largest |difference| of every output is at most TOLERANCE times the largest magnitude of that
output in ONNX Runtime, and non-finite values stand at the same places. With --strategies each model runs as the plan
that `autograph optimize` finds with each of these, instead of as it is.

Exit code: 0 all right, 6 some differ or failed, 2 usage.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import zlib

import numpy
import onnxruntime

SYMBOLIC_EXTENT = 2
TOKEN_IDS = 1000  # integer inputs are drawn below this: token ids of every vocabulary in use
NUMPY_TYPES = {
    "tensor(float)": numpy.float32,
    "tensor(double)": numpy.float64,
    "tensor(float16)": numpy.float16,
    "tensor(int64)": numpy.int64,
    "tensor(int32)": numpy.int32,
    "tensor(uint8)": numpy.uint8,
    "tensor(bool)": numpy.bool_,
}


class CheckFailed(Exception):
    """A model that could not be compared, with the reason in one line."""


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def run_autograph(options, arguments):
    """Runs the program; returns its stdout. Raises CheckFailed with its message when it fails."""
    try:
        done = subprocess.run(
            [options.autograph, *arguments], capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(f"`{arguments[0]}` took more than {options.timeout} s") from error
    if done.returncode != 0:
        raise CheckFailed(f"`{arguments[0]}` exit {done.returncode}: {last_line(done.stderr)}")
    return done.stdout


def draw_inputs(session, name):
    generator = numpy.random.default_rng(zlib.crc32(name.encode()))
    inputs = {}
    for value in session.get_inputs():
        shape = [dim if isinstance(dim, int) else SYMBOLIC_EXTENT for dim in value.shape]
        dtype = NUMPY_TYPES.get(value.type)
        if dtype is None:
            raise CheckFailed(f"input {value.name}: no way to draw {value.type}")
        if numpy.issubdtype(dtype, numpy.floating):
            inputs[value.name] = generator.standard_normal(shape).astype(dtype)
        elif dtype == numpy.bool_:
            inputs[value.name] = generator.integers(0, 2, shape).astype(dtype)
        else:
            inputs[value.name] = generator.integers(0, min(TOKEN_IDS, numpy.iinfo(dtype).max), shape).astype(dtype)
    return inputs


def run_onnxruntime(path, name):
    """Returns (inputs, expected outputs by name)."""
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, session_options, providers=["CPUExecutionProvider"])
    inputs = draw_inputs(session, name)
    names = [value.name for value in session.get_outputs()]
    return inputs, dict(zip(names, session.run(names, inputs)))


def compare(expected, actual):
    """(largest |difference|, largest |expected|); infinity where shapes or non-finite values differ."""
    if expected.shape != actual.shape:
        raise CheckFailed(f"shape {list(actual.shape)} instead of {list(expected.shape)}")
    expected, actual = expected.astype(numpy.float64), actual.astype(numpy.float64)
    finite = numpy.isfinite(expected)
    if not numpy.array_equal(expected[~finite], actual[~finite], equal_nan=True):
        return numpy.inf, numpy.inf
    if not finite.any():
        return 0.0, 0.0
    difference = numpy.abs(expected[finite] - actual[finite])
    return float(numpy.nan_to_num(difference, nan=numpy.inf).max()), float(numpy.abs(expected[finite]).max())


def find_plan(options, path, strategy, folder):
    """The file of the plan that a strategy finds."""
    plan = os.path.join(folder, "found.agplan")
    dims = json.loads(run_autograph(options, ["info", path, "--json"]))["inputs"]
    symbols = {dim for value in dims for dim in value["shape"] if isinstance(dim, str)}
    given = [word for symbol in sorted(symbols) for word in ("--dim", f"{symbol}={SYMBOLIC_EXTENT}")]
    budget = ["--strategy", strategy, "--budget", str(options.budget)]
    run_autograph(options, ["optimize", path, "-o", plan, *budget, *given])
    return plan


def check(options, name, path, strategy):
    """One row of the table."""
    nodes = json.loads(run_autograph(options, ["info", path, "--json"]))["nodes"]
    inputs, expected = run_onnxruntime(path, name)
    with tempfile.TemporaryDirectory() as folder:
        if strategy:
            path = find_plan(options, path, strategy, folder)
        arguments = ["run", path, "--output-dir", folder, "--json"]
        for index, (input_name, array) in enumerate(inputs.items()):
            file = os.path.join(folder, f"in_{index}.npy")
            numpy.save(file, array)
            arguments += ["--input", f"{input_name}={file}"]
        outputs = json.loads(run_autograph(options, arguments))["outputs"]
        actual = {}
        for output in outputs:
            actual[output["name"]] = numpy.load(os.path.join(folder, os.path.basename(output["file"])))
    worst = {"max_abs": 0.0, "magnitude": 0.0, "max_rel": 0.0}
    for output_name, reference in expected.items():
        if output_name not in actual:
            raise CheckFailed(f"output {output_name} is missing; there are {', '.join(actual)}")
        max_abs, magnitude = compare(reference, actual[output_name])
        relative = max_abs / magnitude if magnitude > 0 and numpy.isfinite(max_abs) else max_abs
        if relative >= worst["max_rel"]:
            worst = {"max_abs": max_abs, "magnitude": magnitude, "max_rel": relative}
    return {"nodes": nodes, "ok": worst["max_rel"] <= options.tolerance, **worst}


def models(options, folder):
    """Yields (name, path); exports zoo models one at a time and removes each afterwards, because they are large."""
    for path in sorted(glob.glob(os.path.join(options.directory, "*.onnx"))):
        yield os.path.splitext(os.path.basename(path))[0], lambda path=path: path
    if options.no_zoo:
        return
    for model in json.loads(run_autograph(options, ["zoo", "list", "--json"]))["models"]:
        name = model["name"]

        def export(name=name):
            path = os.path.join(folder, "model.onnx")
            run_autograph(options, ["zoo", "export", name, "-o", path])
            return path

        yield f"zoo:{name}", export


def print_row(row):
    if "error" in row:
        print(f"{row['name']:36} failed: {row['error']}", flush=True)
        return
    print(
        f"{row['name']:36} {row['nodes']:6} {row['max_abs']:12.3e} {row['magnitude']:12.3e} {row['max_rel']:10.2e}"
        f" {'ok' if row['ok'] else 'DIFFERS'}",
        flush=True,
    )


def check_all(options):
    rows = []
    print(f"{'model':36} {'nodes':>6} {'max |diff|':>12} {'max |output|':>12} {'ratio':>10}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, find_path in models(options, folder):
            if options.only and name not in options.only:
                continue
            for strategy in options.strategies or [None]:
                rows.append(check_row(options, name, find_path, strategy))
                print_row(rows[-1])
            for leftover in glob.glob(os.path.join(folder, "*")):
                os.remove(leftover)
    return rows


def check_row(options, name, find_path, strategy):
    row = {"name": f"{name}, {strategy}" if strategy else name}
    try:
        row.update(check(options, name, find_path(), strategy))
    except CheckFailed as error:
        row.update(ok=False, error=str(error))
    except Exception as error:  # what ONNX Runtime throws has no common base; the table goes on
        row.update(ok=False, error=f"{type(error).__name__}: {last_line(str(error))}")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="where the .onnx files are")
    parser.add_argument("--autograph", default="build/autograph", help="the program (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON too")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="check these alone, zoo models as zoo:NAME")
    parser.add_argument("--no-zoo", action="store_true", help="leave the zoo out")
    parser.add_argument("--strategies", type=lambda text: text.split(","), help="optimise with each of these first")
    parser.add_argument("--budget", type=float, default=10, help="seconds of such a search (default: %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="share of the magnitude (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one call (default: %(default)s)")
    options = parser.parse_args()
    if not os.access(options.autograph, os.X_OK):
        parser.error(f"--autograph: expected a program, got {options.autograph} (run make first)")
    rows = check_all(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "tolerance": options.tolerance, "models": rows}, file, indent=1)
    wrong = [row["name"] for row in rows if not row["ok"]]
    print(f"{len(rows) - len(wrong)} of {len(rows)} ok" + (f"; not: {', '.join(wrong)}" if wrong else ""))
    return 6 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
