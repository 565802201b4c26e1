#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# init.sh: process 1 of the guest. Prepares the system, runs /job/command, hands over /out.
# Port 1 carries what the command prints, port 2 an archive of /out and the exit code, port 3 the uptime
# every 5 s: watchdog.rs reads it.
# shellcheck shell=sh
export PATH=/bin HOME=/root OUT=/out
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
for module in /modules/*; do
	insmod "$module"
done
ip link set lo up
until [ -c /dev/vport0p3 ]; do
	usleep 1000
done
mkfifo /run/nothing
# Waits by reading what nobody writes: that starts no process while others measure.
while read -r uptime _ </proc/uptime && echo "$uptime"; do
	# shellcheck disable=SC3045 # busybox has -t
	read -r -t 5 _ <>/run/nothing
done >/dev/vport0p3 &
cd /job || exit
bash /job/command </dev/null >/dev/vport0p1 2>&1
echo $? >/exit_code
tar -c -C / -f /dev/vport0p2 out exit_code
poweroff -f
