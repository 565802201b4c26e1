#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# commands.sh: runs the commands that tools/fleet-vm sends to a guest's second serial port, a line each. The answer is the
# command's output, and a line with its exit code. The first such line says that the guest is ready.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
cd /root || exit
stty -F /dev/ttyS1 raw -echo
exec <>/dev/ttyS1 >&0 2>&1
code=0
while printf '\036%d\n' "$code" && IFS= read -r command; do
	# No command writes to a terminal, so none draws its progress.
	bash -c "$command" </dev/null 2>&1 | cat
	code=${PIPESTATUS[0]}
done
