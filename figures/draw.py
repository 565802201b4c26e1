# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Draws the plots of reproduced figures for papers: a PNG and an SVG of each.

Usage: draw.py DIR... [--out DIR]
Reads figure.json of each directory (`onramp reproduce` writes it; the schema is
crates/results/src/figure.rs) and writes ID-N-title.png and .svg into it, or into --out. Whiskers and
error bars are 95 % confidence intervals. The same figure.json gives the same SVG.
"""

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path

REMEDY = "`make setup` installs what figures/ need; then run .cache/venv/bin/python figures/draw.py"

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib import font_manager
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
except ImportError as error:
    sys.exit(f"draw.py: {error}. {REMEDY}")

SCHEMA = 4
PALETTE = Path(__file__).resolve().parent.parent / "crates/report/assets/palette.json"
FONT = "DejaVu Sans"  # matplotlib brings it
DASHES = {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (5, 1.5, 1, 1.5)),
          "longdash": (0, (8, 2)), "longdashdot": (0, (8, 1.5, 1, 1.5))}
MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X",
           "triangle-down": "v", "star": "*"}
WIDTH_IN = 3.5  # a column of a two-column paper
HEIGHT_IN = 2.3  # without the legend
MARKED_POINTS = 60  # a line of more has no markers
LABELLED_CELLS = 60  # a heat map of more has no numbers in its cells
STYLE = {
    "font.family": FONT, "font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#e3e7ec", "grid.linewidth": 0.5, "lines.linewidth": 1.3, "lines.markersize": 3,
    "errorbar.capsize": 2, "legend.frameon": False, "savefig.dpi": 300,
    "svg.hashsalt": "onramp", "text.parse_math": False,
}


class Unreadable(Exception):
    """A file is not what this draws."""


def read(directory):
    path = directory / "figure.json"
    try:
        figure = json.loads(path.read_text(encoding="utf-8"))
        schema = figure["schema"]
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}; `onramp reproduce` writes it") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{path} is not a figure ({error}); reproduce it again") from error
    if schema != SCHEMA:
        raise Unreadable(f"{path}: its schema is {schema}, this draws {SCHEMA}; reproduce it again")
    return path, figure


def number(value):
    """Three significant figures; thousands with a gap."""
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < 1e-3:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.10g}".replace(",", "\u2009")


def gaps(values):
    return [float("nan") if value is None else value for value in values]


def errors(plot, series):
    """Lengths of the intervals' arms below and above y, or None. An end that a logarithmic axis cannot show has no arm."""
    log = plot["y"].get("log", False)

    if not series.get("low") and not series.get("high"):
        return None

    def arms(ends, sign):
        ends = ends or [None] * len(series["y"])
        return [0 if y is None or end is None or (log and end <= 0) else max(0, sign * (end - y)) for y, end in zip(series["y"], ends)]

    return [arms(series.get("low"), -1), arms(series.get("high"), 1)]


class Looks:
    """Colours by name, the same in all plots of a figure; dashes and markers by place in a plot."""

    def __init__(self):
        self.palette = json.loads(PALETTE.read_text(encoding="utf-8"))
        self.names = []

    def of(self, name, index):
        name = name.split(" (")[0]  # `off (n = 561)` is `off`
        if name not in self.names:
            self.names.append(name)
        colours, dashes, markers = (self.palette[key] for key in ("light", "dashes", "markers"))
        colour = colours[self.names.index(name) % len(colours)]
        return colour, DASHES[dashes[index % len(dashes)]], MARKERS[markers[index % len(markers)]]


def draw_lines(axes, plot, looks):
    kind = plot["kind"]
    for index, series in enumerate(plot["series"]):
        colour, dash, marker = looks.of(series["name"], index)
        marked = kind == "scatter" or (kind == "line" and len(series["x"]) <= MARKED_POINTS)
        axes.errorbar(
            series["x"], gaps(series["y"]), yerr=errors(plot, series), label=series["name"], color=colour,
            linestyle="none" if kind == "scatter" else dash, marker=marker if marked else "none",
            drawstyle="steps-post" if kind == "step" else "default", elinewidth=0.8)


