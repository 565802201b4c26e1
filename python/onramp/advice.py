# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Would On-Ramp help a network whose traffic is known? The traffic comes from flow logs or captures."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from onramp import _onramp
from onramp.results import Results
from onramp.scenario import Scenario
from onramp.simulation import Progress, simulate

_File = str | PathLike[str]

#: Folders of the scenarios of answers, which name lists of flows there. They are removed when the program ends.
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@dataclass(frozen=True)
class Effect:
    """The 99th percentile of flow completion times with On-Ramp, as a ratio to that without: 0.6 is 40 % less."""

    #: The buffer of the switch that was assumed.
    buffer: str
    #: The ratio over the windows; None: no flow ended.
    ratio: float | None
    #: Its 95 % confidence interval over the windows; None for fewer than two.
    interval: tuple[float, float] | None


class Answer:
    """Whether On-Ramp would help, by how much, and how sure that is. `print` shows it in words."""

    def __init__(self, question: _onramp.Question, answer: _onramp.Answer, buffer: str, results: Results, scenario: Scenario) -> None:
        self._question, self._answer, self._buffer = question, answer, buffer
        #: The runs: each setting and none, in each window.
        self.results = results
        #: The scenario that replays the busiest windows.
        self.scenario = scenario

    @property
    def helps(self) -> bool:
        """Whether a setting is recommended: its gain is sure at 95 % and at least 5 %, it costs at most 2 % of the throughput, and
        no more flows are unfinished."""
        return self._answer.recommends() is not None

    @property
    def verdict(self) -> str:
        """In a line."""
        return self._answer.verdict()

    @property
    def setting(self) -> str:
        """The best setting: law, headroom of the threshold, and whether it paces."""
        return self._answer.best()

    @property
    def effect(self) -> Effect:
        """The effect of the best setting, measured in the windows that were not used to choose it."""
        return _effect(self._buffer, self._answer.p99())

    @property
    def other_buffers(self) -> list[Effect]:
        """The effect of the same setting with a smaller and a larger buffer, measured in all windows."""
        return [_effect(buffer, change) for buffer, change in self._answer.doubts()]

    @property
    def limits(self) -> list[str]:
        """The assumptions of the answer, and what the record does not contain."""
        return self._question.limits()

    def report(self, out: _File = "advice.html") -> Path:
        """Writes the answer as one HTML page that works offline. Returns its path."""
        page = self._question.page(self._answer, self.results._text)
        path = Path(out)
        path.write_text(page, encoding="utf-8")
        return path

    def __str__(self) -> str:
        return self._question.text(self._answer)

    def __repr__(self) -> str:
        return f"<Answer: {self.verdict}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def would_help(
    *files: _File,
    rate: str | None = None,
    delay: str | None = None,
    buffer: str = "1 MB",
    cc: str = "cubic",
    qdisc: str = "fq",
    window: str = "200 ms",
    one_clock: bool = False,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Answer:
    """Would On-Ramp help a network with this traffic? Its busiest windows are simulated with and without On-Ramp. A setting
    is chosen in half of them and judged in the other half, then tried with a smaller and a larger buffer.

    Args:
        files: Records of the traffic, of one kind: Zeek's conn.log (with a head, or JSON), NetFlow or IPFIX as CSV (nfdump,
            SiLK, IPFIX's names), captures of tcpdump (pcap or pcapng), or traces of On-Ramp's daemon. Those of all senders:
            an incast with a sender that is not recorded is missing.
        rate: Rate of the hosts' links. Without it that of the traces, or 10 Gbit/s.
        delay: One-way delay of an idle path. Without it the least of traces or of a capture's handshakes, or 10 us.
        buffer: Buffer of a switch port.
        cc: Congestion control of the hosts.
        qdisc: Their queueing discipline without On-Ramp, "fq" or "fq_codel".
        window: Longest part of the record that one run replays.
        one_clock: The hosts of several traces share one kernel.
        threads, progress: As of `simulate`.

    Raises:
        ValueError: a file is no record of traffic, is cut or contradicts itself, or has flows in fewer than four windows.
        ScenarioError, Interrupted: as of `simulate`.
    """
    question = _onramp.Question([Path(file) for file in files], (rate, delay, buffer, window), cc, qdisc, one_clock)
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="onramp-"))
    folder = Path(_FOLDERS[-1].name)
    scenario = _load(folder, question.files())
    results = simulate(scenario, threads=threads, progress=progress)
    doubts = _load(folder, [question.doubts(results._text)])
    doubted = simulate(doubts, threads=threads, progress=progress)
    answer = question.answer(results._text, doubted._text)
    return Answer(question, answer, buffer, results, scenario)


def _effect(buffer: str, change: tuple[float, list[float] | None] | None) -> Effect:
    if change is None:
        return Effect(buffer, None, None)
    ratio, ends = change
    return Effect(buffer, ratio, (ends[0], ends[1]) if ends else None)


def _load(folder: Path, files: Sequence[tuple[str, str]]) -> Scenario:
    """The first file, which is a scenario; the others are what it names."""
    for name, text in files:
        (folder / name).write_text(text, encoding="utf-8")
    return Scenario.load(folder / files[0][0])
