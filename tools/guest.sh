# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=bash
# guest.sh: what scripts with emulated machines share (tools/systemd-test, tools/fleet-vm): Debian 12 with systemd as
# process 1 and the rack's kernel, as a disk. Sourced, in the repository's folder.

readonly TARGET=${CARGO_TARGET_DIR:-target}
# The guests' system without our package; remove it to have a new one.
readonly BASE=$TARGET/guest/base.tar
readonly SUITE=bookworm
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# What all scripts' guests need, so that there is one system.
readonly IN_BASE=systemd-sysv,libelf1,zlib1g,iproute2,kmod,python3
# shellcheck disable=SC2034 # the scripts use it
# Parts of the kernel's command line: an emulated processor has neither a timer to be checked nor mitigations to make.
readonly KERNEL_OPTIONS="console=ttyS0 quiet root=/dev/nvme0n1 rw nokaslr tsc=reliable mitigations=off no_timer_check \
cryptomgr.notests=1 oops=panic panic=-1"

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# needs PROGRAM...: root, these programs, and those of this file. Sets MODULES, the folder of the kernel.
needs() {
	local program
	[ "$(id -u)" = 0 ] || die "files of root need root; run it with sudo"
	for program in mmdebstrap qemu-system-x86_64 mke2fs depmod "$@"; do
		command -v "$program" >/dev/null ||
			die "$program is missing; install it: apt-get install mmdebstrap qemu-system-x86 e2fsprogs kmod gcc libc6-dev"
	done
	MODULES=$(find .cache/kernel/usr/lib/modules -mindepth 1 -maxdepth 1 2>/dev/null | sort -V | tail -n 1)
	[ -n "$MODULES" ] || die "no kernel in .cache/kernel; run: make setup"
}

# Fetches the guests' system if it is not there.
make_base() {
	local mirror
	[ ! -e "$BASE" ] || return 0
	mkdir -p "$(dirname "$BASE")"
	# As tools/setup: the Debian archive in this machine's apt sources.
	mirror=${ONRAMP_MIRROR:-$(apt-get --print-uris update |
		sed -nE "s,^'([^']*[^/'])/*/dists/($SUITE|stable|oldstable)/InRelease'.*,\1,p" | head -n 1)}
	[ -n "$mirror" ] || die "this machine's apt sources have no $SUITE; name a mirror in ONRAMP_MIRROR"
	mmdebstrap --quiet --variant=apt --include=$IN_BASE \
		"$SUITE" "$BASE.part" "deb [signed-by=$KEYRING] $mirror $SUITE main" --format=tar
	mv "$BASE.part" "$BASE"
}

# make_root ROOT: the system of a guest in a folder. The script adds its own files.
make_root() {
	local root=$1 units=$1/etc/systemd/system
	rm -rf "$root"
	mkdir -p "$root"
	tar -x -C "$root" -f "$BASE"
	mkdir -p "$root/lib/modules"
	cp -a "$MODULES" "$root/lib/modules/"
	depmod --basedir "$root" "$(basename "$MODULES")"
	# A system that has an identity is not at its first boot, at which systemd would enable all services.
	echo 6f6e72616d700000000000000000000a >"$root/etc/machine-id"
	echo guest >"$root/etc/hostname"
	echo 127.0.0.1 localhost >"$root/etc/hosts"
	mkdir -p "$root/etc/systemd/journald.conf.d"
	# The log of all boots, and each line of it.
	printf '[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\n' >"$root/etc/systemd/journald.conf.d/all.conf"
	cat >"$units/guest-network.service" <<-'UNIT'
		[Unit]
		DefaultDependencies=no
		After=systemd-modules-load.service local-fs.target
		Before=network.target network-online.target
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/root/network.sh
		[Install]
		WantedBy=network-online.target
	UNIT
	mkdir -p "$units/graphical.target.wants" "$units/network-online.target.wants"
	ln -sf ../guest-network.service "$units/network-online.target.wants/"
	ln -sf /lib/systemd/system/graphical.target "$units/default.target"
	# Nobody logs in, and no terminal may take the ports of the script.
	ln -sf /dev/null "$units/getty.target"
}

# make_disk ROOT DISK: an image of the folder, which it removes. An image of its own, so no loop device is needed.
make_disk() {
	rm -f "$2"
	mke2fs -q -t ext4 -d "$1" "$2" 1G >/dev/null
	rm -rf "$1"
}