def draw_stacked(axes, plot, looks):
    """Series need not have their points at the same x: what one has no point of counts as none."""
    columns = sorted({x for series in plot["series"] for x in series["x"]})
    layers = []
    for series in plot["series"]:
        points = dict(zip(series["x"], series["y"]))
        layers.append([points.get(x) or 0 for x in columns])
    colours = [looks.of(series["name"], index)[0] for index, series in enumerate(plot["series"])]
    names = [series["name"] for series in plot["series"]]
    axes.stackplot(columns, layers, labels=names, colors=colours, alpha=0.75, linewidth=0)


def draw_bars(axes, plot, looks):
    width = 0.8 / max(1, len(plot["series"]))
    for index, series in enumerate(plot["series"]):
        colour, _, _ = looks.of(series["name"], index)
        shift = (index - (len(plot["series"]) - 1) / 2) * width
        axes.bar([x + shift for x in series["x"]], gaps(series["y"]), width, yerr=errors(plot, series), color=colour,
                 label=series["name"], error_kw={"elinewidth": 0.8, "ecolor": "#1b2026"})
    axes.grid(axis="x", visible=False)


def heat_names(axis, values):
    names = axis.get("categories") or [number(v) for v in sorted(set(values))]
    positions = range(len(names)) if axis.get("categories") else sorted(set(values))
    return names, {value: position for position, value in enumerate(positions)}


def draw_heat(axes, plot, looks):
    series = plot["series"][0]
    columns, column_of = heat_names(plot["x"], series["x"])
    rows, row_of = heat_names(plot["y"], [y for y in series["y"] if y is not None])
    cells = [[float("nan")] * len(columns) for _ in rows]
    for x, y, z in zip(series["x"], series["y"], series["z"]):
        if y is not None and z is not None:
            cells[row_of[y]][column_of[x]] = z
    upright = "upper" if plot["y"].get("categories") else "lower"
    image = axes.imshow(cells, aspect="auto", origin=upright, cmap=looks.palette["heat"].lower())
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(visible=False)
    axes.figure.colorbar(image, label=series["name"], pad=0.02)
    if len(columns) * len(rows) <= LABELLED_CELLS:
        for row, values in enumerate(cells):
            for column, value in enumerate(values):
                if value == value:
                    light = image.norm(value) > 0.5
                    axes.text(column, row, number(value), ha="center", va="center", fontsize=6,
                              color="black" if light else "white")


DRAW = {"line": draw_lines, "step": draw_lines, "scatter": draw_lines, "stacked": draw_stacked,
        "bar": draw_bars, "heat": draw_heat}


def dress_axis(axis, of):
    """Label and ticks of a plot's `of`, on matplotlib's `axis`."""
    axis.set_label_text(textwrap.fill(of["label"], 45))
    names = of.get("categories")
    if names:
        axis.set_ticks(range(len(names)), names)
    elif of.get("log"):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        axis.set_minor_formatter(NullFormatter())


def rotate_long_names(axes, plot):
    names = plot["x"].get("categories") or []
    if sum(len(name) + 2 for name in names) > 45:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.figure.set_figheight(HEIGHT_IN + 0.03 * max(len(name) for name in names))


def dress(axes, plot):
    if plot["kind"] == "heat":
        axes.set(xlabel=plot["x"]["label"], ylabel=plot["y"]["label"])
        rotate_long_names(axes, plot)
        return
    axes.set_xscale("log" if plot["x"].get("log") else "linear")
    axes.set_yscale("log" if plot["y"].get("log") else "linear")
    dress_axis(axes.xaxis, plot["x"])
    dress_axis(axes.yaxis, plot["y"])
    rotate_long_names(axes, plot)
    values = [y for series in plot["series"] for y in series["y"] if y is not None]
    if not plot["y"].get("log") and plot["kind"] != "scatter" and min(values, default=0) >= 0:
        axes.set_ylim(bottom=0)


