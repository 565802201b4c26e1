# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=bash
# expect.sh: checks that print a line each, for scripts of tests: "ok: WHAT" or "FAILED: WHAT: expected .., found ..".
# Sourced.

# expect WHAT WANTED FOUND
expect() {
	if [ "$2" = "$3" ]; then
		echo "ok: $1"
	else
		echo "FAILED: $1: expected '$2', found '$3'"
	fi
}

# succeeds WHAT COMMAND...: shows the command's output if it fails.
succeeds() {
	local what=$1 output
	shift
	if output=$("$@" 2>&1); then
		echo "ok: $what"
	else
		echo "FAILED: $what: $*: exit code $?: $output"
	fi
}

# becomes SECONDS COMMAND...: whether the command succeeds within this time.
becomes() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.2 # machine: between two looks
	done
}
