# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Results of runs: metrics with intervals, tables of flows, requests and series, comparisons, a page.

All values describe the real network, also those of the rack. docs/results.md lists metrics and columns.
"""

from __future__ import annotations

import html
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onramp import _onramp

if TYPE_CHECKING:
    import pyarrow as pa

    from onramp._onramp import Made

_TABLES = ("flows", "requests", "series")


@dataclass(frozen=True)
class Estimate:
    """A metric of a case: the mean over its seeds, with the 95 % confidence interval of this mean (Student's t)."""

    #: The case of the scenario, and the parameters in which it differs from the others.
    case: str
    #: The mean, in the metric's unit; None: no run has the metric.
    mean: float | None
    #: The ends of the interval; None for fewer than two values.
    interval: tuple[float, float] | None
    #: Number of runs that have the metric.
    n: int
    #: The values, by run; None where a run lacks the metric.
    values: tuple[float | None, ...]
    #: The numbers of these runs.
    runs: tuple[int, ...]

    @property
    def half(self) -> float:
        """Half of the interval's width; 0 without an interval."""
        return (self.interval[1] - self.interval[0]) / 2 if self.interval else 0.0


@dataclass(frozen=True)
class Comparison:
    """A metric of a case beside the baseline's, by pairs of runs with the same seed."""

    case: str
    metric: str
    #: Number of pairs.
    pairs: int
    #: Means over the pairs.
    baseline: float
    value: float
    #: Mean of the differences, with its 95 % interval.
    difference: float
    difference_interval: tuple[float, float] | None
    #: Geometric mean of the ratios, with its interval.
    ratio: float
    ratio_interval: tuple[float, float] | None
    #: Whether one of the two intervals excludes no change; None for a single pair.
    beyond_noise: bool | None


class Comparisons(Sequence[Comparison]):
    """Comparisons, which print as the table of `onramp compare`."""

    def __init__(self, rows: Sequence[Comparison], table: str) -> None:
        self._rows, self._table = tuple(rows), table

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self._rows)

    def __str__(self) -> str:
        return self._table

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._table)}</pre>"


