#!/usr/bin/env python3
"""What an op costs line by line, by AutoGraph, by libtorch and by MLX, in turns on one thread: chains of 200 ops on
64x64 matrices, forward with the tape, backward, and both.

    pip install torch                                     # any wheel: headers and libraries are inside
    python3 -m venv DIR && DIR/bin/pip install 'mlx[cpu]'
    cmake --build build --target bench_eager
    python3 bench/eager_peers.py build/bench_eager [--mlx DIR] [--rounds 5] [--json]

Compiles eager_torch.cpp against the installed wheel, and eager_mlx.cpp against that in the environment DIR. Prints the
least time of all rounds, and that of the others divided by AutoGraph's: above 1 AutoGraph is faster.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PASSES = ("forward", "backward", "both")


def compile_program(source, program, *words):
    """With the compiler's usual optimisations."""
    command = ["g++", "-O2", "-std=c++20", "-w", f"-I{HERE}", str(HERE / source), "-o", str(program), *words]
    subprocess.run([*command, "-Wl,--allow-shlib-undefined"], check=True)
    return [str(program)]


def torch_program(folder):
    import torch

    root = pathlib.Path(torch.__file__).parent
    words = [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", f"-I{root}/include"]
    words += [f"-I{root}/include/torch/csrc/api/include", f"-L{root}/lib", "-Wl,--no-as-needed", "-ltorch_cpu"]
    words += ["-ltorch", "-lc10", f"-Wl,-rpath,{root}/lib"]
    return compile_program("eager_torch.cpp", folder / "eager_torch", *words), torch.__version__


def mlx_program(folder, environment):
    root = next(pathlib.Path(environment).glob("lib/python3*/site-packages/mlx"))
    version = next(root.parent.glob("mlx_cpu-*.dist-info")).name.split("-")[1].removesuffix(".dist")
    words = [f"-I{root}/include", f"-L{root}/lib", "-lmlx", f"-Wl,-rpath,{root}/lib"]
    return compile_program("eager_mlx.cpp", folder / "eager_mlx", *words), version


def chains(command):
    """{op: {"forward": us, "backward": us, "both": us}} of one run."""
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    run = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **one_thread})
    times = {}
    for chain in json.loads(run.stdout)["chains"]:
        if not chain.get("source_lines"):
            both = chain["op_us"] + chain["backward_us"]
            times[chain["op"]] = dict(zip(PASSES, (chain["op_us"], chain["backward_us"], both)))
    return times


def measure(programs, rounds):
    """{name: {op: {pass: least us}}}."""
    best = {name: {} for name in programs}
    for _ in range(rounds):
        for name, (command, _) in programs.items():
            for op, times in chains(command).items():
                known = best[name].setdefault(op, times)
                best[name][op] = {key: min(known[key], us) for key, us in times.items()}
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench_eager", help="the program of AutoGraph")
    parser.add_argument("--mlx", help="a virtual environment with MLX; without, it is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        programs = {"autograph": ([args.bench_eager, "--steps", "4"], ""), "libtorch": torch_program(folder)}
        if args.mlx:
            programs["mlx"] = mlx_program(folder, args.mlx)
        best = measure(programs, args.rounds)
    rows = [{"op": op, "pass": key, **{f"{name}_us": of[op][key] for name, of in best.items()},
             **{f"{name}_ratio": of[op][key] / times[key] for name, of in best.items() if name != "autograph"}}
            for op, times in best["autograph"].items() for key in PASSES]  # fmt: skip
    versions = {name: version for name, (_, version) in programs.items() if version}
    if args.json:
        print(json.dumps({"schema": 1, "bench": "eager_peers", **versions, "rounds": args.rounds, "rows": rows}))
        return 0
    print(", ".join(f"{name} {version}" for name, version in versions.items()) + f", least of {args.rounds} rounds")
    print(f"{'op':8} {'pass':9}" + "".join(f" {name + ' us':>12}" for name in programs)
          + "".join(f" {name:>9}" for name in versions))  # fmt: skip
    for row in rows:
        print(f"{row['op']:8} {row['pass']:9}" + "".join(f" {row[name + '_us']:12.3f}" for name in programs)
              + "".join(f" {row[name + '_ratio']:9.2f}" for name in versions))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
