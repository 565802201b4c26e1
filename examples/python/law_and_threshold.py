# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which law, and which threshold? 8-to-1 incast beside two long flows: law_and_threshold.png."""

import onramp
import onramp.plot

scenario = onramp.Scenario(
    title="Eight to one beside two long flows",
    duration="60 ms",
    warmup="5 ms",
    network={
        "topology": {"kind": "star", "hosts": 11},
        "link": {"rate": "10 Gbit/s", "delay": "1 us"},
        "buffer": "600 kB",
    },
    traffic=[
        {"kind": "long", "flows": 2},
        {"kind": "incast", "fanout": 8, "size": "32 kB", "load": "10 %"},
    ],
    sweep={
        "onramp.law": ["off", "final", "gate", "level"],
        "onramp.threshold": ["30 us", "60 us", "120 us"],
    },
)
results = onramp.simulate(scenario, seeds=5)
ax = onramp.plot.metric(results, "incast.rct_us.p90", "onramp.threshold", by="onramp.law")
ax.set_yscale("log")
ax.figure.savefig("law_and_threshold.png", dpi=120)
for estimate in sorted(results.metric("incast.rct_us.p90"), key=lambda one: one.mean):
    print(f"{estimate.case:34} {estimate.mean:9.0f} us ± {estimate.half:.0f}")