class Results:
    """The results of a scenario's runs. `print` shows the table of `onramp sim run`, a line a case."""

    def __init__(
        self, summary: str, table: Callable[[str], pa.Table], save: Callable[[Path], None] | None
    ) -> None:
        self._text, self._table_of, self._save = summary, table, save
        self.summary: dict[str, Any] = json.loads(summary)

    @classmethod
    def _of_made(cls, made: Made) -> Results:
        def table(name: str) -> pa.Table:
            import pyarrow as pa

            return pa.table(getattr(made, name)())

        return cls(made.summary(), table, made.save)

    @property
    def title(self) -> str:
        """Title of the scenario."""
        return str(self.summary["scenario"])

    @property
    def world(self) -> str:
        """ "sim", or "rack": real kernels."""
        return str(self.summary["world"])

    @property
    def partial(self) -> bool:
        """Whether runs are missing or were interrupted."""
        return bool(self.summary["partial"])

    @property
    def planned_runs(self) -> int:
        """Number of runs of the scenario."""
        return int(self.summary["planned_runs"])

    @cached_property
    def flows(self) -> pa.Table:
        """A row for each flow. Numbers of the simulator are not copied; polars, pandas and DuckDB take the table as it is."""
        return self._table_of("flows")

    @cached_property
    def requests(self) -> pa.Table:
        """A row for each request, or step of a collective operation."""
        return self._table_of("requests")

    @cached_property
    def series(self) -> pa.Table:
        """Values by time, of the places that were asked for."""
        return self._table_of("series")

    @cached_property
    def params(self) -> list[dict[str, Any]]:
        """For each run: `run` (its number), `partial`, and the case and keys in which it differs from the others."""
        return [
            {"run": run["run"], "partial": run.get("partial", False), **run["params"]}
            for run in self.summary["runs"]
        ]

    @cached_property
    def metrics(self) -> pa.Table:
        """A row for each run: `run`, `case`, `param_*` as text, and each metric that is a number, by its name
        ("incast.rct_us.p99")."""
        import pyarrow as pa

        rows = []
        for run in self.summary["runs"]:
            params = {_column(key): value for key, value in run["params"].items()}
            rows.append({"run": run["run"], **params, **dict(_numbers("", run["metrics"]))})
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pa.table({name: [row.get(name) for row in rows] for name in names})

    def metric(self, name: str) -> list[Estimate]:
        """The metric of each case, over its seeds.

        Args:
            name: A metric with its part: "incast.rct_us.p99", "drops", "long.goodput_gbps.sum".

        Raises:
            KeyError: no run has it.
        """
        estimates = [_estimate(folded) for folded in _onramp.folded(self._text, name)]
        if all(estimate.n == 0 for estimate in estimates):
            known = sorted({key for run in self.summary["runs"] for key, _ in _numbers("", run["metrics"])})
            raise KeyError(f"no run has the metric {name}; there are {', '.join(known)}")
        return estimates

    @property
    def cases(self) -> dict[str, list[int]]:
        """The numbers of the runs of each case, which differ in nothing but their seed."""
        return {case: runs for case, runs, _, _ in _onramp.folded(self._text, "")}

    def table(self, *, each_seed: bool = False) -> str:
        """The table of `onramp sim run`: a line a case with means ± half of the 95 % interval, or a line a run."""
        return _onramp.table(self._text, each_seed)

    @property
    def remarks(self) -> list[str]:
        """What a specialist would notice: traps of the traffic, the buffer, the threshold and the statistics, by case."""
        return _onramp.remarks(self._text)

    def compare(
        self, baseline: Mapping[str, str], metrics: Sequence[str] | str = ()
    ) -> Comparisons:
        """Every other case beside that with the parameters of `baseline`, by pairs of runs with the same seed.

        Args:
            baseline: Parameters as text: `{"onramp.law": "off"}`, `{"case": "fq"}`.
            metrics: Without any, those of the table.

        Raises:
            ResultsError: no run, or every run, is the baseline; a run has no partner; no run has the metric.
        """
        return _compared([("", self)], baseline, metrics)

    def save(self, directory: str | PathLike[str]) -> None:
        """Writes the files of `onramp sim run`: `summary.json`, `flows.parquet`, `requests.parquet`, `series.parquet`.

        Raises:
            FileExistsError: the directory is not empty.
            ResultsError: a file cannot be written.
        """
        path = Path(directory)
        if self._save is None:
            raise _onramp.ResultsError("these results were loaded: their directory has the files")
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError(f"{path} is not empty: results would mix with what it has")
        self._save(path)

    def report(self, out: str | PathLike[str] = "report.html") -> Path:
        """Writes one HTML page with tables and charts that works offline. Returns its path.

        Raises:
            ResultsError: the file cannot be written.
        """
        if self._save is None:
            raise _onramp.ResultsError("these results were loaded: give their directory to onramp.report")
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory) / "results"
            folder.mkdir()
            self._save(folder)
            return report(folder, out=out)

    def __str__(self) -> str:
        return self.table() + "".join(f"note: {remark}\n" for remark in self.remarks)

    def __repr__(self) -> str:
        whole = sum(not run["partial"] for run in self.params)
        return f"<Results of {self.title!r}: {whole} of {self.planned_runs} runs, {self.world}>"

    def _repr_html_(self) -> str:
        names, columns = _onramp.table_cells(self._text, False)
        heads = "".join(f"<th>{html.escape(f'{group} {name}'.strip())}</th>" for group, name, *_ in columns)
        rows = []
        for line, case in enumerate(names):
            cells = [column[3][line] for column in columns]
            shown = "".join(f"<td>{html.escape('-' if cell is None else cell)}</td>" for cell in cells)
            rows.append(f"<tr><th>{html.escape(case)}</th>{shown}</tr>")
        partial = " (partial: runs are missing or were interrupted)" if self.partial else ""
        notes = "".join(f"<li>{html.escape(remark)}</li>" for remark in self.remarks)
        return (
            f"<table><caption>{html.escape(self.title + partial)}</caption>"
            f"<tr><th>case</th>{heads}</tr>{''.join(rows)}</table><ul>{notes}</ul>"
        )


