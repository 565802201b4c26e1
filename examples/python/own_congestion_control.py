# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A congestion control of one's own beside CUBIC: half a packet a round trip more, a fifth less at a loss."""

import onramp


class Gentle(onramp.CongestionControl, name="gentle"):
    """Additive increase by half a packet, multiplicative decrease by a fifth."""

    def __init__(self):
        self.acknowledged = 0

    def on_ack(self, window, ack):
        if not ack.may_grow:
            return
        if window.packets < window.slow_start_below:
            window.packets += ack.packets
            return
        self.acknowledged += ack.packets
        if self.acknowledged >= 2 * window.packets:
            self.acknowledged = 0
            window.packets += 1

    def on_loss(self, window):
        return max(window.packets * 4 // 5, 2)


scenario = onramp.Scenario(
    title="Four long flows",
    duration="30 ms",
    warmup="10 ms",
    network={
        "topology": {"kind": "star", "hosts": 5},
        "link": {"rate": "10 Gbit/s", "delay": "10 us"},
        "buffer": "100 kB",
    },
    onramp={"law": "off"},
    traffic=[{"kind": "long", "flows": 4}],
    sweep={"host.cc": ["cubic", "gentle"]},
)
print(onramp.simulate(scenario, seeds=3))
