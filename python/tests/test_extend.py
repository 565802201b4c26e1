# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
from typing import TYPE_CHECKING

import onramp
import pytest

if TYPE_CHECKING:
    from onramp._onramp import Ack, Flow, Head, NicPath, RateAck, Sample, Window


class Dctcp(onramp.CongestionControl, name="python_dctcp", marks=True):
    """DCTCP (RFC 8257), with the arithmetic of the simulator's own."""

    def __init__(self) -> None:
        self.alpha = 1.0
        self.delivered = self.marked = self.window_end = self.grown = 0
        self.reduced_until: int | None = None

    def on_ack(self, window: "Window", ack: "Ack") -> None:
        self.delivered += ack.packets
        self.marked += ack.marked
        if ack.cumulative > self.window_end:
            part = min(self.marked / max(self.delivered, 1), 1.0)
            self.alpha = (1.0 - 1.0 / 16.0) * self.alpha + 1.0 / 16.0 * part
            self.delivered = self.marked = 0
            self.window_end = ack.next
        if self.reduced_until is not None and ack.cumulative > self.reduced_until:
            self.reduced_until = None
        if ack.marked and self.reduced_until is None:
            window.packets = max(int(window.packets * (1.0 - self.alpha / 2.0)), 2)
            window.slow_start_below = window.packets
            self.reduced_until = ack.next
        if self.reduced_until is None and ack.may_grow:
            self.grow(window, ack.packets)

    def grow(self, window: "Window", acked: int) -> None:
        """Slow start, then a packet in each window."""
        if window.packets < window.slow_start_below:
            to = min(window.packets + acked, window.slow_start_below)
            acked -= to - window.packets
            window.packets = to
        grown, self.grown = divmod(self.grown + acked, window.packets)
        window.packets += grown

    def on_loss(self, window: "Window") -> int:
        return max(window.packets // 2, 2)


class NicDctcp(onramp.RateControl, name="python_nic_dctcp", marks="step"):
    """DCTCP on a rate, with the arithmetic of the simulator's own."""

    def __init__(self, path: "NicPath") -> None:
        super().__init__(path)
        self.alpha = 1.0
        self.marked = self.packets = self.window_end = 0
        self.reduced_until: int | None = None
        self.limit()

    def limit(self) -> None:
        self.window_bytes = max(self.path.bdp_bytes * int(self.rate_bps) // self.path.line_rate_bps, 1)

    def end_window(self, ack: "RateAck") -> None:
        if self.window_end == 0:
            self.packets = ack.next // self.path.payload_bytes + 1
        else:
            marked = min(self.marked / self.packets, 1.0)
            self.alpha = (1.0 - 0.0625) * self.alpha + 0.0625 * marked
            self.marked = 0
            self.packets = max(ack.next - ack.acked, 0) // self.path.payload_bytes + 1
        self.window_end = ack.next

    def on_ack(self, ack: "RateAck") -> None:
        self.marked += ack.marked
        new_window = ack.acked > self.window_end
        if new_window:
            self.end_window(ack)
        if self.reduced_until is not None and ack.acked > self.reduced_until:
            self.reduced_until = None
        if ack.marked and self.reduced_until is None:
            least = int(self.path.line_rate_bps * 0.01)
            self.rate_bps = max(int(self.rate_bps * (1.0 - self.alpha / 2.0)), least)
            self.reduced_until = ack.next
        if new_window and self.reduced_until is None:
            self.rate_bps = min(self.rate_bps + 615_000_000, self.path.line_rate_bps)
        self.limit()


class Strawman(onramp.ControlLaw, name="python_strawman"):
    """On-Ramp's strawman (eq. 2)."""

    def __init__(self, flow: "Flow") -> None:
        super().__init__(flow)
        self.until_ns = 0

    def on_sample(self, sample: "Sample") -> None:
        pause_ns = min(sample.owd_ns - self.flow.threshold_ns, self.flow.max_pause_ns)
        if pause_ns > 0:
            self.until_ns = sample.now_ns + pause_ns

    def hold_until(self, head: "Head") -> int | None:
        return self.until_ns if self.until_ns > head.now_ns else None


def test_dctcp_in_python_completes_flows_when_the_simulators_does(scenario: onramp.Scenario) -> None:
    times = [
        onramp.simulate(scenario.set({"onramp.law": "off", "host.cc": cc})).flows["fct_ns"].to_pylist()
        for cc in ("dctcp", "python_dctcp")
    ]
    assert len(times[0]) > 40
    assert times[0] == times[1]


def nic_incast(cc: str) -> onramp.Scenario:
    return onramp.Scenario(
        title="Eight to one",
        duration="400 us",
        network={
            "topology": {"kind": "star", "hosts": 9},
            "link": {"rate": "100 Gbit/s", "delay": "1 us"},
        },
        host={"kind": "nic", "cc": cc},
        onramp={"law": "off"},
        traffic=[{"kind": "incast", "fanout": 8, "size": "500 kB", "interval": "100 us", "arrivals": "periodic"}],
    )


def test_dctcp_of_nics_in_python_completes_flows_when_the_simulators_does() -> None:
    times = [onramp.simulate(nic_incast(cc)).flows["fct_ns"].to_pylist() for cc in ("dctcp", "python_nic_dctcp")]
    assert len(times[0]) >= 24
    assert times[0] == times[1]


def test_a_rate_control_that_fails_or_answers_nonsense_ends_the_run() -> None:
    class Nothing(onramp.RateControl, name="python_nothing"):
        def on_ack(self, ack: "RateAck") -> None:
            self.rate_bps = 0

    class Raises(onramp.RateControl, name="python_raises", time_stamps=True):
        def on_ack(self, ack: "RateAck") -> None:
            raise LookupError(f"rtt {ack.rtt_ns > 0}")

    with pytest.raises(onramp.PartError, match="rate_bps is 0, expected at least 1"):
        onramp.simulate(nic_incast("python_nothing"))
    with pytest.raises(onramp.PartError, match="on_ack raised LookupError: rtt True"):
        onramp.simulate(nic_incast("python_raises"))
    with pytest.raises(ValueError, match="there is a congestion control hpcc"):
        type("Mine", (onramp.RateControl,), {}, name="hpcc")
    with pytest.raises(ValueError, match="other options"):
        type("Mine", (onramp.RateControl,), {}, name="python_raises")
    with pytest.raises(ValueError, match="expected \"red\" or \"step\""):
        type("Mine", (onramp.RateControl,), {}, name="python_curve", marks="curve")


def test_the_strawman_in_python_holds_as_the_simulators_does(scenario: onramp.Scenario) -> None:
    held = [
        onramp.simulate(scenario.set({"onramp.law": law})).flows["held_ns"].to_pylist()
        for law in ("strawman", "python_strawman")
    ]
    assert sum(held[0]) > 0
    assert held[0] == held[1]


def test_an_exception_ends_the_run_and_is_the_cause(scenario: onramp.Scenario) -> None:
    class Broken(onramp.CongestionControl, name="python_broken"):
        def on_ack(self, window: "Window", ack: "Ack") -> None:
            raise LookupError(f"packet {ack.next}")

    with pytest.raises(onramp.PartError, match=r"on_ack raised LookupError: packet \d+, at .* of simulated") as error:
        onramp.simulate(scenario.set({"host.cc": "python_broken", "onramp.law": "off"}))
    assert isinstance(error.value.__cause__, LookupError)
    assert error.value.results.partial

    class Mended(onramp.CongestionControl, name="python_broken"):
        def on_ack(self, window: "Window", ack: "Ack") -> None:
            window.packets = 20

        def on_loss(self, window: "Window") -> int:
            return 20

    results = onramp.simulate(scenario.set({"host.cc": "python_broken", "onramp.law": "off"}))
    assert not results.partial, "a class of the same name takes the place of the first"


@pytest.mark.parametrize("packets", [0, -1, 1.5])
def test_an_impossible_window_ends_the_run(scenario: onramp.Scenario, packets: float) -> None:
    class Impossible(onramp.CongestionControl, name="python_impossible"):
        def on_ack(self, window: "Window", ack: "Ack") -> None:
            window.packets = packets  # type: ignore[assignment]

    with pytest.raises(onramp.PartError, match="on_ack"):
        onramp.simulate(scenario.set({"host.cc": "python_impossible", "onramp.law": "off"}))


def test_a_class_that_cannot_start_or_lacks_a_method_says_so(scenario: onramp.Scenario) -> None:
    class NoMethods(onramp.CongestionControl, name="python_lacks"):
        pass

    class NoStart(onramp.ControlLaw, name="python_no_start"):
        def __init__(self) -> None:  # A law gets its flow.
            pass

    with pytest.raises(onramp.PartError, match="NoMethods needs a method on_ack"):
        onramp.simulate(scenario.set({"host.cc": "python_lacks", "onramp.law": "off"}))
    with pytest.raises(onramp.PartError, match=r"NoStart.__init__\(\) takes"):
        onramp.simulate(scenario.set({"onramp.law": "python_no_start"}))


def test_names_that_are_taken_are_refused() -> None:
    with pytest.raises(ValueError, match="there is a congestion control cubic"):
        type("Mine", (onramp.CongestionControl,), {}, name="cubic")
    with pytest.raises(ValueError, match="there is a control law gate"):
        type("Mine", (onramp.ControlLaw,), {}, name="gate")
    with pytest.raises(ValueError, match="python_dctcp was registered with marks=true"):
        type("Mine", (onramp.CongestionControl,), {}, name="python_dctcp", marks=False)


def test_errors_list_the_congestion_controls_of_ones_own(scenario: onramp.Scenario) -> None:
    with pytest.raises(onramp.ScenarioError, match="python_dctcp"):
        scenario.set({"host.cc": "quick"})
