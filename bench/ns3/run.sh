#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# run.sh ONRAMP: packet-hops per second of CPU time, on one core, of Debian's ns-3 and of
# `onramp sim replay`, on the same star with the same flows. Needs Debian's libns3-dev and
# libgsl-dev, which its pkg-config files name.
#
# The same in both: 16 hosts at 100 Gbit/s and 1 us a link, the flow list, 1000 B of payload a
# packet, an acknowledgement a packet, an initial window of 52 kB, DCTCP, marks above 300 kB.
# Different: ns-3 runs TCP without SACK and time stamps (handshakes and FINs count as packet-hops; 42 B
# of headers, not 48; 256 KiB buffers, slow start, no pacing, RTO) and its switch is an IPv4 router
# with a 32 MiB queue a port; ours runs an RDMA-like NIC that paces, and a switch of 32 MiB that all
# ports share, with PFC. Debian builds ns-3 with logging compiled in.
# ns-3 slows down with the number of connections so far: flows are long, 1 MB, and the run short.
set -euo pipefail

onramp=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

modules="ns3-core ns3-network ns3-internet ns3-applications ns3-point-to-point ns3-traffic-control"
# shellcheck disable=SC2086 # a list of words
if ! pkg-config --exists $modules; then
	echo "bench-ns3: ns-3 is missing: apt-get install libns3-dev libgsl-dev pkg-config" >&2
	exit 1
fi

python3 "$here/flows.py" "$work" --hosts 16 --gbps 100 --duration-ms "${DURATION_MS:-5}"
# shellcheck disable=SC2046,SC2086
g++ -O2 -std=c++17 "$here/star.cc" -o "$work/star" $(pkg-config --cflags --libs $modules)

# NAME COMMAND...: prints a line, and notes the figure in $work/NAME.
measure() {
	local name=$1 hops seconds
	shift
	TIMEFORMAT=%U
	{ time "$@" >"$work/out" 2>"$work/err"; } 2>"$work/seconds"
	hops=$(grep -ho '[0-9]* packet-hops' "$work/out" "$work/err" | head -1 | cut -d' ' -f1)
	seconds=$(cat "$work/seconds")
	awk -v name="$name" -v hops="$hops" -v s="$seconds" 'BEGIN {
		printf "%-7s %9d packet-hops  %7.2f s CPU  %6.2f M packet-hops/s\n", name, hops, s, hops / s / 1e6
	}'
	awk -v hops="$hops" -v s="$seconds" 'BEGIN { print hops / s }' >"$work/$name"
}

measure ns-3 "$work/star" --hosts=16 --flows="$work/star.flow"
measure onramp "$onramp" sim replay "$work/star.topo" "$work/star.flow" --cc dctcp
awk -v ours="$(cat "$work/onramp")" -v theirs="$(cat "$work/ns-3")" \
	'BEGIN { printf "onramp is %.1f times as fast\n", ours / theirs }'
