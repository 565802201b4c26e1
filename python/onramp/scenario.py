# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Scenarios: a network, its hosts, their traffic and On-Ramp, checked by the code that the command uses."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onramp import _onramp

if TYPE_CHECKING:
    from typing import Unpack

    from onramp.keys import Keys

#: What a key can be set to. A list means each of its values: a run for each.
Value = str | int | float | bool | Sequence[str] | Sequence[int] | Sequence[float]


class Scenario:
    """An experiment: one run, or several that differ in a case, in swept keys or in their seeds.

    The keys are those of scenario files, so the arguments are their tables, and an editor completes them:

        Scenario(
            title="Eight to one",
            duration="20 ms",
            network={
                "topology": {"kind": "star", "hosts": 9},
                "link": {"rate": "10 Gbit/s", "delay": "1 us"},
            },
            traffic=[{"kind": "incast", "fanout": 8, "size": "32 kB", "load": "20 %"}],
            sweep={"onramp.law": ["off", "final"]},
        )

    Quantities have units: "50 us", "10 Gbit/s", "32 kB", "20 %".

    Raises:
        ScenarioError: with key, value and bound of each error.
    """

    def __init__(self, **keys: Unpack[Keys]) -> None:
        text = _onramp.Scenario.toml_of(json.dumps(keys))
        self._read(text, "scenario", (), Path())

    @classmethod
    def load(cls, file: str | PathLike[str]) -> Scenario:
        """Reads a scenario file (TOML). Files that it names are sought beside it.

        Raises:
            OSError: the file cannot be read.
            ScenarioError: with line, key, value and bound of each error.
        """
        path = Path(file)
        return cls._of(path.read_text(encoding="utf-8"), str(path), (), path.parent)

    @classmethod
    def parse(cls, text: str, directory: str | PathLike[str] = ".") -> Scenario:
        """Reads the text of a scenario file. Files that it names are sought in `directory`.

        Raises:
            ScenarioError: with line, key, value and bound of each error.
        """
        return cls._of(text, "scenario", (), Path(directory))

    @classmethod
    def _of(cls, text: str, name: str, keys: Sequence[tuple[str, str]], directory: Path) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._read(text, name, keys, directory)
        return scenario

    def _read(self, text: str, name: str, keys: Sequence[tuple[str, str]], directory: Path) -> None:
        self._name, self._keys, self._directory = name, tuple(keys), directory
        self._native = _onramp.Scenario(text, name, self._keys, directory)

    def set(self, keys: Mapping[str, Value]) -> Scenario:
        """The same scenario with other values, as `--set` gives them: `{"onramp.threshold": ["30 us", "50 us"]}`.

        A value replaces the key in the scenario, its cases and its sweep; a list has a run for each of its values.

        Raises:
            ScenarioError: a key or a value is wrong.
        """
        more = [(key, _text(value)) for key, value in keys.items()]
        kept = [(key, value) for key, value in self._keys if key not in keys]
        return self._of(self.text, self._name, [*kept, *more], self._directory)

    @property
    def title(self) -> str:
        """What the experiment shows."""
        return self._native.title

    @property
    def text(self) -> str:
        """The scenario's TOML, before `set` replaced keys."""
        return self._native.text

    @property
    def runs(self) -> list[dict[str, str]]:
        """For each run, the case and the keys in which it differs from the others."""
        return self._native.params()

    @property
    def resolved(self) -> list[dict[str, Any]]:
        """For each run, every setting, in the form of a scenario."""
        resolved: list[dict[str, Any]] = json.loads(self._native.resolved())
        return resolved

    @property
    def remarks(self) -> list[str]:
        """Warnings about the scenario, before it runs: the planned traffic misses its load, a burst is larger than the buffer,
        the threshold is above any possible delay, there are few requests. `Results.remarks` has those of a run."""
        return self._native.remarks()

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.runs)

    def __repr__(self) -> str:
        runs = "1 run" if len(self) == 1 else f"{len(self)} runs"
        return f"<Scenario {self.title!r}: {runs}>"

    def _repr_html_(self) -> str:
        rows = [" ".join(f"{key}={value}" for key, value in run.items()) for run in self.runs]
        shown = "".join(f"<li>{html.escape(row)}</li>" for row in rows if row)
        return f"<b>{html.escape(self.title)}</b><ol start='0'>{shown}</ol>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Scenario._of, (self.text, self._name, self._keys, self._directory)


def _text(value: Value) -> str:
    """As `--set` has it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case _:
            return json.dumps(list(value))
