# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import json
from pathlib import Path

import onramp
import pytest


def test_a_metric_has_its_mean_and_interval_by_case(results: onramp.Results) -> None:
    off, final = results.metric("incast.rct_us.p99")
    assert (off.case, final.case) == ("law=off", "law=final")
    assert off.n == 3 and off.interval is not None and off.mean is not None
    assert off.interval[0] < off.mean < off.interval[1]
    assert off.mean == pytest.approx(sum(value or 0 for value in off.values) / 3)
    with pytest.raises(KeyError, match=r"incast\.rct_us\.p99"):
        results.metric("incast.rct_us.p98")


def test_metrics_are_a_table_with_a_row_a_run(results: onramp.Results) -> None:
    table = results.metrics
    assert len(table) == 6
    assert table["param_onramp_law"].to_pylist() == ["off"] * 3 + ["final"] * 3
    assert table["incast.rct_us.p99"].to_pylist()[:3] == list(results.metric("incast.rct_us.p99")[0].values)


def test_tables_go_into_the_usual_libraries(results: onramp.Results) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(results.requests)
    by_law = frame.filter(pl.col("measured")).group_by("param_onramp_law").agg(pl.col("rct_ns").mean())
    assert set(by_law["param_onramp_law"]) == {"off", "final"}
    assert len(results.requests.to_pandas()) == len(frame)


def test_what_is_saved_is_loaded_again(results: onramp.Results, tmp_path: Path) -> None:
    results.save(tmp_path / "out")
    loaded = onramp.load(tmp_path / "out")
    assert loaded.summary == results.summary
    for name in ("flows", "requests", "series"):
        ours = getattr(results, name)
        assert getattr(loaded, name).cast(ours.schema).equals(ours), name
    assert str(loaded) == str(results)
    with pytest.raises(FileExistsError, match="is not empty"):
        results.save(tmp_path / "out")
    with pytest.raises(onramp.ResultsError, match="were loaded"):
        loaded.save(tmp_path / "again")
    with pytest.raises(FileNotFoundError, match=rf"there are results in {tmp_path}/out"):
        onramp.load(tmp_path)


def test_results_of_another_version_are_refused(results: onramp.Results, tmp_path: Path) -> None:
    results.save(tmp_path / "out")
    file = tmp_path / "out/summary.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 4}))
    with pytest.raises(onramp.ResultsError, match="its schema is 4, expected"):
        onramp.load(tmp_path / "out")


def test_comparisons_are_those_of_the_command(results: onramp.Results, tmp_path: Path) -> None:
    (one,) = results.compare({"onramp.law": "off"}, "incast.rct_us.p99")
    off, final = results.metric("incast.rct_us.p99")
    assert off.mean is not None and final.mean is not None
    assert (one.case, one.pairs) == ("law=final", 3)
    assert one.difference == pytest.approx(final.mean - off.mean)
    assert "beyond noise" in str(results.compare({"onramp.law": "off"}))
    with pytest.raises(onramp.ResultsError, match="no run has onramp.law=gate"):
        results.compare({"onramp.law": "gate"})
    same = onramp.compare({"old": results, "new": results}, {"dir": "old"}, "drops")
    assert [pair.difference for pair in same] == [0.0, 0.0]


def test_the_page_has_the_results(results: onramp.Results, tmp_path: Path) -> None:
    page = results.report(tmp_path / "report.html")
    assert "Eight to one" in page.read_text()
    results.save(tmp_path / "out")
    assert onramp.report(tmp_path / "out", out=tmp_path / "other.html").is_file()
    with pytest.raises(onramp.ResultsError, match=r"summary\.json"):
        onramp.report(tmp_path, out=tmp_path / "third.html")


def test_notebooks_show_a_table(results: onramp.Results) -> None:
    text = results._repr_html_()
    assert text.count("<tr>") == 3 and "<th>law=final</th>" in text and "RCT us" in text
    assert repr(results) == "<Results of 'Eight to one': 6 of 6 runs, sim>"