def load(directory: str | PathLike[str]) -> Results:
    """Reads results of `onramp sim run`, `onramp rack run`, `onramp reproduce` or `Results.save`. Texts of the tables are
    dictionaries: categories in pandas and polars.

    Raises:
        FileNotFoundError: the directory has no summary.json; the message lists those below it.
        ResultsError: another version of onramp wrote it.
    """
    path = Path(directory)
    if not (path / "summary.json").is_file():
        below = sorted(str(found.parent) for found in path.glob("**/summary.json"))
        hint = f"there are results in {', '.join(below)}" if below else "nor has any directory below it"
        raise FileNotFoundError(f"{path} has no summary.json; {hint}")

    def table(name: str) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = path / f"{name}.parquet"
        # Few texts stand in many rows: as dictionaries they are read in a third of the time.
        texts = [field.name for field in pq.read_schema(file) if pa.types.is_string(field.type)]
        return pq.read_table(file, memory_map=True, read_dictionary=texts)

    return Results(_onramp.read_summary(path), table, None)


def compare(
    results: Mapping[str, Results], baseline: Mapping[str, str], metrics: Sequence[str] | str = ()
) -> Comparisons:
    """Runs of several results, by pairs with the same seed. They differ in the parameter `dir`, the name of each.

    Args:
        results: By name: `{"old": load("a"), "new": load("b")}`.
        baseline: Parameters as text: `{"dir": "old"}`.
        metrics: Without any, those of the table.

    Raises:
        ResultsError: as `Results.compare`.
    """
    return _compared(list(results.items()), baseline, metrics)


def report(*directories: str | PathLike[str], out: str | PathLike[str] = "report.html") -> Path:
    """Writes one HTML page of the results in these directories, which works offline. Returns its path.

    Raises:
        ResultsError: results cannot be read, or the page cannot be written.
    """
    _onramp.write_report(list(directories), out)
    return Path(out)


def _compared(
    results: Sequence[tuple[str, Results]], baseline: Mapping[str, str], metrics: Sequence[str] | str
) -> Comparisons:
    texts = [(name, one._text) for name, one in results]
    wanted = [metrics] if isinstance(metrics, str) else list(metrics)
    pairs, table = _onramp.compare(texts, list(baseline.items()), wanted)
    return Comparisons([_comparison(pair) for pair in pairs], table)


def _comparison(pair: _onramp.Pair) -> Comparison:
    case, metric, pairs, (baseline, value), difference, of_difference, ratio, of_ratio, beyond = pair
    return Comparison(
        case=case,
        metric=metric,
        pairs=pairs,
        baseline=baseline,
        value=value,
        difference=difference,
        difference_interval=_ends(of_difference),
        ratio=ratio,
        ratio_interval=_ends(of_ratio),
        beyond_noise=beyond,
    )


def _estimate(folded: _onramp.Folded) -> Estimate:
    case, runs, values, interval = folded
    known = [value for value in values if value is not None]
    return Estimate(
        case=case,
        mean=sum(known) / len(known) if known else None,
        interval=_ends(interval),
        n=len(known),
        values=tuple(values),
        runs=tuple(runs),
    )


def _ends(interval: _onramp.Interval) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


def _column(key: str) -> str:
    return key if key == "case" else "param_" + key.replace(".", "_")


def _numbers(prefix: str, metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The metrics that are numbers, with the parts of distributions."""
    for name, value in metrics.items():
        match value:
            case bool():
                pass
            case int() | float():
                yield prefix + name, value
            case dict():
                yield from _numbers(f"{prefix}{name}.", value)
