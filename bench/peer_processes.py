"""The processes that peers.py measures: how to start, ask, stop and compare them."""

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import select
import signal
import subprocess
import sys
import time
import zlib

import numpy

KINDS = ("onnxruntime", "openvino", "torchscript", "inductor", "torchscript_cuda", "inductor_cuda")
TOKEN_IDS = 1000  # integer inputs are drawn below this: token ids of every vocabulary in use
ANSWER_SECONDS = 900  # inductor compiles for minutes
IDLE_SECONDS = 0.2
NUMPY_TYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "bool": "bool"}


class PeerError(Exception):
    """A runtime that failed, with the reason in one line."""


@contextlib.contextmanager
def sharing(path, how):
    """Holds a lock on a file, with others (LOCK_SH) or alone (LOCK_EX); without a file, nothing."""
    if not path:
        yield
        return
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, how)
        yield


def end_with_parent():
    """In a new child: a stopped process would else stay for ever when peers.py is killed."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def set_realtime(process_id, realtime):
    """Puts all threads of a process before all ordinary work of the machine, or back among it."""
    policy, priority = (os.SCHED_RR, 1) if realtime else (os.SCHED_OTHER, 0)
    for thread in os.listdir(f"/proc/{process_id}/task"):
        try:
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))
        except ProcessLookupError:
            pass  # it has ended since


class Process:
    """A child that answers lines by lines, and does nothing while it is paused."""

    realtime = False  # of all children, while they answer

    def __init__(self, command):
        # A session of its own: the kernel hangs up on stopped processes whose group loses its shell.
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self.buffer = b""
        self.errors = b""

    def read_line(self):
        """The next line of JSON; what the child writes to stderr meanwhile is kept for the message of a failure."""
        stop = time.monotonic() + ANSWER_SECONDS
        streams = [self.child.stdout, self.child.stderr]
        while b"\n" not in self.buffer:
            ready, _, _ = select.select(streams, [], [], max(0, stop - time.monotonic()))
            if not ready:
                raise PeerError(f"no answer in {ANSWER_SECONDS} s")
            for stream in ready:
                chunk = os.read(stream.fileno(), 65536)
                if not chunk:
                    streams.remove(stream)
                if stream is self.child.stderr:
                    self.errors = (self.errors + chunk)[-4096:]
                else:
                    self.buffer += chunk
            if self.child.stdout not in streams and b"\n" not in self.buffer:
                raise PeerError(f"ended: {self.last_words(self.child.stderr in streams)}")
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(str(answer["error"]))
        return answer

    def last_words(self, more):
        """The last line that an ended child wrote to stderr, or how it ended."""
        if more:
            self.errors += self.child.stderr.read() or b""
        lines = [line for line in self.errors.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"no message, exit {self.child.wait()}"

    def ask(self, text):
        self.child.send_signal(signal.SIGCONT)
        try:
            self.child.stdin.write(text.encode() + b"\n")
        except BrokenPipeError:
            pass  # it has ended: read_line() says why
        return self.read_answer()

    def read_answer(self):
        if not self.realtime:
            return self.read_line()
        set_realtime(self.child.pid, True)
        try:
            return self.read_line()
        finally:
            set_realtime(self.child.pid, False)

    def cpu_seconds(self):
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def idle_cpu_share(self):
        """CPU seconds in a second of waiting, right after a run: what spinning threads would take from others."""
        before = self.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        return (self.cpu_seconds() - before) / IDLE_SECONDS

    def pause(self):
        self.child.send_signal(signal.SIGSTOP)

    def close(self):
        os.killpg(self.child.pid, signal.SIGKILL)  # a package may have started processes of its own
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            stream.close()


class AutoGraph:
    """`PROGRAM bench --serve` for times, `PROGRAM run` for outputs; of `plan` instead where there is one."""

    def __init__(self, command, threads, plan=None):
        self.command, self.threads, self.plan, self.process = command, threads, plan, None
        self.version, self.baseline_bytes = None, 0

    def arguments(self, verb, path, inputs):
        words = [self.command[0], verb, self.plan or path, *self.command[1:], "--threads", str(self.threads)]
        for name, file in inputs.items():
            words += ["--input", f"{name}={file}"]
        return words

    def serve(self, path, inputs):
        """Starts the process that time() asks; it is paused."""
        self.process = Process([*self.arguments("bench", path, inputs), "--serve"])
        ready = self.process.read_answer()
        self.process.pause()
        return ready

    def load(self, path, inputs, output_dir):
        self.version = autograph_json([self.command[0], "doctor", "--json"])["version"]
        ready = self.serve(path, inputs)
        answer = {"load_ms": ready["load_ms"] + ready["compile_ms"] + ready["first_run_ms"]}
        answer["peak_bytes"] = ready["peak_bytes"]
        done = autograph_json([*self.arguments("run", path, inputs), "--output-dir", output_dir, "--json"])
        answer["outputs"] = {output["name"]: output["file"] for output in done["outputs"]}
        return answer

    def time(self, warmup, seconds):
        answer = self.process.ask(f"{warmup} {seconds}")
        return {"min_ms": answer["latency_ms"]["min"], "median_ms": answer["latency_ms"]["median"]}

    def idle_cpu_share(self):
        return self.process.idle_cpu_share()

    def pause(self):
        self.process.pause()

    def close(self):
        if self.process:
            self.process.close()


class Worker:
    """A runtime with a Python package: see peer_worker.py."""

    def __init__(self, kind, threads):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_worker.py")
        self.process = Process([sys.executable, script, kind, "--threads", str(threads)])
        self.version = self.baseline_bytes = None

    def load(self, path, inputs, output_dir):
        ready = self.process.read_answer()
        self.version, self.baseline_bytes = ready["version"], ready["baseline_bytes"]
        return self.process.ask(json.dumps({"do": "load", "model": path, "inputs": inputs, "output_dir": output_dir}))

    def time(self, warmup, seconds):
        return self.process.ask(json.dumps({"do": "time", "warmup": warmup, "seconds": seconds}))

    def idle_cpu_share(self):
        return self.process.idle_cpu_share()

    def pause(self):
        self.process.pause()

    def close(self):
        self.process.close()


def time_in_turns(peers, rounds, warmup, seconds):
    """Milliseconds of the fastest run in each round, by name; one process after the other is active in a round."""
    times = {name: [] for name in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            times[name].append(peer.time(warmup, seconds)["min_ms"])
            peer.pause()
    return times


def autograph_json(command):
    """stdout of a run of the program as JSON; PeerError with its message when it fails."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if Process.realtime:
        set_realtime(child.pid, True)
    try:
        output, errors = child.communicate(timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired as error:
        child.kill()
        raise PeerError(f"`{command[1]}`: no answer in {ANSWER_SECONDS} s") from error
    if child.returncode != 0:
        lines = [line for line in errors.splitlines() if line.strip()] or ["no message"]
        raise PeerError(f"`{command[1]}` exit {child.returncode}: {lines[0].strip()}")
    return json.loads(output)


def draw_inputs(declared, name, folder):
    """Input name -> .npy file, drawn from the model's name."""
    generator = numpy.random.default_rng(zlib.crc32(name.encode()))
    files = {}
    for index, value in enumerate(declared):
        if not all(isinstance(extent, int) for extent in value["shape"]) or value["dtype"] not in NUMPY_TYPES:
            raise PeerError(f"input {value['name']}: no way to draw {value['dtype']}{value['shape']}")
        dtype = numpy.dtype(NUMPY_TYPES[value["dtype"]])
        if numpy.issubdtype(dtype, numpy.floating):
            array = generator.standard_normal(value["shape"]).astype(dtype)
        else:
            array = generator.integers(0, 2 if dtype == bool else TOKEN_IDS, value["shape"]).astype(dtype)
        files[value["name"]] = os.path.join(folder, f"in_{index}.npy")
        numpy.save(files[value["name"]], array)
    return files


def difference(expected, actual):
    """The largest |difference| as a share of the largest |expected|; infinite where shapes or infinities differ."""
    if expected.shape != actual.shape:
        return float("inf")
    expected, actual = expected.astype(numpy.float64), actual.astype(numpy.float64)
    finite = numpy.isfinite(expected)
    if not numpy.array_equal(finite, numpy.isfinite(actual)):
        return float("inf")
    if not finite.any():
        return 0.0
    largest = float(numpy.abs(expected[finite]).max())
    worst = float(numpy.abs(expected[finite] - actual[finite]).max())
    return worst / largest if largest > 0 else worst


def compare_outputs(rows, tolerance):
    """Sets max_rel and agrees in every row, against ONNX Runtime or, without it, the last runtime that ran."""
    loaded = [name for name, row in rows.items() if "outputs" in row and "error" not in row]
    if not loaded:
        return
    judge = "onnxruntime" if "onnxruntime" in loaded else loaded[-1]
    expected = {name: numpy.load(file) for name, file in rows[judge].pop("outputs").items()}
    rows[judge].update(max_rel=0.0, agrees=True)
    for name in loaded:
        if name == judge:
            continue
        files = rows[name].pop("outputs")
        missing = [output for output in expected if output not in files]
        shares = [difference(expected[output], numpy.load(files[output])) for output in expected if output in files]
        worst = float("inf") if missing else max(shares, default=0.0)
        rows[name].update(max_rel=worst, agrees=worst <= tolerance)


def machine(options):
    """Processor, instruction sets and peak, as `autograph doctor` tells them."""
    peak = [] if options.beside else ["--peak"]  # other work beside it would be measured, too
    doctor = autograph_json([options.autograph, "doctor", *peak, "--threads", str(options.threads), "--json"])
    return {
        "processor": doctor["processor"],
        "isa": doctor["isa"],
        "cpus": doctor["cpus"],
        "memory_bytes": doctor["memory"]["total"],
        "peak": doctor.get("peak"),
        "build_type": doctor["build_type"],
        "libraries": {library["name"]: library["version"] for library in doctor["libraries"]},
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }
