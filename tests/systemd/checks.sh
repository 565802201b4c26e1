#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# checks.sh PHASE: what tools/systemd-test checks inside its virtual machine, as a service of the guest's systemd. Phase 1
# installs the package and lives through a daemon's life; phase 2, after a boot of the same disk, finds the service running.
# Prints a line for each check (expect.sh). This host is 10.0.0.1 on eth0; the other one, 10.0.0.2, is a network namespace
# with a daemon of its own, outside of the unit.
# machine: its time is virtual (tools/systemd-test).
set -uo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
readonly CONFIG=/etc/onramp/onramp.toml
readonly GOES_ON='goes on with the flow table and the programs of the former daemon'
# shellcheck source=tests/expect.sh
. /root/expect.sh

property() {
	systemctl show --value --property="$1" onramp.service
}

# What the daemon with this process has logged.
logged() {
	journalctl --sync
	journalctl --quiet --output=cat _PID="$1"
}

qdisc() {
	tc qdisc show dev eth0 root | head -n 1
}

# On-Ramp's have names of their own: onr_, and which device it is.
kind() {
	qdisc | cut -d ' ' -f 2 | sed 's/^onr_.*/onramp/'
}

in_peer() {
	ip netns exec peer "$@"
}

is_restarted() {
	[ "$(property NRestarts)" -gt "$1" ] && [ "$(property ActiveState)" = active ]
}

has_fleet_time() {
	onramp clock status | grep -q '^synchronised'
}

# Data paths get fleet time with the next renewal, so the first test may come too early.
has_oracks() {
	onramp connectivity test 10.0.0.2
}

# sets KEY VALUE: a line of the configuration, also if it is a comment.
sets() {
	sed -i -E "s|^(# )?$1 = [^#]*|$1 = $2 |" $CONFIG
}

# goes_on WHAT RESTARTS QDISC: the next daemon runs, and has the data path of the former one.
goes_on() {
	becomes 60 is_restarted "$2"
	expect "after $1, systemd starts the next daemon" "$(($2 + 1)) active" "$(property NRestarts) $(property ActiveState)"
	expect "after $1, it goes on with the data path" 1 "$(logged "$(property MainPID)" | grep -c "$GOES_ON")"
	expect "after $1, the qdisc is the same" "$3" "$(qdisc)"
}

install_and_observe() {
	succeeds "the package installs under systemd" dpkg --install /root/old.deb
	expect "an installation starts nothing" "disabled inactive" \
		"$(systemctl is-enabled onramp) $(systemctl is-active onramp)"
	succeeds "keys are made" onramp keygen /etc/onramp/keys
	sets source '"huygens"'
	sets members '["10.0.0.1", "10.0.0.2"]'
	sets key_file '"/etc/onramp/keys"'
	sets line_rate '"1 Gbit/s"'
	# The other host: no file system of BPF of its own, so nothing of it is pinned.
	succeeds "the other host's daemon starts" systemd-run --quiet --unit=peer \
		ip netns exec peer onramp agent run --config $CONFIG --dev eth0 --observe=true
	succeeds "the other host answers connections" systemd-run --quiet --unit=serve ip netns exec peer onramp connectivity serve

	succeeds "it starts and says when it is ready" systemctl enable --now onramp
	# At once: systemd waited until the daemon had said that it is ready.
	succeeds "a daemon that is ready answers" onramp status
	expect "systemd shows what it does" "observing eth0:" "$(property StatusText | cut -d ' ' -f 1-2)"
	expect "while it observes, the qdisc stays" fq "$(kind)"
	becomes 120 has_fleet_time
	succeeds "the fleet has a common time" has_fleet_time
}

enforce() {
	sets observe false
	succeeds "it restarts to enforce" systemctl restart onramp
	expect "it enforces with its own qdisc" onramp "$(kind)"
	expect "its pins are in /sys/fs/bpf, for root alone" "700 1" \
		"$(stat -c %a /sys/fs/bpf/onramp) $(find /sys/fs/bpf/onramp -mindepth 2 -maxdepth 2 | wc -l)"
	becomes 120 has_oracks
	succeeds "OR-ACKs go there and back" has_oracks
}

sandbox() {
	local pid status
	pid=$(property MainPID)
	status=/proc/$pid/status
	# CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF.
	expect "it has three capabilities" 000000c000001000 "$(awk '/^CapEff/ { print $2 }' "$status")"
	expect "it can gain none" "000000c000001000 1" \
		"$(awk '/^CapBnd/ { b = $2 } /^NoNewPrivs/ { n = $2 } END { print b, n }' "$status")"
	expect "a filter of system calls is on it" 2 "$(awk '/^Seccomp:/ { print $2 }' "$status")"
	expect "its sockets are root's alone" "700 600" \
		"$(stat -c %a /run/onramp) $(find /run/onramp -type s -printf '%m\n' | sort -u | paste -sd ' ')"
	expect "it may not change the kernel's settings, in /proc/sys and in /sys" 2 \
		"$(nsenter --target "$pid" --mount sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1500 >/sys/class/net/eth0/mtu' 2>&1 |
			grep -c 'Read-only file system')"
	expect "it may not write to /etc" "" "$(nsenter --target "$pid" --mount sh -c 'echo >/etc/onramp/probe' 2>/dev/null && echo written)"
}

reload() {
	local pid
	pid=$(property MainPID)
	sed -i 's/^\[peers\]/[law]\nthreshold = "70 us"\n&/' $CONFIG
	succeeds "it reloads" systemctl reload onramp
	expect "a reload keeps the process" "$pid active" "$(property MainPID) $(property ActiveState)"
	expect "a reload says what has changed" 1 "$(logged "$pid" | grep -c 'reloaded: .*threshold')"
	expect "systemd shows the new configuration" 1 "$(property StatusText | grep -c 'threshold 70')"
	cp $CONFIG /root/good.toml
	sed -i 's/^threshold/treshold/' $CONFIG
	expect "a reload with a mistake fails" failed "$(systemctl reload onramp 2>/dev/null || echo failed)"
	expect "and the daemon goes on" "$pid active" "$(property MainPID) $(property ActiveState)"
	cp /root/good.toml $CONFIG
	succeeds "it reloads again" systemctl reload onramp
}

# Each end but the last: what a daemon leaves, and what systemd does about it.
ends() {
	local at restarts
	at=$(qdisc)
	restarts=$(property NRestarts)
	kill -STOP "$(property MainPID)"
	goes_on "a daemon that hangs" "$restarts" "$at"
	expect "the watchdog found it" 1 "$(journalctl --quiet --unit=onramp --output=cat | grep -c 'Watchdog timeout')"

	restarts=$(property NRestarts)
	systemctl kill --kill-whom=main --signal=KILL onramp
	goes_on "kill -9" "$restarts" "$at"

	restarts=$(property NRestarts)
	systemctl kill --signal=USR2 onramp
	goes_on "SIGUSR2" "$restarts" "$at"

	restarts=$(property NRestarts)
	succeeds "the package upgrades under systemd" dpkg --install --force-confold /root/new.deb
	goes_on "an upgrade" "$restarts" "$at"
	expect "the running program is the installed one" /usr/bin/onramp "$(readlink "/proc/$(property MainPID)/exe")"
	becomes 120 has_oracks
	succeeds "after all this, OR-ACKs go there and back" has_oracks
}

stop() {
	local restarts
	restarts=$(property NRestarts)
	succeeds "it stops" systemctl stop onramp
	expect "a stop restores the qdisc" fq "$(kind)"
	expect "a stop leaves no pin" 0 "$(find /sys/fs/bpf/onramp -mindepth 1 2>/dev/null | wc -l)"
	expect "a stopped daemon stays stopped" "inactive success $restarts" \
		"$(sleep 2; property ActiveState) $(property Result) $(property NRestarts)"
}

# What keeps it from starting goes away after more attempts than systemd's usual limit.
late() {
	cp $CONFIG /root/good.toml
	sed -i '1i devices = ["eth7"]' $CONFIG
	systemctl start onramp 2>/dev/null
	sleep 15
	expect "a device that is missing is waited for" "activating more than 5" \
		"$(property ActiveState) $([ "$(property NRestarts)" -gt 5 ] && echo more than 5)"
	cp /root/good.toml $CONFIG
	becomes 20 systemctl is-active onramp
	expect "and it starts when nothing is missing" active "$(property ActiveState)"
	systemctl stop onramp
}

# A service with clock.source = "system" and one that sets the system clock, with the drop-in that the unit names.
drop_ins() {
	local dir=/etc/systemd/system/onramp.service.d
	mkdir -p $dir
	printf '[Service]\nProtectClock=no\nSystemCallFilter=@clock\n' >$dir/clock.conf
	systemctl daemon-reload
	cp $CONFIG /root/good.toml
	sets source '"system"'
	sed -i 's/^source = .*/&\nbound = "1 ms"/; s/^members/# members/' $CONFIG
	succeeds "with its drop-in, it takes the system clock" systemctl start onramp
	systemctl stop onramp
	cp /root/good.toml $CONFIG
	printf '[Service]\nCapabilityBoundingSet=CAP_SYS_TIME\nProtectClock=no\nSystemCallFilter=@clock\n' >$dir/clock.conf
	systemctl daemon-reload
	sed -i 's/^members = .*/&\ndiscipline = true/' $CONFIG
	succeeds "with its drop-in, it may set the system clock" systemctl start onramp
	expect "it then has CAP_SYS_TIME, too" 000000c002001000 "$(awk '/^CapEff/ { print $2 }' "/proc/$(property MainPID)/status")"
	systemctl stop onramp
	cp /root/good.toml $CONFIG
	rm -r $dir
	systemctl daemon-reload
}

# The journal and the kernel's log: nothing was refused. The kernel logs each system call that a filter refuses, because
# process 1 has SYSTEMD_LOG_SECCOMP.
refusals() {
	journalctl --sync
	expect "nothing was refused to it" "" "$(journalctl --quiet --unit=onramp --output=cat |
		grep -iE 'not permitted|permission denied|read-only|EPERM|EACCES')"
	# But clone3 (435): RestrictNamespaces= cannot see its flags and answers that there is no such call, so libc takes clone.
	expect "the filter refused no system call" "" "$(dmesg | grep -E 'type=1326.*comm="onramp' | grep -m 3 -v 'syscall=435')"
}

first() {
	install_and_observe
	enforce
	sandbox
	reload
	ends
	stop
	late
	drop_ins
	refusals
	systemctl reset-failed
}

second() {
	expect "after a boot it is active" active "$(property ActiveState)"
	expect "after a boot it enforces" onramp "$(kind)"
	succeeds "after a boot it answers" onramp status
	expect "it needed one start" 0 "$(property NRestarts)"
	succeeds "the package is removed" dpkg --remove onramp
	expect "a removal restores the qdisc" fq "$(kind)"
	expect "a removal leaves no pin" 0 "$(find /sys/fs/bpf/onramp -mindepth 1 2>/dev/null | wc -l)"
	expect "a removal leaves no service" not-found "$(property LoadState)"
	refusals
}

case $1 in
1) first ;;
2) second ;;
esac
echo "end of phase $1"
