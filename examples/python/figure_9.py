# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The request completion times of figure 9 of the On-Ramp paper, for a shorter time and three seeds: figure_9.png."""

import matplotlib.pyplot as plt
import onramp
import onramp.plot

scenario = onramp.Scenario.load("scenarios/paper/f9.toml").set({"duration": "0.25 s"})
results = onramp.simulate(scenario, seeds=3)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
onramp.plot.bars(results, "incast.rct_us.mean", ax=axes[0])
onramp.plot.cdf(results, "rct_ns", ax=axes[1])
figure.savefig("figure_9.png", dpi=120)
print(results.compare({"case": "off"}, ["incast.rct_us.mean", "incast.rct_us.p99"]))
