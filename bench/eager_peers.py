#!/usr/bin/env python3
"""What an op costs line by line, by AutoGraph and by libtorch, in turns on one thread: chains of 200 ops on 64x64
matrices, forward with the tape and backward.

    pip install torch                                     # any wheel: headers and libraries are inside
    cmake --build build --target bench_eager
    python3 bench/eager_peers.py build/bench_eager [--rounds 5] [--json]

Compiles eager_torch.cpp against the installed wheel. Prints the least time of all rounds and libtorch's divided by
AutoGraph's: above 1 AutoGraph is faster.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def build_torch_program(folder):
    """The program of libtorch, compiled with the compiler's usual optimisations."""
    import torch

    root = pathlib.Path(torch.__file__).parent
    program = folder / "eager_torch"
    subprocess.run(
        ["g++", "-O2", "-std=c++20", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
         f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include", f"-I{HERE}", str(HERE / "eager_torch.cpp"),
         "-o", str(program), f"-L{root}/lib", "-Wl,--no-as-needed", "-ltorch_cpu", "-ltorch", "-lc10",
         f"-Wl,-rpath,{root}/lib", "-Wl,--allow-shlib-undefined"], check=True)  # fmt: skip
    return program, torch.__version__


def chains(command):
    """{op: {"forward": us, "backward": us}} of one run."""
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return {chain["op"]: {"forward": chain["op_us"], "backward": chain["backward_us"]}
            for chain in json.loads(run.stdout)["chains"] if not chain.get("source_lines")}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench_eager", help="the program of AutoGraph")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    best = {"autograph": {}, "torch": {}}
    with tempfile.TemporaryDirectory() as folder:
        program, version = build_torch_program(pathlib.Path(folder))
        for _ in range(args.rounds):
            for name, command in (("autograph", [args.bench_eager, "--steps", "4"]), ("torch", [str(program)])):
                for op, times in chains(command).items():
                    known = best[name].setdefault(op, times)
                    best[name][op] = {key: min(known[key], us) for key, us in times.items()}
    rows = [{"op": op, "pass": key, "autograph_us": us, "torch_us": best["torch"][op][key],
             "ratio": best["torch"][op][key] / us} for op, times in best["autograph"].items()
            for key, us in times.items()]  # fmt: skip
    if args.json:
        print(json.dumps({"schema": 1, "bench": "eager_peers", "torch": version, "rounds": args.rounds, "rows": rows}))
        return 0
    print(f"torch {version}, least of {args.rounds} rounds")
    print(f"{'op':8} {'pass':9} {'AutoGraph us':>12} {'libtorch us':>12} {'ratio':>6}")
    for row in rows:
        print(f"{row['op']:8} {row['pass']:9} {row['autograph_us']:12.3f} {row['torch_us']:12.3f} {row['ratio']:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
