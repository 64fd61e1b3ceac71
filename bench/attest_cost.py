#!/usr/bin/env python3
"""What attestation costs: how long models take to compile without it, with it for the first time, and with all known.

    python bench/attest_cost.py [--autograph build/autograph] [--rounds 5] [--threads N] MODEL ...

MODEL is a file or zoo:NAME. The three ways take turns; the first time has a cache folder of its own in each round.
Times are medians: of compiling, and of one run for comparison. Ratios are to the same round's compile time without it;
extra/run is what the first time takes longer, in runs of the model.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile


def bench(options, model, *flags):
    """Compile time and latency of one process, in milliseconds."""
    command = [options.autograph, "bench", model, "--json", "--quiet", "--seconds", "0", *flags]
    if options.threads:
        command += ["--threads", str(options.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    document = json.loads(done.stdout)
    return document["compile_ms"], document["latency_ms"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    columns = "".join(f"{name:>10}" for name in ("run", "compile", "first", "known", "first/c", "known/c", "extra/run"))
    print(f"{'model':24}{columns}")
    for model in options.models:
        rounds = []
        with tempfile.TemporaryDirectory() as kept:
            bench(options, model, "--attest", "--cache-dir", kept)
            for _ in range(options.rounds):
                with tempfile.TemporaryDirectory() as new:
                    plain, run = bench(options, model, "--cache-dir", kept)
                    first, _ = bench(options, model, "--attest", "--cache-dir", new)
                    known, _ = bench(options, model, "--attest", "--cache-dir", kept)
                rounds.append((run, plain, first, known, first / plain, known / plain, (first - plain) / run))
        run, plain, first, known, first_ratio, known_ratio, extra = map(statistics.median, zip(*rounds))
        print(
            f"{model:24}{run:8.1f}ms{plain:8.1f}ms{first:8.1f}ms{known:8.1f}ms"
            f"{first_ratio:10.2f}{known_ratio:10.2f}{extra:10.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