def add_legend(picture, axes):
    """Above the axes, where it never lies on data; the picture grows by its lines."""
    handles, names = axes.get_legend_handles_labels()
    names = [textwrap.fill(name, 50) for name in names]
    if not any(names):
        return
    columns = max(1, min(4, 60 // (8 + max(len(name) for name in names))))
    lines = sum(name.count("\n") for name in names) + -(-len(names) // columns)
    picture.set_figheight(picture.get_figheight() + 0.15 * lines)
    picture.legend(handles, names, loc="outside upper left", ncols=columns, handlelength=2.6, columnspacing=1.2,
                   borderaxespad=0.1)


def plots_of(figure):
    """Its plots; heat maps cannot lie upon each other, so each is one."""
    for plot in figure["plots"]:
        if plot["kind"] == "heat" and len(plot["series"]) > 1:
            for series in plot["series"]:
                yield {**plot, "title": f"{plot['title']} {series['name']}", "series": [series]}
        else:
            yield plot


def warn_of_log(plot, path):
    lost = sum(axis.get("log", False) and value is not None and value <= 0
               for series in plot["series"]
               for axis, values in ((plot["x"], series["x"]), (plot["y"], series["y"])) for value in values)
    arms = plot["y"].get("log", False) and sum(
        end is not None and end <= 0 for series in plot["series"] for end in series.get("low") or [])
    if arms:
        print(f"draw.py: {path}: the lower ends of {arms} intervals are not above 0, as a logarithmic axis needs: not drawn",
              file=sys.stderr)
    if lost and plot["kind"] != "heat":
        print(f"draw.py: {path}: {lost} values are not above 0, as a logarithmic axis needs: not drawn",
              file=sys.stderr)


def save(picture, path):
    """The whole file, or none."""
    part = path.with_name(path.name + ".part")
    try:
        picture.savefig(part, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def draw_plot(plot, looks, is_partial, stem):
    picture = plt.figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    axes = picture.add_subplot()
    DRAW[plot["kind"]](axes, plot, looks)
    dress(axes, plot)
    if plot["kind"] != "heat":
        add_legend(picture, axes)
    if is_partial:
        picture.supxlabel("PARTIAL: runs are missing", color="#a3112a", fontsize=7)
    for suffix in (".png", ".svg"):
        save(picture, stem.with_name(stem.name + suffix))
    plt.close(picture)


def draw_figure(directory, out):
    path, figure = read(directory)
    out.mkdir(parents=True, exist_ok=True)
    try:
        looks = Looks()
        for count, plot in enumerate(plots_of(figure), 1):
            title = re.sub("[^a-z0-9]+", "-", plot["title"].lower()).strip("-")[:50]
            ident = re.sub("[^A-Za-z0-9]+", "-", figure["id"])
            stem = out / f"{ident}-{count}-{title}"
            warn_of_log(plot, path)
            draw_plot(plot, looks, figure["partial"], stem)
            print(f"wrote {stem}.png and .svg")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Unreadable(f"{path} is not a figure as this draws it ({error!r}); reproduce it again") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--out", type=Path, help="where the pictures go [default: into each DIR]")
    args = parser.parse_args()
    try:
        font_manager.findfont(FONT, fallback_to_default=False)
    except ValueError:
        sys.exit(f"draw.py: matplotlib has no font {FONT}. {REMEDY}")
    plt.rcParams.update(STYLE)
    failed = False
    for directory in args.directories:
        try:
            out = args.out or directory
            draw_figure(directory, out)
        except Unreadable as error:
            failed = True
            print(f"draw.py: {error}", file=sys.stderr)
        except OSError as error:
            sys.exit(f"draw.py: cannot write into {out}: {error.strerror}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
