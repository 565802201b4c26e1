# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Draws what a rack run of an incast shows: queue and one-way delay over time, and the RCTs.

Usage: incast.py RESULTS_DIR [--cases fq,final]
Reads summary.json, series.parquet and requests.parquet of the directory; writes incast.png and
incast.csv (the data behind the right-hand panel) into it.
"""

import argparse
import csv
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pyarrow.parquet as pq

COLOURS = {
    "fq": "#999999",
    "fq_codel": "#d95f02",
    "off": "#e6ab02",
    "strawman": "#66a61e",
    "final": "#1b4f9c",
    "gate": "#7b2d8b",
}
WINDOW_MS = 20.0


def column(table, name):
    return table.column(name).to_pylist()


def by_run(path, names):
    """Rows of a Parquet file as {run: [tuple of the named columns]}."""
    table = pq.read_table(path)
    runs = {}
    for run, *values in zip(column(table, "run"), *(column(table, n) for n in names)):
        runs.setdefault(run, []).append(tuple(values))
    return runs


def series_of(rows, name):
    """Times in ms and values of one series of the measured place, which comes first."""
    measured = next((place for _, n, place, _ in rows if n == name), None)
    points = sorted((t / 1e6, v) for t, n, place, v in rows if (n, place) == (name, measured))
    return [t for t, _ in points], [v for _, v in points]


def worst_window(requests):
    """Start, in ms, of a window that shows the slowest request that finished."""
    finished = [(rct, start) for start, rct, measured in requests if measured and rct is not None]
    if not finished:
        return 0.0
    _, start = max(finished)
    return max(0.0, start / 1e6 - WINDOW_MS / 4)


def draw_series(axis, cases, series, name, begin):
    for case, run in cases.items():
        times, values = series_of(series.get(run, []), name)
        axis.plot(times, values, drawstyle="steps-post", color=COLOURS.get(case), lw=1, label=case)
    axis.set_xlim(begin, begin + WINDOW_MS)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)


def draw_rcts(axis, cases, requests, out):
    rows = []
    for case, run in cases.items():
        rcts = sorted(r / 1e3 for _, r, m in requests.get(run, []) if m and r is not None)
        if not rcts:
            continue
        share = [(i + 1) / len(rcts) for i in range(len(rcts))]
        axis.plot(rcts, [1 - s + 1 / len(rcts) for s in share], color=COLOURS.get(case), lw=1.5,
                  label=f"{case} (n = {len(rcts)})")
        rows += [(case, r, s) for r, s in zip(rcts, share)]
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "rct_us", "fraction_of_requests"])
        writer.writerows(rows)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("request completion time (us)")
    axis.set_ylabel("fraction of requests slower than this")
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--cases", default="fq,final", help="cases of the two time series")
    args = parser.parse_args()

    summary = json.loads((args.results / "summary.json").read_text())
    all_cases = {run["params"]["case"]: number for number, run in enumerate(summary["runs"])}
    shown = {c: all_cases[c] for c in args.cases.split(",") if c in all_cases}
    if not shown:
        sys.exit(f"incast.py: none of {args.cases} is among the cases {', '.join(all_cases)}")
    series = by_run(args.results / "series.parquet", ["time_ns", "name", "place", "value"])
    requests = by_run(args.results / "requests.parquet", ["start_ns", "rct_ns", "measured"])

    figure = plt.figure(figsize=(11, 5), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    queue, delay = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    begin = worst_window(requests.get(next(iter(shown.values())), []))
    draw_series(queue, shown, series, "queue_us", begin)
    queue.set_ylabel("switch queue (us)")
    queue.legend(fontsize=8)
    draw_series(delay, shown, series, "owd_us", begin)
    delay.set_ylabel("one-way delay (us)")
    delay.set_xlabel("time (ms)")
    draw_rcts(figure.add_subplot(grid[:, 1]), all_cases, requests, args.results / "incast.csv")
    partial = " (PARTIAL)" if summary.get("partial") else ""
    title = summary["scenario"]["title"] if isinstance(summary["scenario"], dict) else summary["scenario"]
    figure.suptitle(f"{title}: real Linux TCP in the virtual rack{partial}", fontsize=11)
    figure.savefig(args.results / "incast.png", dpi=130)
    print(f"wrote {args.results / 'incast.png'} and {args.results / 'incast.csv'}")


if __name__ == "__main__":
    main()
