# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Sweeps by threads, by a real Ray cluster that loses a node, and with results in a real S3 server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import onramp
import pytest
from onramp import _onramp, _ray

SAMPLE = {
    "method": "sobol",
    "points": 20,
    "keys": {
        "onramp.threshold": {"from": "20 us", "to": "80 us", "scale": "log"},
        "traffic.1.fanout": {"from": 2, "to": 8},
    },
}
FILES = ("data/part-00000.parquet", "sweep.json")


@pytest.fixture(scope="module")
def sweep(scenario: onramp.Scenario) -> onramp.Sweep:
    short = scenario.set({"duration": "2 ms", "onramp.law": "final"})
    return onramp.Sweep(short, seeds=[1, 2], sample=SAMPLE)


@pytest.fixture(scope="module")
def whole(sweep: onramp.Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results that one machine made at once."""
    out = tmp_path_factory.mktemp("whole") / "out"
    onramp.sweep(sweep, out)
    return out


def contents(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in FILES]


def test_the_data_set_has_a_row_for_each_run(sweep: onramp.Sweep, whole: Path) -> None:
    results = onramp.load_sweep(whole)
    assert (len(sweep), results.points, results.made, results.partial, results.failed) == (20, 20, 20, False, 0)
    table = results.table()
    assert table.num_rows == 40
    rows = table.to_pylist()
    assert [row["point"] for row in rows] == [point for point in range(20) for _ in range(2)]
    assert [row["param_seed"] for row in rows[:4]] == [1, 2, 1, 2]
    settings = sweep.point(3)
    assert rows[6]["param_onramp_threshold"] == settings["onramp.threshold"]
    assert 20_000 <= rows[6]["param_onramp_threshold_ns"] <= 80_000
    assert rows[6]["param_traffic_1_fanout"] == int(settings["traffic.1.fanout"])
    assert all(row["long.goodput_gbps.sum"] > 1 and row["error"] is None for row in rows)
    assert results.table(["point", "drops"]).column_names == ["point", "drops"]
    with pytest.raises(IndexError, match="point 20 of 20"):
        sweep.point(20)


def test_the_command_makes_the_same_bytes(scenario: onramp.Scenario, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(scenario.text)
    file, ours, its = tmp_path / "sweep.toml", tmp_path / "ours", tmp_path / "its"
    file.write_text('scenario = "scenario.toml"\n[grid]\nduration = ["2 ms"]\n"onramp.threshold" = ["30 us", "none"]\n')
    results = onramp.sweep(file, ours)
    assert (results.failed, results.failures[0]["point"]) == (1, 1)
    assert results.failures[0]["error"].startswith('onramp.threshold is "none"')
    command = [os.environ["ONRAMP"], "sweep", file, "--out", its]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    assert contents(ours) == contents(its)
    # The one goes on where the other was.
    (its / "runs/points-1.json").unlink()
    onramp.sweep(file, its)
    assert contents(ours) == contents(its)


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """A shell starts programs in the background with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_the_parts_that_were_made(sweep: onramp.Sweep, whole: Path, tmp_path: Path) -> None:
    def interrupt(done: float, line: str) -> None:
        signal.raise_signal(signal.SIGINT)

    out = tmp_path / "out"
    with pytest.raises(onramp.SweepInterrupted, match="of 20 points are made") as error:
        onramp.sweep(sweep, out, threads=1, progress=interrupt)
    results = error.value.results
    assert results.partial and 1 <= results.made < 20
    onramp.sweep(sweep, out, threads=3)
    assert contents(out) == contents(whole)


def test_other_results_are_not_mixed_in(sweep: onramp.Sweep, scenario: onramp.Scenario, whole: Path) -> None:
    before = contents(whole)
    other = onramp.Sweep(scenario, grid={"duration": ["3 ms"]})
    with pytest.raises(onramp.ResultsError, match="has results of another scenario, seed or options"):
        onramp.sweep(other, whole)
    assert contents(whole) == before


def test_mistakes_name_key_and_value(scenario: onramp.Scenario, sweep: onramp.Sweep, tmp_path: Path) -> None:
    with pytest.raises(onramp.ScenarioError, match="seed cannot vary between points"):
        onramp.Sweep(scenario, grid={"seed": [1, 2]})
    with pytest.raises(onramp.ScenarioError, match="onramp.threshold goes from 9 us to 1 us, expected a higher end"):
        keys = {"onramp.threshold": {"from": "9 us", "to": "1 us"}}
        onramp.Sweep(scenario, sample={"method": "random", "points": 1, "keys": keys})
    with pytest.raises(ValueError, match="engine is 'slurm', expected 'threads' or 'ray'"):
        onramp.sweep(sweep, tmp_path / "out", engine="slurm")  # type: ignore[arg-type]


@pytest.fixture
def patient_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes nodes slow, not dead. One that has ended is known by its closed port."""
    monkeypatch.setenv("RAY_health_check_timeout_ms", "120000")
    for name in ("RAY_raylet_start_wait_time_s", "RAY_worker_register_timeout_seconds"):
        monkeypatch.setenv(name, "600")


@pytest.mark.usefixtures("patient_ray")
def test_a_ray_cluster_that_loses_a_node_makes_the_same_bytes(
    sweep: onramp.Sweep, whole: Path, tmp_path: Path
) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    _, node = (cluster.add_node(wait=False, num_cpus=1) for _ in range(2))
    lost: list[float] = []
    out = tmp_path / "out"

    def lose(done: float, line: str) -> None:
        if not lost and done > 0.2:
            lost.append(done)
            cluster.remove_node(node, allow_graceful=False)
            until_alive(1)

    def until_alive(number: int) -> None:
        while sum(one["Alive"] for one in ray.nodes()) != number:
            time.sleep(0.05)  # machine: until the cluster says so

    ray.init(address=cluster.address, log_to_driver=False)
    try:
        until_alive(2)
        results = onramp.sweep(sweep, out, engine="ray", progress=lose)
        assert lost
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert (results.made, results.failed) == (20, 0)
    assert contents(out) == contents(whole)


def test_a_node_with_another_version_or_no_ray_is_named(
    sweep: onramp.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(onramp.ResultsError, match=f"has onramp {onramp.__version__}, this program has 0.0.0"):
        _ray._make("0.0.0", ("", "", {}), 0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'onramp\[ray\]'"):
        onramp.sweep(sweep, tmp_path / "out", engine="ray")


def check_url(sweep: onramp.Sweep, whole: Path, place: str) -> None:
    onramp.sweep(sweep, place)
    files, root = fsspec.core.url_to_fs(place)
    assert [files.cat_file(f"{root}/{name}") for name in FILES] == contents(whole)
    # Another machine goes on with what is there.
    files.rm_file(f"{root}/runs/points-7.json")
    made: list[str] = []
    onramp.sweep(sweep, place, progress=lambda done, line: made.append(line))
    assert len(made) == 1 and made[0].startswith("20 of 20 parts done")
    assert onramp.load_sweep(place).table().equals(onramp.load_sweep(whole).table())


def test_results_may_lie_at_a_url(sweep: onramp.Sweep, whole: Path) -> None:
    check_url(sweep, whole, "memory://sweeps/threshold")


def test_results_may_lie_in_s3(sweep: onramp.Sweep, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ONRAMP_S3=1 tools/wheel-test` installs the server."""
    server_of = pytest.importorskip("moto.server").ThreadedMotoServer
    s3fs = pytest.importorskip("s3fs")
    server = server_of(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("sweeps")
        check_url(sweep, whole, "s3://sweeps/threshold")
    finally:
        server.stop()


def test_the_native_part_can_be_stopped(sweep: onramp.Sweep) -> None:
    stop = _onramp.Stop()
    stop.set()
    assert sweep._native.make(0, 1, stop) is None


@pytest.mark.usefixtures("patient_ray")
def test_the_command_gives_a_sweep_to_ray(scenario: onramp.Scenario, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    (tmp_path / "scenario.toml").write_text(scenario.text)
    file, ours, its = tmp_path / "sweep.toml", tmp_path / "ours", tmp_path / "its"
    file.write_text('scenario = "scenario.toml"\n[grid]\nduration = ["2 ms"]\n"onramp.threshold" = ["30 us", "none"]\n')
    onramp.sweep(file, ours)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [os.environ["ONRAMP"], "sweep", file, "--engine", "ray", "--out", its]
    done = subprocess.run(command, capture_output=True, check=False, text=True, env={**os.environ, "PATH": path})
    assert done.returncode == 1, done.stderr
    assert "sweep.toml: 2 of 2 points, 3 runs\npoint 1 failed: onramp.threshold is" in done.stdout, done.stdout
    assert contents(ours) == contents(its)
