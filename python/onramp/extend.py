# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Algorithms of one's own, in the simulator: a congestion control of TCP or of NICs, or a control law of On-Ramp.

A subclass with a name is known to scenarios at once. To define it again, as notebooks do, replaces it. Each event of each
flow calls Python, so simulations take some ten times longer than with the built-in algorithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onramp import _onramp

if TYPE_CHECKING:
    from onramp._onramp import Ack, Departure, Flow, Head, NicPath, RateAck, Sample, Window


class CongestionControl:
    """A congestion control of one TCP connection: `host.cc` of scenarios.

        class Aimd(onramp.CongestionControl, name="aimd"):
            def on_ack(self, window, ack):
                if ack.may_grow:
                    window.packets += 1

            def on_loss(self, window):
                return max(window.packets // 2, 2)

    Windows are in packets of 1448 B. `marks=True`: the connection negotiates ECN, so that switches mark its packets.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, name: str | None = None, marks: bool = False, **more: Any) -> None:
        super().__init_subclass__(**more)
        if name is not None:
            cls.name = name
            _onramp.register_congestion_control(name, _about(cls), marks, cls)

    def begin(self, window: Window) -> None:
        """The connection begins with this window, which may be changed."""

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Packets have been delivered: sets `window.packets` and `window.slow_start_below`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_ack")

    def on_loss(self, window: Window) -> int:
        """Packets are lost: returns the new slow-start threshold in packets, at least 1."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_loss")

    def on_timeout(self) -> None:
        """A retransmission timeout has passed; the window is one packet."""

    def on_idle(self, idle_ns: float) -> None:
        """Nothing was sent for so long, in ns."""

    def pacing_rate_pps(self, smoothed_rtt_ns: float) -> float | None:
        """Its own pacing rate in packets per second; None: TCP's."""
        return None


class RateControl:
    """A congestion control of one flow of a NIC: `host.cc` of scenarios with `host.kind` nic.

        class Halve(onramp.RateControl, name="halve"):
            def on_ack(self, ack):
                change = 0.5 if ack.marked else 1.01
                self.rate_bps = min(self.rate_bps * change, self.path.line_rate_bps)

    `time_stamps=True`: packets carry their time, which takes some bytes. `marks`: how switches mark, if the scenario does not say
    it: "red" as for DCQCN, or "step" as for DCTCP.
    """

    name: ClassVar[str]

    #: Pacing rate in bits per second, at least 1. A flow begins at its line's.
    rate_bps: float
    #: Payload that may be unacknowledged, in bytes; None: any.
    window_bytes: int | None

    def __init__(self, path: NicPath) -> None:
        self.path = path
        self.rate_bps = path.line_rate_bps
        self.window_bytes = None

    def __init_subclass__(
        cls, name: str | None = None, time_stamps: bool = False, marks: Literal["red", "step"] = "red", **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        if name is not None:
            if marks not in ("red", "step"):
                raise ValueError(f'marks is {marks!r}, expected "red" or "step"')
            cls.name = name
            _onramp.register_rate_control(name, _about(cls), (time_stamps, marks == "step"), cls)

    def on_ack(self, ack: RateAck) -> None:
        """A packet has been acknowledged: sets `rate_bps` and `window_bytes`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_ack")


class ControlLaw:
    """A control law of On-Ramp for one flow: `onramp.law` of scenarios. `flow` has what is known before anything is sent.

        class Strawman(onramp.ControlLaw, name="mine"):
            def on_sample(self, sample):
                over_ns = sample.owd_ns - self.flow.threshold_ns
                if over_ns > 0:
                    self.until_ns = sample.now_ns + min(over_ns, self.flow.max_pause_ns)

            until_ns = 0

            def hold_until(self, head):
                return self.until_ns if self.until_ns > head.now_ns else None

    Times are in whole nanoseconds of the sender's clock.
    """

    name: ClassVar[str]

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def __init_subclass__(cls, name: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if name is not None:
            cls.name = name
            _onramp.register_law(name, _about(cls), cls)

    def on_sample(self, sample: Sample) -> None:
        """An OR-ACK has brought a one-way delay."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_sample")

    def on_departure(self, departure: Departure) -> None:
        """A segment leaves, after `hold_until` has let it go."""

    def hold_until(self, head: Head) -> int | None:
        """Whether the head of the flow's queue waits. None: it may go. Otherwise the time of the next decision, in ns: after
        `head.now_ns`, and at most `head.max_pause_ns` after it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method hold_until")


def _about(cls: type) -> str:
    lines = (cls.__doc__ or "written in Python").strip().splitlines()
    return lines[0].rstrip(".")
