# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`python -m onramp sweep`: what `onramp sweep` calls for clusters and URLs."""

from __future__ import annotations

import argparse
import sys

import onramp

#: As `onramp sweep` does.
_MOST_SHOWN = 10
_INTERRUPTED = 130


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m onramp")
    command = parser.add_subparsers(required=True).add_parser("sweep", help="makes the points of a sweep")
    command.add_argument("file")
    command.add_argument("--out", required=True)
    command.add_argument("--engine", choices=("threads", "ray"), default="threads")
    command.add_argument("--address")
    command.add_argument("--threads", type=int)
    command.add_argument("--force", action="store_true")
    given = parser.parse_args()
    try:
        results = onramp.sweep(
            given.file,
            given.out,
            engine=given.engine,
            address=given.address,
            threads=given.threads,
            force=given.force,
            progress=True,
        )
    except onramp.SweepInterrupted as interrupted:
        print(f"onramp: {interrupted}", file=sys.stderr)
        return _INTERRUPTED
    except (OSError, ImportError, onramp.ResultsError, onramp.ScenarioError) as error:
        print(f"onramp: {error}", file=sys.stderr)
        return 1
    print(f"{results.title}: {results.made} of {results.points} points, {results.runs} runs")
    for failure in results.failures[:_MOST_SHOWN]:
        print(f"point {failure['point']} failed: {failure['error']}")
    print(f"the data set is {given.out}/data", file=sys.stderr)
    if results.failed:
        print(f"onramp: {results.failed} of {results.runs} runs failed; the others are whole", file=sys.stderr)
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
