# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=bash
# steps.sh: what tools/fleet-vm does with its three machines. Sourced by it. A check is a line that begins with "ok" or
# "FAILED" (tests/expect.sh, judge.py).

# A check that fails is a line, and the next one follows.
set +e

readonly CONFIG=/etc/onramp/onramp.toml
# Comparisons of each pair of clocks while nothing else happens.
readonly ENOUGH=60

# compares WHAT FROM: fleet times since this line of the readings.
compares() {
	judges "$@" | tee -a "$OUT/transcript"
}

judges() {
	python3 tests/fleet-vm/judge.py "$OUT/readings" "$2" "$(readings)" "$1" "${@:3}"
}

readings() {
	wc -l <"$OUT/readings"
}

# For a while, fleet times are compared and nothing else happens.
watches() {
	local from
	from=$(readings)
	becomes "$MOST_WAIT_SECONDS" judges "$1" "$from" --enough $ENOUGH
	expect "$1, each pair of clocks is compared $ENOUGH times" 0 $?
	compares "$1" "$from"
}

is_whole() {
	local number
	for number in $GUESTS; do
		in_guest "$number" onramp clock status >"$OUT/status" || return 1
		grep -q '^synchronised' "$OUT/status" && grep -q ', 3 members,' "$OUT/status" || return 1
	done
}

# joins WHAT: the fleet becomes whole, and what each clock says then. One that does not begins anew, so that the next steps
# are judged by themselves.
joins() {
	local from code
	from=$(readings)
	becomes "$MOST_WAIT_SECONDS" is_whole
	code=$?
	expect "$1, all three hosts have fleet time" 0 $code
	compares "$1, until then" "$from"
	says
	[ $code = 0 ] || begins_anew
}

begins_anew() {
	local verb number
	notes "The fleet begins anew"
	for verb in stop start; do
		for number in $GUESTS; do
			shows "$number" systemctl $verb onramp
		done
	done
	becomes "$MOST_WAIT_SECONDS" is_whole
	says
}

says() {
	local number
	for number in $GUESTS; do
		shows "$number" onramp clock status
		sed -nE "s/^host .* members, .*/vm$number: &/p; s/^[a-z ]+: (offset|NO FLEET TIME).*/vm$number: &/p" "$OUT/shown"
	done
}

installs() {
	local number
	notes "Install"
	for number in $GUESTS; do
		shows "$number" apt-get install -qq ./onramp_*.deb
		expect "vm$number has the package" 0 $?
	done
}

configures() {
	local number keys
	notes "etcd, keys and configuration"
	shows 1 systemd-run --unit=etcd etcd --data-dir=/var/lib/etcd --listen-client-urls=http://10.0.0.1:2379 \
		--advertise-client-urls=http://10.0.0.1:2379
	shows 1 onramp keygen /etc/onramp/keys
	keys=$(in_guest 1 base64 /etc/onramp/keys | tr -d "\n")
	notes "Copy /etc/onramp/keys from vm1 to vm2 and vm3, for root alone"
	for number in 2 3; do
		in_guest "$number" "umask 077; echo $keys | base64 -d >/etc/onramp/keys"
	done
	for number in $GUESTS; do
		shows "$number" "sed -i 's/^# source = .*/source = \"huygens\"/; s/^# key_file/key_file/' $CONFIG"
		shows "$number" "sed -i 's/^# line_rate = .*/line_rate = \"$MBIT_PER_S Mbit\/s\"\ngso_max = \"3 kB\"/' $CONFIG"
		shows "$number" "printf '[law]\nthreshold = \"3 ms\"\nmax_pause = \"20 ms\"\n[etcd]\nservers = [\"http://10.0.0.1:2379\"]\n' >>$CONFIG"
		shows "$number" onramp agent validate
		shows "$number" systemctl enable --now onramp
	done
}

# serves NUMBER: the host answers those who ask for an incast.
serves() {
	shows "$1" systemd-run --quiet --unit=incast python3 /root/incast.py serve
}

# incast NAME: completion times, while fleet times are compared.
incast() {
	local from
	notes "Incast $1"
	from=$(readings)
	shows 1 python3 incast.py ask 10.0.0.2 10.0.0.3
	expect "incast $1, all requests are answered" 0 $?
	sed "s/^/incast $1: /" "$OUT/shown"
	shows 2 onramp status
	compares "incast $1" "$from"
}

enforces() {
	local number
	notes "Enforce"
	for number in $GUESTS; do
		shows "$number" "sed -i 's/^observe = true/observe = false/' $CONFIG && systemctl restart onramp"
	done
	joins "after a restart that enforces"
	expect "vm2 holds with its own qdisc" 1 "$(in_guest 2 tc qdisc show dev eth0 root | grep -c onr_)"
}

# suspends NUMBER SECONDS: the machine's clock stops, too.
suspends() {
	local from
	notes "vm$1 is suspended for $2 s"
	from=$(readings)
	monitors "$1" stop paused
	sleep "$2" # machine: how long it is suspended; any length is one
	monitors "$1" cont running
	joins "after a suspension of $2 s"
	compares "suspension of $2 s and after" "$from"
	watches "after a suspension of $2 s"
}

killed() {
	notes "vm$1 is killed, and boots again"
	kill -KILL "${PID[$1]}"
	wait "${PID[$1]}" 2>/dev/null || true
	start "$1"
	serves "$1"
	joins "after a kill and a boot"
	watches "after a kill and a boot"
}

# Takes the processors of a machine, whose clock goes on, for 50 to 500 ms at a time and for half of the time.
takes() {
	RANDOM=1
	while kill -STOP "${PID[$1]}"; do
		sleep "0.$(printf %03d $((50 + RANDOM % 451)))" # machine: a burst of any length is one
		kill -CONT "${PID[$1]}"
		sleep "0.$(printf %03d $((50 + RANDOM % 451)))" # machine: a burst of any length is one
	done
}

# starves NUMBER COMMAND...: its processor is taken during the command.
starves() {
	local taker
	notes "vm$1 loses its processor for 50 to 500 ms at a time"
	takes "$1" &
	taker=$!
	"${@:2}"
	kill "$taker"
	wait "$taker" 2>/dev/null
	kill -CONT "${PID[$1]}"
}

# Compares fleet times for so long as an incast takes, without one.
alone() {
	local from
	from=$(readings)
	sleep 40 # machine: how long readings are taken; more or fewer are no matter
	compares "vm$1 starved" "$from"
	says
}

installs
configures
joins "after the first start"
shows 1 onramp clock matrix
watches "calm"
serves 2
serves 3
incast "without On-Ramp"
enforces
incast "with On-Ramp"
suspends 2 2
suspends 2 20
suspends 1 20
killed 3
starves 2 alone 2
joins "after starvation of vm2"
starves 1 alone 1
joins "after starvation of vm1"
starves 2 incast "with On-Ramp and vm2 starved"
