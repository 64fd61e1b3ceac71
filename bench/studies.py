#!/usr/bin/env python3
"""Runs the studies of the AutoGraph paper on this machine and writes them, with machine and date, as tables.

    python bench/studies.py [--out docs/results] [--only compare,sim,settings,alpha,batch,cell]
        [--autograph build/autograph] [--budget SECONDS] [--seconds T] [--models a,b]

compare   every strategy on every model on this processor, in turns (`autograph compare`)
sim       the same on the simulated GPU of the paper's time; the latencies are those of a clock, not measurements
settings  without rules, without DP, without partition, without critical path (`autograph ablate`)
alpha     the weight of the critical path
batch     batch 1 to 32, against the plain plan
cell      the NASNet cell as a picture, in sequence and as the search leaves it (`autograph viz`, needs graphviz)

Each study is one file, NAME.md with the tables and NAME.json with what the program printed; a study that fails leaves
its old files alone. Exit code: 0 done, 1 a study failed, 2 usage.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

# The published table, and models with the branches that people run.
MODELS = ["inception_v3", "resnet50", "resnext50", "nasnet_a", "nasnet_mobile", "rnntc_sru", "bert", "nasnet_large"]
MODELS += ["bert_base", "decoder", "mixture_of_experts", "two_towers", "bilstm", "inception_resnet", "multi_task"]
RIVALS = ["sequential", "list", "taso", "ios", "nimble", "taso+nimble"]
# The search's own result, and with the plans of ios and nimble as candidates: the default.
OWN = ["search", "autograph"]
STRATEGIES = RIVALS + OWN
# A row is level when both differ by less: medians of equal plans do.
LEVEL = 0.01
STUDIED = {"settings": ["nasnet_mobile", "rnntc_sru"], "alpha": ["nasnet_mobile"], "batch": ["squeezenet"]}


class Studies:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)

    def program(self, *arguments):
        command = [self.options.autograph, *arguments]
        print("+", " ".join(command), file=sys.stderr)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def machine(self):
        doctor = json.loads(self.program("doctor", "--json"))
        return f"{doctor['processor']} ({doctor['isa'][-1]}), {doctor['cpus']['allowed']} processors"

    def write(self, name, title, text, document):
        today = datetime.date.today().isoformat()
        flags = f"--only {name} --budget {self.options.budget:g} --seconds {self.options.seconds:g}"
        head = f"# {title}\n\n{today}, {self.machine()}. Again: `python bench/studies.py {flags}`.\n\n"
        (self.out / f"{name}.md").write_text(head + text + "\n", encoding="utf-8")
        (self.out / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def search_flags(self):
        return ["--budget", str(self.options.budget), "--seconds", str(self.options.seconds), "--json"]

    def compare(self, name, title, *flags):
        rows = []
        for model in self.options.models:
            document = json.loads(self.program("compare", f"zoo:{model}", *flags, *self.search_flags()))
            rows += document["rows"]
        lines = ["| model | " + " | ".join(STRATEGIES) + " | best rival | it / search | it / autograph |"]
        lines.append("|---" * (len(STRATEGIES) + 4) + "|")
        gains = {own: [] for own in OWN}
        for row in rows:
            ms = row["latency_ms"]
            best = min(RIVALS, key=lambda strategy: ms[strategy])
            for own in OWN:
                gains[own].append(ms[best] / ms[own])
            cells = [f"**{ms[s]:.3f}**" if ms[s] == min(ms.values()) else f"{ms[s]:.3f}" for s in STRATEGIES]
            ratios = " | ".join(f"{gains[own][-1]:.3f}" for own in OWN)
            lines.append(f"| {row['model']} | " + " | ".join(cells) + f" | {best} | {ratios} |")
        lines.append(
            "\nLatency in ms; equal plans are measured once. Every rival has the same kernels, passes, measured costs, "
            "trials in turns and, where it uses streams, the list scheduler beside its own."
        )
        self.write(name, title, self.summary(rows, gains) + "\n\n" + "\n".join(lines), rows)

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
        return (
            f"Best rival over the search alone: geometric mean {mean['search']:.3f} "
            f"(over `autograph`, which also tries plans of `ios` and `nimble`: {mean['autograph']:.3f}). "
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

    def cell(self):
        for strategy in ("sequential", "autograph"):
            picture = self.out / f"nasnet_cell_{strategy}.svg"
            self.program("viz", "zoo:nasnet_cell", "--strategy", strategy, "--device", "sim:v100", "-o", str(picture))

    def run(self, name):
        if name == "compare":
            self.compare("compare", "Every strategy on this processor")
        elif name == "sim":
            self.compare("sim", "Every strategy on a SIMULATED GPU (sim:v100)", "--device", "sim:v100")
        elif name == "cell":
            self.cell()
        else:
            self.ablate(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["compare", "sim", "settings", "alpha", "batch", "cell"]
    parser.add_argument("--out", default="docs/results")
    parser.add_argument("--only", default=",".join(names))
    parser.add_argument("--autograph", default="build/autograph")
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    options.models = options.models.split(",")
    wanted = options.only.split(",")
    if not set(wanted) <= set(names):
        parser.error(f"--only: expected some of {','.join(names)}")
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
