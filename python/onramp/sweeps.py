# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Sweeps: a scenario at many points, made by the threads of this machine or by a Ray cluster, as one data set."""

from __future__ import annotations

import concurrent.futures
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from onramp import _onramp
from onramp.scenario import Scenario
from onramp.simulation import Progress, _line, _Line

if TYPE_CHECKING:
    import pyarrow as pa

#: A place of results: a folder, or a URL that fsspec knows, such as "s3://bucket/folder".
Place = str | PathLike[str]
Engine = Literal["threads", "ray"]
#: Parts with the bytes of their files, in any order.
_Made = Iterator[tuple[int, bytes]]


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C, or the stop button of a notebook. The parts that were made are kept: the same call goes on from there."""

    def __init__(self, results: SweepResults) -> None:
        super().__init__(f"{results.made} of {results.points} points are made; the same call makes the others")
        self.results = results


class Sweep:
    """A scenario at many points of its keys, each point with the same seeds.

        sweep = onramp.Sweep(
            scenario,
            seeds=[1, 2, 3],
            grid={"host.cc": ["cubic", "dctcp"]},
            sample={
                "method": "sobol",
                "points": 32,
                "keys": {"onramp.threshold": {"from": "10 us", "to": "500 us", "scale": "log"}},
            },
        )

    Each entry of `points` meets each combination of the values of `grid`, and each of these each drawn point of `sample`.
    docs/guide/sweeps.md has the file that says the same.

    Raises:
        ScenarioError: a key or value is wrong, or the scenario at the first point is; it names them, with the bound.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        title: str | None = None,
        seeds: Sequence[int] = (),
        points: Sequence[Mapping[str, object]] = (),
        grid: Mapping[str, Sequence[object]] | None = None,
        sample: Mapping[str, Any] | None = None,
    ) -> None:
        varied = {*(grid or {}), *(dict(sample["keys"]) if sample else {})}
        # What `scenario.set` replaced.
        replaced = {key: value for key, value in scenario._keys if key not in varied}
        its_seeds = json.loads(replaced.pop("seed", "[]"))
        file: dict[str, object] = {
            "title": title or scenario.title,
            "scenario": "scenario.toml",
            "seeds": list(seeds) or (its_seeds if isinstance(its_seeds, list) else [its_seeds]),
            "point": [{**replaced, **point} for point in points] or ([replaced] if replaced else []),
            "grid": {key: list(values) for key, values in (grid or {}).items()},
        }
        if sample is not None:
            file["sample"] = dict(sample)
        text = _onramp.Scenario.toml_of(json.dumps(file))
        self._begin(text, "the sweep", {"scenario.toml": scenario.text.encode()}, scenario._directory)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Sweep:
        """Reads a sweep's file. Files that it names are found from its folder.

        Raises:
            OSError: it cannot be read.
            ScenarioError: a key or value is wrong.
        """
        sweep = cls.__new__(cls)
        sweep._begin(Path(path).read_text(), str(path), {}, Path(path).parent)
        return sweep

    def _begin(self, text: str, name: str, files: dict[str, bytes], directory: Path | None) -> None:
        self._text, self._name = text, name
        self._native = _onramp.Sweep(text, name, files, directory)

    def __len__(self) -> int:
        """Number of points."""
        return self._native.points

    def __repr__(self) -> str:
        return f"Sweep({self.title!r}, {len(self)} points)"

    @property
    def title(self) -> str:
        """One line for people."""
        return self._native.title

    def point(self, number: int) -> dict[str, str]:
        """The settings of a point.

        Raises:
            IndexError: there are fewer points.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"point {number} of {len(self)}: numbers begin at 0")
        return dict(self._native.point(number))


class SweepResults:
    """The data set of a sweep: a row for each run."""

    def __init__(self, place: Place, outcome: str) -> None:
        self.place = place
        self._outcome: dict[str, Any] = json.loads(outcome)

    @property
    def title(self) -> str:
        """Title of the sweep."""
        return str(self._outcome["title"])

    @property
    def points(self) -> int:
        """Number of points of the sweep."""
        return int(self._outcome["points"])

    @property
    def made(self) -> int:
        """Number of points in the data set."""
        return int(self._outcome["made"])

    @property
    def partial(self) -> bool:
        """Whether points are missing."""
        return bool(self._outcome["partial"])

    @property
    def runs(self) -> int:
        """Number of rows of the data set."""
        return int(self._outcome["runs"])

    @property
    def failed(self) -> int:
        """Number of rows without metrics: their column `error` says why."""
        return int(self._outcome["failed"])

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The first hundred of them: `point`, `params`, `error`."""
        return list(self._outcome["failures"])

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The data set, or some of its columns: `point`, `run`, `label`, `case`, `param_*` as written, quantities also as
        numbers (`param_onramp_threshold_ns`), each metric ("incast.rct_us.p99"), `error`."""
        import pyarrow.dataset

        if _is_url(self.place):
            filesystem, root = _filesystem(str(self.place))
            data = pyarrow.dataset.dataset(f"{root}/data", filesystem=filesystem, format="parquet")
        else:
            data = pyarrow.dataset.dataset(Path(self.place) / "data", format="parquet")
        return data.to_table(columns)

    def __repr__(self) -> str:
        failed = f", {self.failed} runs failed" if self.failed else ""
        return f"SweepResults({self.title!r}, {self.made} of {self.points} points{failed})"


def sweep(
    what: Sweep | str | PathLike[str],
    out: Place,
    *,
    engine: Engine = "threads",
    threads: int | None = None,
    address: str | None = None,
    force: bool = False,
    progress: Progress | bool | None = None,
) -> SweepResults:
    """Makes the points of a sweep that `out` lacks, and its data set. Results are the same bytes for each engine, for any
    number of threads or nodes, and however often it was interrupted or killed.

    Args:
        what: The sweep, or the path of its file.
        out: A folder, or a URL that fsspec knows ("s3://bucket/folder"). Only one process may write into a URL.
        engine: "threads" of this machine, or a "ray" cluster, whose nodes need this version of the package.
        threads: Of this machine. Without it, the number of processors.
        address: The Ray cluster: "auto", "ray://host:10001". Without it, the one that `RAY_ADDRESS` names, or a new one on
            this machine.
        force: Replaces other results in `out`.
        progress: As for `simulate`.

    Raises:
        ScenarioError: the sweep is wrong.
        ResultsError: `out` has other results, or cannot be used; a node lacks the package or has another version.
        SweepInterrupted: Ctrl-C; the same call goes on.
        ModuleNotFoundError: the engine or the URL needs a package that is not installed.
    """
    asked = what if isinstance(what, Sweep) else Sweep.load(what)
    with _open(asked, out, force) as results:
        missing = asked._native.missing(results.local)
        shown = progress if callable(progress) else _line(progress)
        told = _told(asked._native.parts, len(missing), shown)
        interrupted = False
        try:
            for part, content in _make(asked, missing, engine, threads, address):
                results.keep(part, content)
                told()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            if isinstance(shown, _Line):
                shown.end()
            outcome = asked._native.finish(results.local)
            results.publish()
    made = SweepResults(out, outcome)
    if interrupted:
        raise SweepInterrupted(made)
    return made


def load_sweep(place: Place) -> SweepResults:
    """The results of `onramp sweep`, or of `sweep`, in a folder or at a URL.

    Raises:
        OSError: there are none.
    """
    if _is_url(place):
        filesystem, root = _filesystem(str(place))
        return SweepResults(place, filesystem.cat_file(f"{root}/sweep.json").decode())
    return SweepResults(place, (Path(place) / "sweep.json").read_text())


def _make(
    asked: Sweep, missing: Sequence[int], engine: Engine, threads: int | None, address: str | None
) -> _Made:
    if engine == "threads":
        return _by_threads(asked, missing, threads or os.cpu_count() or 1)
    if engine == "ray":
        from onramp import _ray

        files = {path: bytes(content) for path, content in asked._native.named_files().items()}
        return _ray.parts((asked._text, asked._name, files), missing, address)
    raise ValueError(f"engine is {engine!r}, expected 'threads' or 'ray'")


def _by_threads(asked: Sweep, missing: Sequence[int], threads: int) -> _Made:
    """Each part by one thread, or with all of them if it is the only one."""
    stop = _onramp.Stop()
    each = max(1, threads // max(1, len(missing)))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        futures = {pool.submit(asked._native.make, part, each, stop): part for part in missing}
        try:
            for future in _as_completed(futures):
                content = future.result()
                if content is not None:
                    yield futures[future], content
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _as_completed(futures: Iterable[concurrent.futures.Future[bytes | None]]) -> Iterator[Any]:
    """Waits for a moment at a time, so that Ctrl-C is heard."""
    waiting = set(futures)
    while waiting:
        done, waiting = concurrent.futures.wait(waiting, 0.1, concurrent.futures.FIRST_COMPLETED)
        yield from done


def _told(parts: int, missing: int, shown: Progress | None) -> Callable[[], None]:
    begun_s, finished = monotonic(), 0

    def told() -> None:
        nonlocal finished
        finished += 1
        if shown is not None:
            elapsed_s = monotonic() - begun_s
            left_s = elapsed_s * (missing - finished) / finished
            done = parts - missing + finished
            shown(done / parts, f"{done} of {parts} parts done, {elapsed_s:.0f} s, {left_s:.0f} s left")

    return told


# ---- places of results ----


class _Folder:
    """Results in a folder of this machine."""

    def __init__(self, local: Path) -> None:
        self.local = local

    def keep(self, part: int, content: bytes) -> None:
        path = self.local / _part_name(part)
        path.parent.mkdir(exist_ok=True)
        half = path.with_suffix(".json.part")
        half.write_bytes(content)
        half.rename(path)

    def publish(self) -> None:
        pass


class _Remote(_Folder):
    """Results at a URL, with a folder of this machine that has the same parts."""

    def __init__(self, local: Path, filesystem: Any, root: str) -> None:
        super().__init__(local)
        self._filesystem, self._root = filesystem, root

    def fetch(self) -> None:
        """Gets what the URL has."""
        for path in self._filesystem.find(self._root):
            name = path[len(self._root) + 1 :]
            if name == "plan.json" or name.startswith("runs/points-"):
                target = self.local / name
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(self._filesystem.cat_file(path))

    def keep(self, part: int, content: bytes) -> None:
        super().keep(part, content)
        self._put(_part_name(part))

    def publish(self) -> None:
        known = {path[len(self._root) + 1 :] for path in self._filesystem.find(self._root)}
        ours = {str(path.relative_to(self.local)) for path in self.local.rglob("*") if path.is_file()}
        for name in sorted(name for name in known - ours if name.startswith(("data/", "runs/"))):
            self._filesystem.rm_file(f"{self._root}/{name}")
        # Last the file that says what the data set has.
        for name in sorted(ours - {".lock"} - {name for name in known if name.startswith("runs/")}):
            self._put(name)

    def _put(self, name: str) -> None:
        self._filesystem.pipe_file(f"{self._root}/{name}", (self.local / name).read_bytes())


@contextmanager
def _open(asked: Sweep, out: Place, force: bool) -> Iterator[_Folder]:
    if not _is_url(out):
        directory = asked._native.open(Path(out), force)
        try:
            yield _Folder(Path(out))
        finally:
            directory.close()
        return
    filesystem, root = _filesystem(str(out))
    with tempfile.TemporaryDirectory(prefix="onramp-sweep-") as local:
        remote = _Remote(Path(local), filesystem, root)
        remote.fetch()
        directory = asked._native.open(Path(local), force)
        remote._put("plan.json")
        try:
            yield remote
        finally:
            directory.close()


def _part_name(part: int) -> str:
    return f"runs/points-{part}.json"


def _is_url(place: Place) -> bool:
    return "://" in str(place)


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    filesystem, root = fsspec.core.url_to_fs(url)
    return filesystem, str(root).rstrip("/")
