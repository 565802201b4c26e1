# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Writes a star for `onramp sim replay` and star.cc: star.topo and star.flow, in the HPCC
simulator's formats. Poisson arrivals at every host, from random others, of flows of one size."""

import argparse
import pathlib
import random


def flow_list(hosts, gbps, load, size_bytes, duration_s):
    """Lines of flows in the order of their starts."""
    rng = random.Random(7)
    per_s = hosts * load * gbps * 1e9 / 8 / size_bytes
    now, lines = rng.expovariate(per_s), []
    while now < duration_s:
        src, dst = rng.sample(range(hosts), 2)
        lines.append(f"{src} {dst} 3 100 {size_bytes} {now:.9f}")
        now += rng.expovariate(per_s)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--gbps", type=int, required=True)
    parser.add_argument("--duration-ms", type=float, required=True)
    args = parser.parse_args()
    flows = flow_list(args.hosts, args.gbps, 0.6, 1_000_000, args.duration_ms / 1e3)
    links = [f"{host} {args.hosts} {args.gbps}Gbps 1000ns 0" for host in range(args.hosts)]
    head = [f"{args.hosts + 1} 1 {args.hosts}", str(args.hosts)]
    (args.out / "star.topo").write_text("\n".join(head + links) + "\n")
    (args.out / "star.flow").write_text("\n".join([str(len(flows))] + flows) + "\n")


if __name__ == "__main__":
    main()
