#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# network.sh: the network of tools/systemd-test's machine: eth0 with fq, and a wire to eth0 of the network namespace "peer".
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
ip netns add peer
ip link add eth0 type veth peer name eth0 netns peer
ip address add 10.0.0.1/24 dev eth0
ip link set eth0 up
ip link set lo up
tc qdisc replace dev eth0 root fq
ip -n peer address add 10.0.0.2/24 dev eth0
ip -n peer link set eth0 up
ip -n peer link set lo up
# The package's configuration takes the device of the default route.
ip route add default via 10.0.0.2
