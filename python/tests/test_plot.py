# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
from pathlib import Path

import onramp
import onramp.plot
import pytest


@pytest.fixture(scope="module")
def swept(scenario: onramp.Scenario) -> onramp.Results:
    keys = {"onramp.threshold": ["30 us", "60 us"], "traffic.1.load": ["10 %", "20 %"], "onramp.law": "final"}
    return onramp.simulate(scenario.set(keys), seeds=2)


def test_a_distribution_has_a_line_a_case(results: onramp.Results, tmp_path: Path) -> None:
    ax = onramp.plot.cdf(results, "rct_ns")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["law=off", "law=final"]
    assert ax.get_xlabel() == "request completion time (us)"
    x = ax.lines[0].get_xdata()
    assert list(x) == sorted(x)
    ax.figure.savefig(tmp_path / "cdf.png")
    tail = onramp.plot.cdf(results, "fct_ns", cases=["law=final"], complementary=True)
    assert tail.get_yscale() == "log" and len(tail.lines) == 1
    with pytest.raises(KeyError, match="no column rtt"):
        onramp.plot.cdf(results, "rtt")
    with pytest.raises(KeyError, match="no case gate; there are law=off, law=final"):
        onramp.plot.cdf(results, cases=["gate"])


def test_bars_have_intervals(results: onramp.Results) -> None:
    ax = onramp.plot.bars(results, "incast.rct_us.mean")
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [estimate.mean for estimate in results.metric("incast.rct_us.mean")]
    assert ax.get_ylabel() == "incast.rct mean (us)"


def test_a_metric_is_drawn_over_a_quantity(swept: onramp.Results, scenario: onramp.Scenario) -> None:
    ax = onramp.plot.metric(swept, "incast.rct_us.p99", "onramp.threshold")
    assert ax.get_xlabel() == "onramp.threshold (us)"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0.1", "0.2"]
    assert list(ax.lines[0].get_xdata()) == [30, 60]
    with_off = onramp.simulate(scenario.set({"onramp.threshold": ["30 us", "off"], "onramp.law": "final"}))
    ax = onramp.plot.metric(with_off, "incast.rct_us.p99", "onramp.threshold")
    assert [line.get_linestyle() for line in ax.lines].count("--") == 1
    with pytest.raises(KeyError, match="do not differ in host.cc"):
        onramp.plot.metric(swept, "incast.rct_us.p99", "host.cc")


def test_a_heat_map_has_a_field_a_pair(swept: onramp.Results) -> None:
    ax = onramp.plot.heat_map(swept, "incast.rct_us.p99", "onramp.threshold", "traffic.1.load")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["30 us", "60 us"]
    assert len(ax.texts) == 4


def test_a_series_is_drawn_with_marks(results: onramp.Results) -> None:
    place = "switch0-host0"
    ax = onramp.plot.time_series(results, "queue_us", place=place, marks={"T": 40})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["law=off", "law=final", "T"]
    with pytest.raises(KeyError, match="there is no series queue;"):
        onramp.plot.time_series(results, "queue")
