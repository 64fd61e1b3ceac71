#!/usr/bin/env python3
"""Checks, runs and times one CNN and one transformer of the zoo and prints the table that scripts/demo.sh ends in.

usage: demo_table.py AUTOGRAPH
"""
import json
import subprocess
import sys
import tempfile

MODELS = ("squeezenet", "transformer")


def autograph(program, *arguments):
    """One call with --json; its progress and warnings go to the terminal."""
    done = subprocess.run([program, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 6):
        sys.exit(f"autograph {' '.join(arguments)} ended with exit code {done.returncode}")
    return json.loads(done.stdout)


def row(program, name, folder):
    path = f"{folder}/{name}.onnx"
    subprocess.run([program, "zoo", "export", name, "-o", path, "-q"], check=True, stdout=subprocess.DEVNULL)
    info = autograph(program, "info", path)
    check = autograph(program, "check", path)
    bench = autograph(program, "bench", path, "--seconds", "3")
    error = max((output["max_rel"] for output in check["outputs"]), default=0.0)
    planned, total = bench["arena_bytes"], bench["sum_of_tensors_bytes"]
    return (
        name,
        f"{info['nodes']}",
        f"{info['parameters'] / 1e6:.1f} M",
        f"{'ok' if check['ok'] else 'DIFFERS'} ({error:.0e})",
        f"{bench['latency_ms']['median']:.2f} ms",
        f"{planned / 1e6:.1f} of {total / 1e6:.1f} MB ({planned / max(total, 1):.0%})",
        check["ok"],
    )


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(program, name, folder) for name in MODELS]
    head = ("model", "nodes", "parameters", "against the reference", "latency", "memory planned / sum of tensors")
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    print("\nExported to ONNX, imported, checked against the reference backend, run and timed on this machine:\n")
    for line in (head, tuple("-" * w for w in widths), *rows):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    return 0 if all(line[-1] for line in rows) else 6


if __name__ == "__main__":
    sys.exit(main())
