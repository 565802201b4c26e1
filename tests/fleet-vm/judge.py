# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""judge.py: compares the errors of guests' fleet times with their sigmas.

    judge.py READINGS FROM TO WHAT [--enough NUMBER]

READINGS are the lines of `truth host`; FROM and TO say which (lines before TO and not before FROM). For each pair of
guests, each reading of the first is compared with the second's fleet time at the same moment of the host, interpolated
between two readings at most a second apart. The two should agree within 3 sigma, where sigma is that of the difference,
and the bounds of the readings. Fleet time should also be at most 100 ppm faster or slower than the host's, or than the guest's
clock that is furthest off. A reading with a bound above 10 us is not compared: one of the two processors was taken in
the middle of each exchange. Prints a line for each pair: "ok: .." or "FAILED: ..". With --enough, the exit
code is 1 until each pair has so many comparisons.
"""

import bisect
import collections
import itertools
import math
import statistics
import sys

MOST_APART_NS = 10**9
MOST_BOUND_NS = 10_000
MOST_PPM = 100
FEWEST = 20  # readings with fleet time, for its rate
GUESTS = [1, 2, 3]

Reading = collections.namedtuple("Reading", "host bound mono fleet sigma")
Difference = collections.namedtuple("Difference", "error sigma bound")


def read(path, begin, end):
    """Close readings by guest, and the number of others."""
    guests, wide = collections.defaultdict(list), 0
    with open(path) as lines:
        for line in itertools.islice(lines, begin, end):
            guest, *values = map(int, line.split())
            reading = Reading(*values, *[None] * (5 - len(values)))
            if reading.bound <= MOST_BOUND_NS:
                guests[guest].append(reading)
            else:
                wide += 1
    return guests, wide


def difference(reading, others, hosts):
    """Of a reading and the other guest's fleet time at that moment; none if one of them had none."""
    after = bisect.bisect(hosts, reading.host)
    if reading.fleet is None or not 0 < after < len(others):
        return None
    left, right = others[after - 1], others[after]
    if left.fleet is None or right.fleet is None or right.host - left.host > MOST_APART_NS:
        return None
    share = (reading.host - left.host) / (right.host - left.host)
    other_ns = left.fleet + round(share * (right.fleet - left.fleet))
    return Difference(
        abs(reading.fleet - other_ns),
        math.hypot(reading.sigma, max(left.sigma, right.sigma)),
        reading.bound + max(left.bound, right.bound),
    )


def us(ns):
    return f"{ns / 1000:,.2f}"


def judge(what, differences):
    """The line of a pair."""
    if not differences:
        return f"none: {what}: no common fleet time"
    beyond = [d for d in differences if d.error > 3 * d.sigma + d.bound]
    worst = max(differences, key=lambda d: d.error / (3 * d.sigma + d.bound))
    median = lambda name: us(statistics.median(getattr(d, name) for d in differences))
    return (
        f"{'FAILED' if beyond else 'ok'}: {what}: {len(differences)} readings, {len(beyond)} beyond 3 sigma; "
        f"us: error median {median('error')}, largest {us(max(d.error for d in differences))}; sigma median "
        f"{median('sigma')}; bound median {median('bound')}, largest {us(max(d.bound for d in differences))}; "
        f"worst: error {us(worst.error)} at sigma {us(worst.sigma)}"
    )


def rate_ppm(readings, name):
    """By how much a guest's CLOCK_MONOTONIC or its fleet time was faster than the host's clock: the median, as a clock
    that was stopped or set has wild rates in between."""
    return statistics.median(
        ((getattr(after, name) - getattr(before, name)) / (after.host - before.host) - 1) * 1e6
        for before, after in itertools.pairwise(readings)
    )


def judge_rates(what, guests):
    """The rates of clocks, and whether that of fleet time lies near them."""
    clocks = {guest: rate_ppm(readings, "mono") for guest, readings in guests.items() if len(readings) > 1}
    most = MOST_PPM + max(map(abs, clocks.values()), default=0)
    for guest, readings in sorted(guests.items()):
        usable = [reading for reading in readings if reading.fleet is not None]
        text = f"{what}: vm{guest}: fleet time in {len(usable)} of {len(readings)} readings"
        if len(usable) < FEWEST:
            print(f"none: {text}")
            continue
        fleet = rate_ppm(usable, "fleet")
        verdict = "ok" if abs(fleet) <= most else "FAILED"
        print(f"{verdict}: {text}; faster than the host's: clock {clocks[guest]:+.1f} ppm, fleet time {fleet:+.1f} ppm")


def main():
    path, begin, end, what = sys.argv[1:5]
    enough = int(sys.argv[6]) if sys.argv[5:] else 0
    guests, wide = read(path, int(begin), int(end))
    print(f"{what}: {wide} readings with a bound above {us(MOST_BOUND_NS)} us")
    judge_rates(what, guests)
    fewest = []
    for one, other in itertools.combinations(GUESTS, 2):
        hosts = [reading.host for reading in guests[other]]
        compared = [difference(reading, guests[other], hosts) for reading in guests[one]]
        differences = [d for d in compared if d]
        fewest.append(len(differences))
        print(judge(f"{what}: vm{one} and vm{other}", differences))
    sys.exit(min(fewest) < enough)


main()
