# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What several tests use: a small scenario and its results."""

import matplotlib

matplotlib.use("Agg")

import onramp
import pytest

INCAST = """title = "Eight to one"
duration = "4 ms"
warmup = "1 ms"
[network]
topology = { kind = "star", hosts = 9 }
link = { rate = "10 Gbit/s", delay = "1 us" }
buffer = "150 kB"
ecn = { threshold = "65 kB" }
[onramp]
threshold = "40 us"
[[traffic]]
kind = "long"
flows = 2
[[traffic]]
kind = "incast"
fanout = 8
size = "16 kB"
load = "20 %"
[sweep]
"onramp.law" = ["off", "final"]
"""


@pytest.fixture(scope="session")
def scenario() -> onramp.Scenario:
    return onramp.Scenario.parse(INCAST)


@pytest.fixture(scope="session")
def results(scenario: onramp.Scenario) -> onramp.Results:
    return onramp.simulate(scenario, seeds=3)
