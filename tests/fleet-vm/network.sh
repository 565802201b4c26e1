#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# network.sh: the network of a guest of tools/fleet-vm. Host vmN is 10.0.0.N.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
modprobe virtio_net
ip link set lo up
ip address add "10.0.0.$(hostname | sed 's/^vm//')/24" dev eth0
ip link set eth0 up
# The package's configuration takes the device of the default route.
ip route add default dev eth0
