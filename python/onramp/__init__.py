# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Congestion at the edge of a data-centre network: simulate it, and read the results.

    import onramp

    scenario = onramp.Scenario.load("scenarios/incast.toml")
    results = onramp.simulate(scenario, seeds=5)
    print(results)                                          # the table of `onramp sim run`
    results.requests                                        # an Arrow table: polars, pandas and DuckDB read it

`onramp.plot` draws with matplotlib; `CongestionControl`, `RateControl` and `ControlLaw` are for algorithms of
your own.
"""

from onramp._onramp import ResultsError, ScenarioError
from onramp._onramp import VERSION as __version__
from onramp.advice import Answer, Effect, would_help
from onramp.extend import CongestionControl, ControlLaw, RateControl
from onramp.results import Comparison, Comparisons, Estimate, Results, compare, load, report
from onramp.scenario import Scenario
from onramp.simulation import Interrupted, PartError, simulate
from onramp.sweeps import Sweep, SweepInterrupted, SweepResults, load_sweep, sweep

__all__ = [
    "Answer",
    "Comparison",
    "Comparisons",
    "CongestionControl",
    "ControlLaw",
    "Effect",
    "Estimate",
    "Interrupted",
    "PartError",
    "RateControl",
    "Results",
    "ResultsError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepInterrupted",
    "SweepResults",
    "__version__",
    "compare",
    "load",
    "load_sweep",
    "report",
    "simulate",
    "sweep",
    "would_help",
]
