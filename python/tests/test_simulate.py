# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import onramp
import pyarrow as pa
import pytest
from onramp import _onramp


#: Takes hours: only an interrupt ends it.
ENDLESS = {"duration": "3600 s", "onramp.law": "final", "traffic.1.load": "0.01 %"}


def test_results_do_not_depend_on_threads(scenario: onramp.Scenario, results: onramp.Results) -> None:
    again = onramp.simulate(scenario, seeds=range(1, 4), threads=1)
    assert again.summary == results.summary
    assert again.flows.equals(results.flows)
    assert again.requests.equals(results.requests)


def test_results_are_those_of_the_command(
    scenario: onramp.Scenario, results: onramp.Results, tmp_path: Path
) -> None:
    """ONRAMP is the path of the command: `tools/wheel-test` sets it."""
    file, ours, its = tmp_path / "s.toml", tmp_path / "ours", tmp_path / "its"
    file.write_text(scenario.text)
    results.save(ours)
    command = [os.environ["ONRAMP"], "sim", "run", file, "--seeds", "1-3", "--out", its]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("summary.json", "flows.parquet", "requests.parquet", "series.parquet"):
        assert (ours / name).read_bytes() == (its / name).read_bytes(), name


def test_tables_are_views_of_the_simulation(scenario: onramp.Scenario) -> None:
    table = _onramp.simulate(scenario._native, 1, [], None).flows()
    first, second = (pa.table(table) for _ in range(2))
    addresses = [one["start_ns"].chunk(0).buffers()[1].address for one in (first, second)]
    assert addresses[0] == addresses[1], "each export would have an address of its own"
    assert len(table) == len(first)


def test_other_threads_run_meanwhile(scenario: onramp.Scenario) -> None:
    ticks, over = [], threading.Event()

    def tick() -> None:
        while not over.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    counts = []
    onramp.simulate(scenario, seeds=3, progress=lambda done, line: counts.append(len(ticks)))
    over.set()
    thread.join()
    assert counts[-1] > counts[0]


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """A shell starts programs in the background with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_what_was_made_and_marks_it(scenario: onramp.Scenario) -> None:
    def interrupt(done: float, line: str) -> None:
        signal.raise_signal(signal.SIGINT)

    endless = scenario.set(ENDLESS)
    with pytest.raises(KeyboardInterrupt) as error:
        onramp.simulate(endless, progress=interrupt)
    assert isinstance(error.value, onramp.Interrupted)
    results = error.value.results
    assert results.partial
    assert [run["partial"] for run in results.params] == [True] * len(results.params)
    assert "0 of 1 runs are complete" in str(error.value)


def test_an_exception_of_progress_ends_the_simulation(scenario: onramp.Scenario) -> None:
    def fail(done: float, line: str) -> None:
        raise ZeroDivisionError(line)

    endless = scenario.set(ENDLESS)
    with pytest.raises(ZeroDivisionError, match="0 of 1 run done"):
        onramp.simulate(endless, progress=fail)


def test_series_are_kept_if_they_are_asked_for(scenario: onramp.Scenario) -> None:
    one = scenario.set({"onramp.law": "final"})
    places = onramp.simulate(one, series=["host3"]).series["place"].to_pylist()
    assert "host3" in places
    with pytest.raises(onramp.ScenarioError, match="host9"):
        onramp.simulate(one, series=["host9"])


def test_too_much_for_the_memory_is_refused_before_the_run(scenario: onramp.Scenario) -> None:
    large = {"kind": "poisson", "to": "all", "workload": "fb_hadoop", "load": "80 %"}
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in large.items())
    text = scenario.text.split("[[traffic]]")[0] + f"[[traffic]]\n{lines}\n"
    with pytest.raises(onramp.ScenarioError, match="MB of memory"):
        onramp.simulate(onramp.Scenario.parse(text).set({"duration": "20 s"}), seeds=500, threads=500)
