# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Charts of results with matplotlib (`pip install onramp[plot]`). Each function draws on axes, its own or given ones, and
returns them, so that all of matplotlib can change them.

A case is one line or bar, over all its seeds; intervals are 95 % confidence intervals of the mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onramp.results import Estimate, Results

#: What a column or a metric that ends so is shown in, and how many of its units that is.
_UNITS = {"_ns": ("us", 1e3), "_us": ("us", 1.0), "_ms": ("ms", 1.0), "_gbps": ("Gbit/s", 1.0), "_bytes": ("B", 1.0)}


def cdf(
    results: Results,
    column: str = "rct_ns",
    *,
    table: Literal["flows", "requests"] | None = None,
    cases: Sequence[str] | None = None,
    complementary: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """The distribution of a column over all measured rows of each case: of its seeds together.

    Args:
        results: What to draw.
        column: Of the table, such as "rct_ns" (requests), "fct_ns" or "slowdown" (flows). Times are shown in us.
        table: Without it, `requests` if it has the column.
        cases: Only these, in this order.
        complementary: 1 - CDF, on a logarithmic axis, which shows the tail.
        ax: Axes to draw on.

    Raises:
        KeyError: no table has the column, or there is no such case.
    """
    ax = _axes(ax)
    names = [table] if table else ["requests", "flows"]
    having = [name for name in names if column in getattr(results, name).column_names]
    if not having:
        raise KeyError(f"{' and '.join(names)} have no column {column}")
    rows = getattr(results, having[0])
    rows = rows.filter(pc.and_(rows["measured"], pc.is_valid(rows[column])))
    unit, divisor = _unit(column)
    runs, values = rows["run"].to_numpy(), rows[column].to_numpy() / divisor
    for case, numbers in _chosen(results, cases):
        sorted_values = np.sort(values[np.isin(runs, numbers)])
        part = np.arange(1, len(sorted_values) + 1) / max(len(sorted_values), 1)
        if complementary:
            part = 1 - part + 1 / max(len(sorted_values), 1)
        ax.step(sorted_values, part, where="post", label=case or results.title)
    ax.set_xlabel(f"{_words(column)} ({unit})" if unit else _words(column))
    ax.set_ylabel("part above" if complementary else "part of all")
    if complementary:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1)
    ax.set_xscale("log")
    return _legend(ax)


