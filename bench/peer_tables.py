"""What peers.py prints: tables for people, and its JSON."""

import json
import math
import os

TITLES = {
    "autograph": "AutoGraph",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torchscript": "TorchScript",
    "inductor": "inductor",
}
MEGABYTE = 1e6


def title(name):
    return TITLES.get(name, name)


def heading(result):
    machine, settings = result["machine"], result["settings"]
    lines = [f"{machine['processor']}, {machine['cpus']['allowed']} cpus, {' '.join(machine['isa'])}"]
    if peak := machine["peak"]:
        compute = ", ".join(f"{entry['gflops']:.0f} GFLOP/s on {entry['threads']}" for entry in peak["compute"])
        memory = [entry for entry in peak["memory"] if entry["level"] == "memory"][-1]
        read = f"{memory['read_gb_per_s']:.1f} GB/s on {memory['threads']}"
        lines.append(f"peak f32 ({peak['isa']}): {compute}; memory read {read}")
    lines += [
        f"{settings['threads']} threads, batch as exported, f32, {settings['rounds']} rounds of {settings['seconds']} s"
        f" after {settings['warmup']} s of warm-up",
    ]
    if settings["flags"]:
        lines.append(f"AutoGraph with {settings['flags']}")
    if settings.get("optimize"):
        lines.append(f"autograph: plans of `autograph optimize --budget {settings['optimize']:g}`")
    if machine["build_type"] != "Release":
        lines.append(f"warning: AutoGraph is a {machine['build_type']} build")
    if machine["load_average"] > 0.5:
        note = "; what is measured goes first" if settings["realtime"] else ""
        lines.append(f"warning: the machine is busy (load average {machine['load_average']:.1f} at the start){note}")
    return "\n".join(lines) + "\n"


def layout(header, rows):
    """Columns as wide as they need; all but the first at the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def number(value, digits=3):
    """Three significant digits, without an exponent."""
    if value is None:
        return "-"
    if value <= 0:
        return f"{value:.0f}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(value)))}f}"


def time_cell(row):
    if "error" in row:
        return "failed"
    if "ms" not in row:
        return "-"
    low, high = row["spread_ms"]
    mark = "" if row.get("agrees", True) else " !"
    return f"{number(row['ms'])} ({number(low)}-{number(high)}){mark}"


def mean_of(entries, key):
    """The geometric mean over those that have it."""
    values = [entry[key] for entry in entries if key in entry]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def peer_names(result):
    names = []
    for entry in result["models"]:
        names += [name for name in entry["peers"] if name not in names]
    return names


def times_table(result, names):
    has_ratio = {name for entry in result["models"] for name, row in entry["peers"].items() if "ratio" in row}
    variants = [name for name in names if name in has_ratio and name != "autograph"]
    header = ["ms (spread of rounds)", *map(title, names), "ratio", "of minima", *[f"of {name}" for name in variants]]
    header += ["best other", "roof", "of roof"]
    rows = []
    for entry in result["models"]:
        own = entry["peers"].get("autograph", {}).get("ms")
        roof = entry.get("roofline_ms")
        rows.append(
            [
                entry["model"],
                *[time_cell(entry["peers"].get(name, {})) for name in names],
                number(entry.get("ratio")),
                number(entry.get("ratio_of_minima")),
                *[number(entry["peers"].get(name, {}).get("ratio")) for name in variants],
                title(entry["best_peer"]) if "best_peer" in entry else "-",
                number(roof),
                f"{roof / own * 100:.0f} %" if own and roof else "-",
            ]
        )
    means = [mean_of(result["models"], key) for key in ("ratio", "ratio_of_minima")]
    means += [mean_of([entry["peers"].get(name, {}) for entry in result["models"]], "ratio") for name in variants]
    rows.append(["geometric mean", *["" for _ in names], *map(number, means), "", "", ""])
    return layout(header, rows)


def figure_table(result, names, heading_text, figure, ratio, scale):
    header = [heading_text, *map(title, names), "to ONNX Runtime"]
    rows = []
    for entry in result["models"]:
        cells = [entry["peers"].get(name, {}).get(figure) for name in names]
        texts = [number(cell / scale) if cell else "-" for cell in cells]
        rows.append([entry["model"], *texts, number(entry.get(ratio))])
    rows.append(["geometric mean", *["" for _ in names], number(mean_of(result["models"], ratio))])
    return layout(header, rows)


def baseline_line(result, names):
    parts = []
    for name in names:
        rows = [entry["peers"].get(name, {}) for entry in result["models"]]
        sizes = [row["baseline_bytes"] for row in rows if row.get("baseline_bytes")]
        if sizes:
            parts.append(f"{title(name)} {min(sizes) / MEGABYTE:.0f}")
    return "of which the interpreter with its package, MB: " + ", ".join(parts) + "\n" if parts else ""


def versions_line(result, names):
    parts = []
    for name in names:
        rows = [entry["peers"].get(name, {}) for entry in result["models"]]
        version = next((row["version"] for row in rows if row.get("version")), "?")
        idle = max((row.get("idle_cpu_share", 0) for row in rows), default=0)
        parts.append(f"{title(name)} {version} ({idle * 100:.0f} %)")
    return "versions (processor time while waiting, before being stopped): " + ", ".join(parts) + "\n"


def failures(result):
    """One line for everything that went wrong."""
    lines = []
    for entry in result["models"]:
        if "error" in entry:
            lines.append(f"{entry['model']}: {entry['error']}")
        for name, row in entry["peers"].items():
            if "error" in row:
                lines.append(f"{entry['model']}, {title(name)}: {row['error']}")
            elif not row.get("agrees", True):
                lines.append(f"{entry['model']}, {title(name)}: outputs differ by {row['max_rel']:.1e} of the largest")
    return lines


def tables(result):
    names = peer_names(result)
    parts = [
        times_table(result, names),
        figure_table(result, names, "load to first result, ms", "load_ms", "load_ratio", 1),
        figure_table(result, names, "peak memory of a run, MB", "peak_bytes", "peak_ratio", MEGABYTE)
        + baseline_line(result, names),
        versions_line(result, names),
    ]
    wrong = failures(result)
    if wrong:
        parts.append("wrong:\n" + "".join(f"  {line}\n" for line in wrong))
    return "\n".join(parts)


def progress_line(entry):
    if "error" in entry:
        return f"{entry['model']}: {entry['error']}"
    cells = ", ".join(f"{title(name)} {time_cell(row)}" for name, row in entry["peers"].items())
    return f"{entry['model']}: {cells}; ratio {number(entry.get('ratio'))}"


def write_json(path, result):
    """By way of a temporary file: an interrupted run leaves the last whole result. Infinities become null."""
    temporary = path + ".tmp"
    document = json.loads(json.dumps(result), parse_constant=lambda word: None)
    keys = ("ratio", "ratio_of_minima", "load_ratio", "peak_ratio")
    document["geometric_mean"] = {key: mean_of(result["models"], key) for key in keys}
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(temporary, path)
