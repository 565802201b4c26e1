# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import pickle
from pathlib import Path

import onramp
import pytest


def test_tables_and_text_are_the_same_scenario(scenario: onramp.Scenario) -> None:
    built = onramp.Scenario(
        title="Eight to one",
        duration="4 ms",
        warmup="1 ms",
        network={
            "topology": {"kind": "star", "hosts": 9},
            "link": {"rate": "10 Gbit/s", "delay": "1 us"},
            "buffer": "150 kB",
            "ecn": {"threshold": "65 kB"},
        },
        onramp={"threshold": "40 us"},
        traffic=[
            {"kind": "long", "flows": 2},
            {"kind": "incast", "fanout": 8, "size": "16 kB", "load": "20 %"},
        ],
        sweep={"onramp.law": ["off", "final"]},
    )
    assert built.resolved == scenario.resolved
    assert repr(built) == "<Scenario 'Eight to one': 2 runs>"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"onramp.threshold": "40"}, "onramp.threshold"),
        ({"onramp.treshold": "40 us"}, "did you mean"),
        ({"traffic.1.fanout": 0}, "traffic.1.fanout is 0, below min 1"),
        ({"host.cc": "quick"}, "host.cc"),
        ({"duration": "0 s"}, "below min 1 us"),
    ],
)
def test_errors_name_key_value_and_bound(
    scenario: onramp.Scenario, keys: dict[str, str | int], words: str
) -> None:
    with pytest.raises(onramp.ScenarioError) as error:
        scenario.set(keys)
    assert words in str(error.value)
    assert isinstance(error.value, ValueError)


def test_all_errors_of_tables_are_told_together() -> None:
    with pytest.raises(onramp.ScenarioError) as error:
        onramp.Scenario(
            title="t",
            duration="4",
            network={
                "topology": {"kind": "star", "hosts": 1},
                "link": {"rate": "10 Gbit/s", "delay": "1 us"},
            },
            traffic=[{"kind": "long"}],
        )
    assert "duration" in str(error.value)
    assert "network.topology.hosts is 1, below min 2" in str(error.value)


def test_set_replaces_keys_and_lists_are_swept(scenario: onramp.Scenario) -> None:
    gate = scenario.set({"onramp.law": "gate", "seed": [1, 2]})
    assert [run["seed"] for run in gate.runs] == ["1", "2"]
    assert {run["onramp"]["law"] for run in gate.resolved} == {"gate"}
    assert gate.set({"seed": 9}).runs == [{}]
    assert len(scenario) == 2, "the scenario itself is as it was"


def test_files_are_sought_beside_the_scenario(tmp_path: Path, scenario: onramp.Scenario) -> None:
    (tmp_path / "flows.csv").write_text("start_ns,src,dst,size_bytes\n0,1,0,1000\n")
    text = scenario.text.split("[[traffic]]")[0] + '[[traffic]]\nkind = "replay"\npath = "flows.csv"\n'
    (tmp_path / "replay.toml").write_text(text)
    assert len(onramp.Scenario.load(tmp_path / "replay.toml")) == 1
    with pytest.raises(onramp.ScenarioError, match=r"flows\.csv"):
        onramp.Scenario.parse(text)
    with pytest.raises(FileNotFoundError):
        onramp.Scenario.load(tmp_path / "none.toml")


def test_a_scenario_travels_to_another_process(scenario: onramp.Scenario) -> None:
    law = scenario.set({"onramp.law": "gate"})
    assert pickle.loads(pickle.dumps(law)).resolved == law.resolved


def test_remarks_say_before_a_run_what_the_plan_shows(scenario: onramp.Scenario) -> None:
    assert any("fewer than 30" in remark for remark in scenario.remarks)
    periodic = scenario.set({"duration": "60 ms", "traffic.1.arrivals": "periodic", "network.buffer": "1 MB"})
    assert periodic.remarks == []