def bars(
    results: Results, metric: str, *, cases: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """A metric of each case, with its interval over seeds.

    Raises:
        KeyError: no run has the metric, or there is no such case.
    """
    ax = _axes(ax)
    estimates = {estimate.case: estimate for estimate in results.metric(metric)}
    shown = [estimates[case] for case, _ in _chosen(results, cases)]
    shown = [estimate for estimate in shown if estimate.mean is not None]
    means = [estimate.mean or 0.0 for estimate in shown]
    halves = [estimate.half for estimate in shown]
    names = [estimate.case or results.title for estimate in shown]
    ax.bar(names, means, yerr=halves if any(halves) else None, capsize=4, color="tab:blue", width=0.6)
    ax.set_ylabel(_label(metric))
    ax.set_ylim(bottom=min(0.0, *means))
    ax.tick_params(axis="x", rotation=20 if len(names) > 4 else 0)
    return ax


def metric(
    results: Results,
    name: str,
    over: str,
    *,
    by: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A metric over the values of a key that is a quantity or a number, with intervals over seeds. Where the key is a word
    ("off"), the mean is a dashed line.

    Args:
        results: What to draw.
        name: The metric, such as "incast.rct_us.p99".
        over: A key in which runs differ, such as "onramp.threshold".
        by: Another one, or "case": a line for each of its values. Without it, all other keys in which runs differ.
        ax: Axes to draw on.

    Raises:
        KeyError: no run has the metric or the key.
        ValueError: no value of the key is a number.
    """
    ax = _axes(ax)
    params = {run["run"]: run for run in results.params}
    lines: dict[str, list[tuple[float, Estimate]]] = {}
    unit = ""
    for estimate in results.metric(name):
        run = params[estimate.runs[0]]
        if over not in run:
            raise KeyError(f"runs do not differ in {over}; they do in {', '.join(_keys(results))}")
        if estimate.mean is None:
            continue
        others = [by] if by else [key for key in _keys(results) if key != over]
        line = " ".join(str(run[key]) for key in others if key in run)
        x, unit_of = _number(str(run[over]))
        if x is None:  # "off": no place on the axis, so a line across it.
            label = line or f"{over} {run[over]}"
            ax.axhline(estimate.mean, linestyle="--", color="black", linewidth=1, label=label)
            continue
        unit = unit_of
        lines.setdefault(line, []).append((x, estimate))
    if not lines:
        raise ValueError(f"no value of {over} is a number with the metric {name}")
    for line, points in lines.items():
        points.sort(key=lambda point: point[0])
        ax.errorbar(
            [x for x, _ in points],
            [estimate.mean or 0.0 for _, estimate in points],
            yerr=[estimate.half for _, estimate in points],
            marker="o",
            capsize=3,
            label=line or None,
        )
    ax.set_xlabel(f"{over} ({unit})" if unit else over)
    ax.set_ylabel(_label(name))
    return _legend(ax)


def heat_map(results: Results, name: str, x: str, y: str, *, ax: Axes | None = None) -> Axes:
    """The mean of a metric over the values of two keys, with its value in each field.

    Raises:
        KeyError: no run has the metric or a key.
        ValueError: several cases have the same two values: choose one of them before.
    """
    ax = _axes(ax)
    params = {run["run"]: run for run in results.params}
    means: dict[tuple[str, str], float] = {}
    for estimate in results.metric(name):
        run = params[estimate.runs[0]]
        for key in (x, y):
            if key not in run:
                raise KeyError(f"runs do not differ in {key}; they do in {', '.join(_keys(results))}")
        place = (str(run[x]), str(run[y]))
        if place in means:
            raise ValueError(f"several cases have {x} = {place[0]} and {y} = {place[1]}")
        if estimate.mean is not None:
            means[place] = estimate.mean
    columns, rows = (_sorted({place[axis] for place in means}) for axis in (0, 1))
    field = np.array([[means.get((column, row), np.nan) for column in columns] for row in rows])
    image = ax.imshow(field, origin="lower", aspect="auto", cmap="viridis")
    middle = (np.nanmin(field) + np.nanmax(field)) / 2
    for row in range(len(rows)):
        for column in range(len(columns)):
            value = field[row, column]
            colour = "white" if value < middle else "black"
            ax.text(column, row, f"{value:.3g}", ha="center", va="center", color=colour)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.figure.colorbar(image, ax=ax, label=_label(name))
    return ax


def time_series(
    results: Results,
    name: str,
    *,
    place: str | None = None,
    cases: Sequence[str] | None = None,
    marks: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A series by time, of the first run of each case.

    Args:
        results: What to draw, from `simulate(..., series=[...])` or with the series that every run has.
        name: Of the series, such as "queue_us".
        place: A port, host or flow. Without it, the only one that has the series.
        cases: Only these, in this order.
        marks: Horizontal lines by their names: `{"T": 50}`.
        ax: Axes to draw on.

    Raises:
        KeyError: there is no such series, place or case.
    """
    ax = _axes(ax)
    rows = results.series.filter(pc.equal(results.series["name"], name))
    if not len(rows):
        known = sorted(set(results.series["name"].to_pylist()))
        raise KeyError(f"there is no series {name}; there are {', '.join(known)}")
    places = sorted(set(rows["place"].to_pylist()))
    if place is None and len(places) > 1:
        raise KeyError(f"several places have {name}: choose one of {', '.join(places)}")
    place = place or places[0]
    if place not in places:
        raise KeyError(f"{place} has no {name}; {', '.join(places)} have")
    rows = rows.filter(pc.equal(rows["place"], place))
    runs, times, values = (rows[column].to_numpy() for column in ("run", "time_ns", "value"))
    for case, numbers in _chosen(results, cases):
        of = runs == numbers[0]
        ax.plot(times[of] / 1e6, values[of], linewidth=1, label=case or None)
    for mark, value in (marks or {}).items():
        ax.axhline(value, linestyle="--", color="black", linewidth=1, label=mark)
    ax.set_xlabel("time (ms)")
    ax.set_ylabel(f"{_label(name)} at {place}")
    return _legend(ax)


def _axes(ax: Axes | None) -> Axes:
    return ax if ax is not None else plt.subplots(layout="constrained")[1]


def _legend(ax: Axes) -> Axes:
    if len(ax.get_legend_handles_labels()[1]) > 1:
        ax.legend(frameon=False)
    return ax


def _chosen(results: Results, cases: Sequence[str] | None) -> list[tuple[str, list[int]]]:
    known = results.cases
    for case in cases or ():
        if case not in known:
            raise KeyError(f"there is no case {case}; there are {', '.join(known)}")
    return [(case, known[case]) for case in (cases or known)]


def _keys(results: Results) -> list[str]:
    keys = dict.fromkeys(key for run in results.params for key in run)
    return [key for key in keys if key not in ("run", "partial", "seed")]


def _unit(name: str) -> tuple[str, float]:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), ("", 1.0))


def _words(name: str) -> str:
    for end in _UNITS:
        name = name.removesuffix(end)
    return {"rct": "request completion time", "fct": "flow completion time"}.get(name, name)


def _label(metric: str) -> str:
    """The metric with its unit: "incast.rct p99 (us)"."""
    parts = metric.split(".")
    for place, part in enumerate(parts):
        unit, _ = _unit(part)
        if unit:
            parts[place] = part[: part.rindex("_")]
            return f"{'.'.join(parts[: place + 1])} {' '.join(parts[place + 1 :])}".strip() + f" ({unit})"
    return metric


def _number(text: str) -> tuple[float | None, str]:
    """The number of a quantity, and its unit: times in us, rates in Gbit/s, sizes in kB."""
    found = re.fullmatch(r"([-+0-9.eE]+)\s*(\S.*)?", text)
    if not found:
        return None, ""
    try:
        number = float(found[1])
    except ValueError:
        return None, ""
    scales = {
        "ns": (1e-3, "us"), "us": (1, "us"), "ms": (1e3, "us"), "s": (1e6, "us"),
        "kbit/s": (1e-6, "Gbit/s"), "Mbit/s": (1e-3, "Gbit/s"), "Gbit/s": (1, "Gbit/s"), "Tbit/s": (1e3, "Gbit/s"),
        "B": (1e-3, "kB"), "kB": (1, "kB"), "MB": (1e3, "kB"), "GB": (1e6, "kB"),
        "KiB": (1.024, "kB"), "MiB": (1048.576, "kB"), "%": (1, "%"),
    }  # fmt: skip
    scale, unit = scales.get(found[2] or "", (1.0, found[2] or ""))
    return number * scale, unit


def _sorted(values: set[str]) -> list[str]:
    def key(text: str) -> tuple[bool, float, str]:
        number, _ = _number(text)
        return (number is None, number or 0.0, text)

    return sorted(values, key=key)
