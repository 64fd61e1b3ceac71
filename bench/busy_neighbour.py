#!/usr/bin/env python3
"""Times AutoGraph and other runtimes in turns, on a machine of their own and beside a program that never sleeps.

    python bench/busy_neighbour.py MODEL.. [--peers onnxruntime,openvino] [--autograph build/autograph]
        [--variant 'NAME=PROGRAM FLAGS'] [--rounds N] [--seconds T] [--threads N] [--json FILE]

MODEL is an .onnx file or zoo:NAME, which the program exports. Each runtime is a process of its own, stopped by a signal
while others are measured. A round asks each runtime to run for a while in each state of the machine:

    quiet   nothing else runs
    bound   beside an endless loop that is bound to one processor, the last
    free    beside an endless loop that the system may put anywhere

The clock starts as soon as the loop does: what a runtime takes to notice it counts. A figure is the mean of all runs of
such a while, since a few runs take most of the time when threads wait for their processor; of the rounds the median.
Where anything else kept processors busy meanwhile, the while is repeated.
Printed are milliseconds, and the ratio to the runtime's own quiet time. Variants are other builds or flags, and `to
the first` is their quiet time to that of `autograph`: the median of the ratios of the rounds.

Exit code: 0 done, 6 a runtime failed or AutoGraph takes more than MOST_SLOWDOWN of its quiet time, 2 usage.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import peer_processes

STATES = ("quiet", "bound", "free")
SETTLE_SECONDS = 0.05
WARMUP_SECONDS = 0.6  # on a quiet machine; what noticed a neighbour before has noticed its end by then
STRANGERS = 0.15  # processors kept busy by anything else, above which a measurement is made again
MOST_TRIES = 4
MOST_SLOWDOWN = 2.2  # what is promised beside one such program


class Neighbour:
    """An endless loop, while the block runs."""

    def __init__(self, state):
        self.state, self.child = state, None

    def __enter__(self):
        if self.state == "quiet":
            return self
        self.child = subprocess.Popen(
            [sys.executable, "-S", "-c", "print(flush=True)\nwhile True: pass"],
            stdout=subprocess.PIPE,
            preexec_fn=peer_processes.end_with_parent,
        )
        self.child.stdout.readline()
        if self.state == "bound":
            os.sched_setaffinity(self.child.pid, {max(os.sched_getaffinity(0))})
        return self

    def __exit__(self, *_):
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child.stdout.close()
        time.sleep(SETTLE_SECONDS)


    def cpu_seconds(self):
        return process_seconds(self.child.pid) if self.child else 0


def process_seconds(process_id):
    with open(f"/proc/{process_id}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Of all processors together: what they were not idle for."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks[:8]) - idle - waiting) / os.sysconf("SC_CLK_TCK")


class AutoGraph:
    """`PROGRAM bench --serve`."""

    def __init__(self, words, path, threads, inputs):
        command = [words[0], "bench", path, *words[1:], "--threads", str(threads), "--serve"]
        for name, file in inputs.items():
            command += ["--input", f"{name}={file}"]
        self.process = peer_processes.Process(command)
        self.process.read_answer()

    def time(self, warmup, seconds):
        return self.process.ask(f"{warmup} {seconds}")["latency_ms"]["mean"]


class Peer:
    """A runtime with a Python package: see peer_worker.py."""

    def __init__(self, kind, path, threads, inputs, folder):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_worker.py")
        self.process = peer_processes.Process([sys.executable, script, kind, "--threads", str(threads)])
        self.process.read_answer()
        self.process.ask(json.dumps({"do": "load", "model": path, "inputs": inputs, "output_dir": folder}))

    def time(self, warmup, seconds):
        return self.process.ask(json.dumps({"do": "time", "warmup": warmup, "seconds": seconds}))["mean_ms"]


def time_beside(runtime, state, seconds):
    """(Milliseconds of a run, processors that strangers kept busy), beside the neighbour of a state."""
    runtime.time(WARMUP_SECONDS, 0)
    with Neighbour(state) as neighbour:
        begin, busy = time.monotonic(), busy_seconds()
        known = runtime.process.cpu_seconds() + neighbour.cpu_seconds()
        ms = runtime.time(0, seconds)
        known -= runtime.process.cpu_seconds() + neighbour.cpu_seconds()
        strangers = (busy_seconds() - busy + known) / (time.monotonic() - begin)
    return ms, strangers


def time_undisturbed(runtime, state, seconds):
    """As time_beside(), tried again while strangers are at work; the least disturbed one counts."""
    tries = []
    while not tries or (tries[-1][1] > STRANGERS and len(tries) < MOST_TRIES):
        tries.append(time_beside(runtime, state, seconds))
    return min(tries, key=lambda one: one[1])[0]


def start_all(options, path, inputs, folder):
    """Name -> runtime, each stopped."""
    programs = {"autograph": [options.autograph]}
    for variant in options.variant:
        name, _, command = variant.partition("=")
        programs[name] = shlex.split(command)
    running = {}
    for name, words in programs.items():
        running[name] = AutoGraph(words, path, options.threads, inputs)
        running[name].process.pause()
    for kind in options.peers:
        running[kind] = Peer(kind, path, options.threads, inputs, folder)
        running[kind].process.pause()
    return running


def measure(options, word, folder):
    """Name -> state -> milliseconds, one for each round."""
    path = word
    if word.startswith("zoo:"):
        path = os.path.join(folder, word[len("zoo:") :] + ".onnx")
        peer_processes.autograph_json([options.autograph, "zoo", "export", word[len("zoo:") :], "-o", path, "--json"])
    info = peer_processes.autograph_json([options.autograph, "info", path, "--json"])
    inputs = peer_processes.draw_inputs(info["inputs"], word, folder)
    running = start_all(options, path, inputs, folder)
    rows = {name: {state: [] for state in options.states} for name in running}
    try:
        for _ in range(options.rounds):
            for name, runtime in running.items():
                for state in options.states:
                    rows[name][state].append(time_undisturbed(runtime, state, options.seconds))
                runtime.process.pause()
    finally:
        for runtime in running.values():
            runtime.process.close()
    return rows


def print_table(word, rows, states):
    print(f"\n{word}")
    heads = [*states, *(f"{state}/quiet" for state in states if state != "quiet"), "to the first"]
    print(f"{'':16}" + "".join(f"{head:>14}" for head in heads))
    first = next(iter(rows.values()))["quiet"]
    for name, row in rows.items():
        ms = {state: statistics.median(row[state]) for state in states}
        cells = [f"{ms[state]:.2f} ms" for state in states]
        cells += [f"{ms[state] / ms['quiet']:.2f}" for state in states if state != "quiet"]
        cells.append(f"{statistics.median(own / other for own, other in zip(row['quiet'], first)):.3f}")
        print(f"{name:16}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def keeps_promise(word, row):
    quiet = statistics.median(row["quiet"])
    most = max(statistics.median(times) / quiet for times in row.values())
    if most > MOST_SLOWDOWN:
        print(f"{word}: {most:.2f} of its quiet time, expected at most {MOST_SLOWDOWN}", file=sys.stderr)
    return most <= MOST_SLOWDOWN


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="an .onnx file or zoo:NAME")
    parser.add_argument("--peers", default="onnxruntime,openvino", help="the others (default: %(default)s)")
    parser.add_argument("--autograph", default="build/autograph", help="the program (default: %(default)s)")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=PROGRAM FLAGS",
                        help="another AutoGraph")
    parser.add_argument("--states", default=",".join(STATES), help="of the machine (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of each runtime (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    options = parser.parse_args()
    options.peers = [kind for kind in options.peers.split(",") if kind]
    options.states = [state for state in options.states.split(",") if state]
    if not os.access(options.autograph, os.X_OK):
        parser.error(f"--autograph: expected a program, got {options.autograph} (run make first)")
    if options.states[:1] != ["quiet"] or not set(options.states) <= set(STATES):
        parser.error(f"--states: expected quiet and some of {', '.join(STATES)}, got {','.join(options.states)}")
    if options.rounds < 1:
        parser.error(f"--rounds: expected 1 or more, got {options.rounds}")
    return options


def main():
    options = parse_arguments()
    result = {}
    failed = False
    for word in options.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                result[word] = measure(options, word, folder)
            except peer_processes.PeerError as error:
                print(f"{word}: {error}", file=sys.stderr)
                failed = True
                continue
        print_table(word, result[word], options.states)
        failed |= not keeps_promise(word, result[word]["autograph"])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 6 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
