# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Simulates scenarios in this process. Python's lock is free meanwhile, so other threads run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence

from onramp import _onramp
from onramp.results import Results
from onramp.scenario import Scenario

#: Gets the fraction that is done, 0 to 1, and a line with the time that is left.
Progress = Callable[[float, str], object]

#: Shortest time between two lines, in seconds.
_PERIOD_S = 0.2


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, or the stop button of a notebook. `results` has the runs that were made until then; the results of those
    that were under way are marked as partial."""

    def __init__(self, results: Results) -> None:
        made = sum(not run["partial"] for run in results.params)
        super().__init__(
            f"{made} of {results.planned_runs} runs are complete: "
            "the exception's attribute `results` has them (in a notebook: sys.last_value.results)"
        )
        self.results = results


class PartError(RuntimeError):
    """A congestion control or a control law that was written in Python raised an exception, which is the cause of this one
    (`__cause__`), or gave an impossible answer. `results` has what was made until then."""

    def __init__(self, message: str, results: Results) -> None:
        super().__init__(message)
        self.results = results


def simulate(
    scenario: Scenario,
    *,
    seeds: int | Iterable[int] | None = None,
    threads: int | None = None,
    series: Sequence[str] = (),
    progress: Progress | bool | None = None,
) -> Results:
    """Simulates all runs of a scenario.

    Args:
        scenario: What to simulate.
        seeds: 5 means the seeds 1 to 5. Each has a run of every case; tables and plots then have means with 95 %
            confidence intervals. Without it, the seeds of the scenario.
        threads: Runs at a time. Results do not depend on it. Without it, the number of processors.
        series: Places whose values by time are kept in `Results.series`: a port ("switch0-host3"), a host ("host3"),
            "ports", "flows", "pairs", "rtts", "rounds".
        progress: True shows a line with the time that is left, False shows none, a function gets it. Without it, a line
            is shown on terminals and in notebooks.

    Returns:
        The results. The same scenario and seeds give the same results, byte for byte.

    Raises:
        ScenarioError: the simulator cannot run the scenario, or it needs more memory than there is.
        Interrupted: Ctrl-C; its `results` has the complete runs.
        PartError: an algorithm that was written in Python failed.
    """
    if seeds is not None:
        numbers = range(1, seeds + 1) if isinstance(seeds, int) else seeds
        scenario = scenario.set({"seed": list(numbers)})
    shown = progress if callable(progress) else _line(progress)
    made = _onramp.simulate(scenario._native, threads, series, shown)
    if isinstance(shown, _Line):
        shown.end()
    results = Results._of_made(made)
    failure = made.failure
    if failure is None:
        return results
    if isinstance(failure, KeyboardInterrupt):
        raise Interrupted(results) from None
    if type(failure) is _onramp.PartFailure:
        raise PartError(str(failure), results) from failure.__cause__
    raise failure


def _line(wanted: bool | None) -> _Line | None:
    if wanted is None:
        wanted = sys.stderr.isatty() or "ipykernel" in sys.modules
    return _Line() if wanted else None


class _Line:
    """A line on the terminal that changes."""

    def __init__(self) -> None:
        self._last_s = 0.0
        self._width = 0

    def __call__(self, done: float, line: str) -> None:
        now_s = time.monotonic()
        if now_s - self._last_s >= _PERIOD_S:
            self._last_s = now_s
            self._write(line)

    def end(self) -> None:
        """Removes the line."""
        if self._width:
            self._write("")
            sys.stderr.write("\r")

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)
