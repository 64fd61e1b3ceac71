#!/usr/bin/env python3
"""Runs the studies of the AutoGraph paper on this machine and writes them, with machine and date, as tables.

    python bench/studies.py [--out docs/results] [--autograph build/autograph] [--budget SECONDS] [--warm SECONDS]
        [--seconds T] [--models a,b] [--tune]
        [--only compare,sim,sim_h200,ranking,settings,alpha,batch,rules,passes,ledger,cost,cell]

compare   every strategy on every model on this processor, in turns (`autograph compare`); with --tune all choose
          kernels by measurement
sim       the same on the simulated GPU of the paper's time; the latencies are those of a clock, not measurements
sim_h200  the same on the simulated GPU of today
ranking   predicted against simulated times of all trials of these two, per model, with their rank correlation
settings  without rules, without DP, without partition, without critical path (`autograph ablate`)
alpha     the weight of the critical path
batch     batch 1 to 32, against the plain plan
rules     generated rules, those of use on the models below, and each family of rules left out, on the simulated GPU of
          the paper's time with as many candidates for each setting: the clock decides nothing
passes    each pass that changes a model left out, and all of them
ledger    predicted against measured times of every trial of a search, per model, with their rank correlation
cost      what `autograph optimize` takes, the whole command: --budget from an empty cache, then --warm with that cache;
          wall time, processor time and most memory. On a quiet machine
cell      the NASNet cell as a picture, in sequence and as the search leaves it (`autograph viz`, needs graphviz)

Each study is one file, NAME.md with the tables and NAME.json with what the program printed; a study that fails leaves
its old files alone. Exit code: 0 done, 1 a study failed, 2 usage.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# The published table, and models with the branches that people run.
MODELS = ["inception_v3", "resnet50", "resnext50", "nasnet_a", "nasnet_mobile", "rnntc_sru", "bert", "nasnet_large"]
MODELS += ["bert_base", "decoder", "mixture_of_experts", "two_towers", "bilstm", "inception_resnet", "multi_task"]
RIVALS = ["sequential", "list", "paper", "taso", "ios", "nimble", "taso+nimble"]
# The search's own result, and with the plans of ios and nimble as candidates: the default.
OWN = ["search", "autograph"]
STRATEGIES = RIVALS + OWN
# What the AutoGraph paper prints in its table 2, in ms on its GPU: its strategies of the same names ("sequential" is
# PyTorch's JIT, "autograph" its own). IOS did not run the last two.
PRINTED = {
    "inception_v3": {"sequential": 8.839, "taso": 7.819, "ios": 3.788, "nimble": 3.174, "taso+nimble": 2.928},
    "resnet50": {"sequential": 4.566, "taso": 4.554, "ios": 3.284, "nimble": 2.144, "taso+nimble": 1.988},
    "resnext50": {"sequential": 7.540, "taso": 7.369, "ios": 3.056, "nimble": 7.708, "taso+nimble": 5.933},
    "nasnet_a": {"sequential": 13.891, "taso": 10.843, "ios": 9.583, "nimble": 6.483, "taso+nimble": 13.086},
    "nasnet_mobile": {"sequential": 10.155, "taso": 8.085, "ios": 3.821, "nimble": 2.320, "taso+nimble": 6.540},
    "rnntc_sru": {"sequential": 1.496, "taso": 1.307, "nimble": 0.486, "taso+nimble": 0.387},
    "bert": {"sequential": 11.011, "taso": 9.026, "nimble": 6.923, "taso+nimble": 6.473},
}
PRINTED_OWN = [2.799, 1.905, 2.892, 5.850, 1.883, 0.387, 6.240]
for model, own in zip(PRINTED, PRINTED_OWN):
    PRINTED[model]["autograph"] = own
# What the authors of IOS print of the models that are the same here, in ms on a V100 SXM2 at 1530 MHz, batch 1: their
# sequential schedule, TASO and IOS-Both (README of mit-han-lab/inter-operator-scheduler, sections 4.2.1 and 4.2.2).
PRINTED_BY_IOS = {
    "inception_v3": {"sequential": 6.51, "taso": 5.70, "ios": 4.03},
    "nasnet_large": {"sequential": 22.95, "taso": 21.29, "ios": 16.04},
}
# Title, numbers, strategies, the ratio (name, of the least of these, over this), and how to read it.
PAPERS = [
    (
        "the paper",
        PRINTED,
        ["sequential", "taso", "ios", "nimble", "taso+nimble", "autograph"],
        ("best rival / autograph", ["sequential", "taso", "ios", "nimble", "taso+nimble"], "autograph"),
        "In brackets: table 2 of the AutoGraph paper (AAAI 2023) in ms, measured with each system's own kernels "
        "on a GPU that it does not name; its `sequential` is PyTorch's JIT, its `ios` did not run the last two. "
        "Compare ratios. The paper has no `list`.",
    ),
    (
        "IOS",
        PRINTED_BY_IOS,
        ["sequential", "taso", "ios"],
        ("sequential / ios", ["sequential"], "ios"),
        "In brackets: what the authors of IOS (MLSys 2021) print, in ms on a V100 SXM2 at 1530 MHz with cuDNN's "
        "kernels, of their sequential schedule, TASO and IOS. Compare ratios.",
    ),
]
# What must be known before such a table is read.
SIMULATED = (
    "**These machines have no kernels that split sums inside themselves (split-K), as libraries for GPUs have for some "
    "shapes.** Convolutions and products cut into parts by rules (`spread.*`) may gain more here than on a GPU, where "
    "this is still to be measured.\n\n"
)
# A row is level when both differ by less: medians of equal plans do.
LEVEL = 0.01
STUDIED = {"settings": ["nasnet_mobile", "rnntc_sru"], "alpha": ["nasnet_mobile"], "batch": ["squeezenet"]}
STUDIED["rules"] = ["rnntc_sru", "mixture_of_experts", "multi_task"]
# Graphs that each search of the study of rules looks at.
RULES_CANDIDATES = 3000


def ranks(values):
    """Place of each value in order, the mean of the places where several are equal."""
    order = sorted(values)
    return [(order.index(value) + len(order) - 1 - order[::-1].index(value)) / 2 for value in values]


def spearman(points):
    """Rank correlation of predicted and measured times."""
    predicted, measured = (ranks([point[axis] for point in points]) for axis in (0, 1))
    if len(set(predicted)) < 2 or len(set(measured)) < 2:
        return 0.0
    return statistics.correlation(predicted, measured)


def gain_over_rivals(row, own, rivals=RIVALS):
    """What the best rival takes over what `own` does. The least of several noisy times is low by luck (by about 0.7 %
    where all seven plans differ), which counts for the rivals; a rival with the same plan takes the same."""
    return min(row["latency_ms"][rival] for rival in rivals) / row["latency_ms"][own]


def gain_in_halves(row, own):
    """The same of that rival by the makings of each half, the lesser first: how sure the gain is."""
    halves = row.get("halves_ms") or {name: [ms, ms] for name, ms in row["latency_ms"].items()}
    best = min(RIVALS, key=lambda rival: row["latency_ms"][rival])
    return sorted(theirs / ours for theirs, ours in zip(halves[best], halves[own]))


def scatter(points, size=480, margin=56):
    """Predicted (across) against measured (up) milliseconds, both on a logarithmic scale, as SVG."""
    values = [value for point in points for value in point[:2]] or [1, 10]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def place(ms):
        return (math.log10(ms) - low) / (high - low) * (size - 2 * margin)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{size}" height="{size}" fill="white"/>',
        f'<path d="M{margin},{size - margin} L{size - margin},{margin}" stroke="#bbb"/>',
    ]
    for power in range(low, high + 1):
        at = place(10**power)
        lines = f"M{margin + at},{margin} V{size - margin} M{margin},{size - margin - at} H{size - margin}"
        parts.append(f'<path d="{lines}" stroke="#eee"/>')
        parts.append(f'<text x="{margin + at}" y="{size - margin + 18}" text-anchor="middle">{10.0**power:g}</text>')
        parts.append(f'<text x="{margin - 8}" y="{size - margin - at + 4}" text-anchor="end">{10.0**power:g}</text>')
    for predicted, measured, accepted in points:
        fill = "#1668b8" if accepted else "none"
        x, y = margin + place(predicted), size - margin - place(measured)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke="#1668b8" fill="{fill}"/>')
    parts.append(f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">predicted ms</text>')
    turned = f'transform="translate(14,{size / 2}) rotate(-90)"'
    parts.append(f'<text {turned} text-anchor="middle">measured ms</text></svg>')
    return "\n".join(parts) + "\n"


class Studies:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)

    def program(self, *arguments):
        command = [self.options.autograph, *arguments]
        print("+", " ".join(command), file=sys.stderr)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def timed(self, *arguments):
        """What the program printed, its wall and processor seconds and the most memory that it had, in MiB."""
        command = [self.options.autograph, *arguments]
        print("+", " ".join(command), file=sys.stderr)
        start = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            printed = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        cost = {"wall_s": time.monotonic() - start, "cpu_s": usage.ru_utime + usage.ru_stime}
        return printed, {**cost, "peak_mib": usage.ru_maxrss / 1024}

    def machine(self):
        doctor = json.loads(self.program("doctor", "--json"))
        return f"{doctor['processor']} ({doctor['isa'][-1]}), {doctor['cpus']['allowed']} processors"

    def write(self, name, title, text, document):
        today = datetime.date.today().isoformat()
        flags = f"--only {name} --budget {self.options.budget:g} --seconds {self.options.seconds:g}"
        flags += f" --warm {self.options.warm:g}" if name == "cost" else ""
        flags += " --tune" if name == "compare" and self.options.tune else ""
        head = f"# {title}\n\n{today}, {self.machine()}. Again: `python bench/studies.py {flags}`.\n\n"
        (self.out / f"{name}.md").write_text(head + text + "\n", encoding="utf-8")
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in document)
        (self.out / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")

    def search_flags(self):
        return ["--budget", str(self.options.budget), "--seconds", str(self.options.seconds), "--json"]

    def compare(self, name, title, *flags):
        rows = []
        for model in self.options.models:
            strategies = ["--strategies", ",".join(STRATEGIES), *(["--tune"] if self.options.tune else [])]
            document = json.loads(self.program("compare", f"zoo:{model}", *strategies, *flags, *self.search_flags()))
            rows += document["rows"]
            self.write_comparison(name, title, rows)  # what is done, should a later row fail

    def write_comparison(self, name, title, rows):
        lines = ["| model | " + " | ".join(STRATEGIES) + " | best rival | it / search | it / autograph |"]
        lines.append("|---" * (len(STRATEGIES) + 4) + "|")
        gains = {own: [] for own in OWN}
        for row in rows:
            ms = row["latency_ms"]
            best = min(RIVALS, key=lambda strategy: ms[strategy])
            for own in OWN:
                gains[own].append(gain_over_rivals(row, own))
            cells = [f"**{ms[s]:.3f}**" if ms[s] == min(ms.values()) else f"{ms[s]:.3f}" for s in STRATEGIES]
            ratios = " | ".join(self.gain_cell(row, own, gains[own][-1]) for own in OWN)
            lines.append(f"| {row['model']} | " + " | ".join(cells) + f" | {best} | {ratios} |")
        lines.append(
            "\nLatency in ms; equal plans are measured once. In brackets: the same by every other making of all plans. "
            "Every rival has the same kernels, passes, measured costs, trials in turns and, where it uses streams, the "
            "list scheduler beside its own."
        )
        text = (SIMULATED if name.startswith("sim") else "") + self.summary(rows, gains) + "\n\n" + "\n".join(lines)
        self.write(name, title, text + ("\n\n" + self.printed(rows) if name == "sim" else ""), rows)

    @staticmethod
    def gain_cell(row, own, gain):
        low, high = gain_in_halves(row, own)
        return f"{gain:.3f}" if high - low < 0.0005 else f"{gain:.3f} ({low:.3f}-{high:.3f})"

    @staticmethod
    def printed(rows):
        """Beside what papers print of the same models: AutoGraph of all strategies, IOS of itself and of TASO."""
        tables = []
        for title, printed, strategies, ratio, note in PAPERS:
            lines = [f"## Beside {title}", "", "| model | " + " | ".join(strategies) + f" | {ratio[0]} |"]
            lines.append("|---" * (len(strategies) + 2) + "|")
            for row in rows:
                theirs = printed.get(row["model"].removeprefix("zoo:"))
                if not theirs:
                    continue
                ours = row["latency_ms"]
                in_brackets = [f"{theirs[s]:.3f}" if s in theirs else "-" for s in strategies]
                cells = [f"{ours[s]:.3f} ({theirs_ms})" for s, theirs_ms in zip(strategies, in_brackets)]
                gains = [min(ms[s] for s in ratio[1] if s in ms) / ms[ratio[2]] for ms in (ours, theirs)]
                lines.append(f"| {row['model']} | " + " | ".join(cells) + f" | {gains[0]:.3f} ({gains[1]:.3f}) |")
            tables.append("\n".join(lines) + "\n\n" + note)
        return "\n\n".join(tables)

    @staticmethod
    def summary(rows, gains):
        """Where gains come from, for the first lines of the file."""

        def names(chosen):
            return ", ".join(row["model"] for row in chosen) or "none"

        won = [row for row, gain in zip(rows, gains["search"]) if gain > 1 + LEVEL]
        level = [row for row, gain in zip(rows, gains["search"]) if abs(gain - 1) <= LEVEL]
        lost = [row for row, gain in zip(rows, gains["search"]) if gain < 1 - LEVEL]
        added = [row for row in rows if row["latency_ms"]["autograph"] < (1 - LEVEL) * row["latency_ms"]["search"]]
        mean = {own: statistics.geometric_mean(ratios) for own, ratios in gains.items()}
        others = [strategy for strategy in RIVALS if strategy != "paper"]
        best_others = [gain_over_rivals(row, "search", others) for row in rows]
        return (
            f"Best rival over the search alone: geometric mean {mean['search']:.3f} "
            f"(over `autograph`, which also tries plans of `ios` and `nimble`: {mean['autograph']:.3f}); "
            f"of the rivals without `paper`, Algorithm 1 as it stands: {statistics.geometric_mean(best_others):.3f}. "
            f"Won by the search itself: {names(won)}. Level within {LEVEL:.0%}: {names(level)}. Behind: {names(lost)}. "
            f"Rows that the portfolio improves: {names(added)}."
        )

    def ablate(self, study):
        text, documents = [], []
        for model in STUDIED[study]:
            document = json.loads(self.program("ablate", f"zoo:{model}", "--study", study, *self.search_flags()))
            documents.append({"model": model, "rows": document["rows"]})
            text += [f"## {model}", "", "| setting | latency ms | search s |", "|---|---|---|"]
            for row in document["rows"]:
                text.append(f"| {row['setting']} | {row['latency_ms']:.3f} | {row['search_seconds']:.1f} |")
            text.append("")
        self.write(study, f"Study: {study}", "\n".join(text), documents)

    def rules(self):
        with tempfile.TemporaryDirectory() as folder:
            every, few = f"{folder}/all.rules", f"{folder}/few.rules"
            self.program("rules", "generate", "--max-ops", "2", "-o", every, "--json")
            models = [model for model in STUDIED["rules"] if model in self.options.models]
            corpus = [flag for model in models for flag in ("--models", f"zoo:{model}")]
            pruned = json.loads(self.program("rules", "prune", every, "-o", few, *corpus, "--json"))
            kept = [rule for rule in pruned["rules"] if rule["kept"]]
            use = f"{len(kept)} of them are" if kept else "none of them is"
            text = [f"{pruned['all']} rules of up to two ops on each side were generated and verified;"]
            text += [f"beside the built-in ones {use} of use here, by estimated costs."]
            text += ["", "| rule | times | models |", "|---|---|---|"] if kept else []
            text += [f"| {rule['rule']} | {rule['applied']} | {', '.join(rule['models'])} |" for rule in kept]
            text.append("\nSimulated latencies (sim:v100), equal numbers of graphs looked at.")
            rows = []
            for model in models:
                flags = ["--rules", few, "--device", "sim:v100", "--candidates", str(RULES_CANDIDATES), "--json"]
                found = json.loads(self.program("ablate", f"zoo:{model}", "--study", "rules", *flags))["rows"]
                rows.append({"model": model, "rows": found})
                text += [f"\n## {model}", "", "| setting | latency ms | over full |", "|---|---|---|"]
                full = found[0]["latency_ms"]
                for row in found:
                    text.append(f"| {row['setting']} | {row['latency_ms']:.4f} | {row['latency_ms'] / full:.3f} |")
                self.write("rules", "Study: rules", "\n".join(text), rows)  # what is done, should a later one fail

    def passes(self):
        """A column for each pass: what a run takes without it, to what it takes with all."""
        found = {}
        for model in self.options.models:
            flags = ["--study", "passes", "--seconds", f"{self.options.seconds:g}", "--json"]
            rows = json.loads(self.program("ablate", f"zoo:{model}", *flags))["rows"]
            ms = {row["setting"].removeprefix("without "): row["latency_ms"] for row in rows}
            found[model] = {"full_ms": ms["full"], "without": {name: ms[name] / ms["full"] for name in list(ms)[1:]}}
            names = sorted({name for row in found.values() for name in row["without"]} - {"passes"}) + ["passes"]
            text = ["| model | ms | " + " | ".join(name.replace("passes", "all") for name in names) + " |"]
            text.append("|---" * (len(names) + 2) + "|")
            for name, row in found.items():
                cells = [f"{row['without'][other]:.2f}" if other in row["without"] else "" for other in names]
                text.append(f"| {name} | {row['full_ms']:.3f} | " + " | ".join(cells) + " |")
            text.append("\nWhat a run of the plain plan takes without a pass, to what it takes with all, in turns.")
            self.write("passes", "What each pass gains", "\n".join(text), [{"model": m, **r} for m, r in found.items()])

    def ledger(self):
        rows, lines = [], ["| model | trials | rank correlation | measured / predicted, median |", "|---|---|---|---|"]
        for model in self.options.models:
            with tempfile.TemporaryDirectory() as cache:
                flags = ["--budget", f"{self.options.budget:g}", "--cache-dir", cache, "--json"]
                document = json.loads(self.program("optimize", f"zoo:{model}", *flags))
            points = self.points(document["trials"])
            rows.append({"model": model, "points": points})
            if points:
                rank = "-" if len(points) < 3 else f"{spearman(points):.2f}"
                ratio = statistics.median(measured / predicted for predicted, measured, _ in points)
                lines.append(f"| {model} | {len(points)} | {rank} | {ratio:.2f} |")
            self.write_ledger(rows, lines)  # what is done, should a later model fail

    def write_ledger(self, rows, lines):
        picture = self.out / "ledger.svg"
        picture.write_text(scatter([point for row in rows for point in row["points"]]), encoding="utf-8")
        text = "![predicted against measured](ledger.svg)\n\nOne dot for each trial, filled where it became the best."
        self.write("ledger", "Predicted against measured", text + "\n\n" + "\n".join(lines), rows)

    def cost(self):
        rows = []
        lines = ["| model | cache | budget s | wall s | processors s | peak MiB | candidates | plain ms | found ms |"]
        lines.append("|---" * 9 + "|")
        for model in self.options.models:
            with tempfile.TemporaryDirectory() as cache:
                for kind, budget in (("empty", self.options.budget), ("warm", self.options.warm)):
                    flags = ["--budget", f"{budget:g}", "--cache-dir", cache, "--json"]
                    printed, cost = self.timed("optimize", f"zoo:{model}", *flags)
                    found = json.loads(printed)
                    rows.append({"model": model, "cache": kind, "budget_s": budget, **cost})
                    lines.append(
                        f"| {model} | {kind} | {budget:g} | {cost['wall_s']:.1f} | {cost['cpu_s']:.1f} "
                        f"| {cost['peak_mib']:.0f} | {found['candidates']} | {found['latency_before_ms']:.3f} "
                        f"| {found['latency_after_ms']:.3f} |"
                    )
            self.write("cost", "What a search takes", "\n".join(lines), rows)  # what is done, should a later one fail

    def ranking(self):
        """From the trials that the tables of simulated devices keep."""
        rows = []
        lines = ["| model | device | trials | rank correlation | of the search alone | simulated / predicted, median |"]
        lines.append("|---" * 6 + "|")
        for name, device in (("sim", "sim:v100"), ("sim_h200", "sim:h200")):
            table = self.out / f"{name}.json"
            for row in json.loads(table.read_text(encoding="utf-8")) if table.exists() else []:
                points = {strategy: self.points(trials) for strategy, trials in row.get("trials", {}).items()}
                every = [point for some in points.values() for point in some]
                own = points.get("search", [])
                rows.append({"model": row["model"], "device": device, "points": points})
                if len(every) < 3:
                    continue
                ratio = statistics.median(measured / predicted for predicted, measured, _ in every)
                of_own = f"{spearman(own):.2f}" if len(own) > 2 else "-"
                start = f"| {row['model']} | {device} | {len(every)} | {spearman(every):.2f} | {of_own} "
                lines.append(start + f"| {ratio:.3f} |")
        text = "Candidates of all strategies that ran on the device, each with its schedule: the makespan by which it "
        text += "was ranked against the clock. From the trials of `--only sim,sim_h200`.\n\n"
        self.write("ranking", "Predicted against simulated times of candidates", text + "\n".join(lines), rows)

    @staticmethod
    def points(trials):
        """Predicted and measured milliseconds of those that gave the right numbers, and which became the best."""
        return [
            (trial["predicted_us"] / 1e3, trial["latency_ms"], trial["accepted"])
            for trial in trials
            if trial["verified"] and trial["predicted_us"] > 0
        ]

    def cell(self):
        for strategy in ("sequential", "autograph"):
            picture = self.out / f"nasnet_cell_{strategy}.svg"
            self.program("viz", "zoo:nasnet_cell", "--strategy", strategy, "--device", "sim:v100", "-o", str(picture))

    def run(self, name):
        if name == "compare":
            self.compare("compare", "Every strategy on this processor")
        elif name == "sim":
            self.compare("sim", "Every strategy on a SIMULATED GPU (sim:v100)", "--device", "sim:v100")
        elif name == "sim_h200":
            self.compare("sim_h200", "Every strategy on a SIMULATED GPU (sim:h200)", "--device", "sim:h200")
        elif name == "ranking":
            self.ranking()
        elif name == "rules":
            self.rules()
        elif name == "passes":
            self.passes()
        elif name == "ledger":
            self.ledger()
        elif name == "cost":
            self.cost()
        elif name == "cell":
            self.cell()
        else:
            self.ablate(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["compare", "sim", "sim_h200", "ranking", "settings", "alpha", "batch", "rules", "passes"]
    names += ["ledger", "cost", "cell"]
    parser.add_argument("--out", default="docs/results")
    parser.add_argument("--only", default=",".join(names))
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--warm", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--tune", action="store_true", help="compare: kernels chosen by measurement for all")
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    options.models = options.models.split(",")
    wanted = options.only.split(",")
    if not set(wanted) <= set(names):
        parser.error(f"--only: expected some of {','.join(names)}")
    if not os.access(options.autograph, os.X_OK):
        parser.error(f"--autograph: no program {options.autograph} (`cmake --preset release` and build it)")
    studies, failed = Studies(options), False
    for name in wanted:
        try:
            studies.run(name)
        except subprocess.CalledProcessError as error:
            failed = True
            print(f"{name}: {error}\n{error.stderr}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
