# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# shellcheck shell=bash
# package.sh: what tools/deb and tools/rpm share: the files of a package. Sourced, in the repository's folder.
#
# Under tools/arm64 the package is for arm64, of the program that cargo has compiled there.

readonly TARGET=${CARGO_TARGET_DIR:-target}
readonly PROGRAM=$TARGET/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release/onramp
readonly DOC=usr/share/doc/onramp
# The package's processor, as the compiler names it, and what starts its programs here.
MACHINE=$(uname -m)
RUNNER=
if [ -n "${CARGO_BUILD_TARGET:-}" ]; then
	MACHINE=${CARGO_BUILD_TARGET%%-*}
	RUNNER=$CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER
fi
# shellcheck disable=SC2034 # the scripts use it
readonly MACHINE RUNNER
# The folder of the package's files; the scripts set it.
root=
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)
export SOURCE_DATE_EPOCH
umask 022

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

version_of_sources() {
	sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml
}

# put MODE FROM TO: a file of the package.
put() {
	install -D -m "$1" "$2" "$root/$3"
}

# put_all FOLDER TO: all files of a folder.
put_all() {
	local file
	find "$1" -type f | while read -r file; do
		put 644 "$file" "$2/${file#"$1"/}"
	done
}

# put_packed FROM TO: a compressed file.
put_packed() {
	gzip -9n <"$1" >"$OUT/packed"
	put 644 "$OUT/packed" "$2.gz"
}

# put_completion SHELL TO: the completions of a shell.
put_completion() {
	# shellcheck disable=SC2086 # a list of words
	$RUNNER "$PROGRAM" reference completions "$1" >"$OUT/completion"
	put 644 "$OUT/completion" "$2"
}

# Pages keep their places in the repository, so that the links between them lead somewhere.
check_links() {
	local page link
	while IFS=: read -r page link; do
		link=${link#*(}
		link=${link%?} # ) or #
		[ -e "$(dirname "$page")/$link" ] || die "$page links to $link, which the package lacks: put it there, or mend the link"
	done < <(grep -roE --include='*.md' '\]\([^)#:]+[)#]' "$root/$DOC")
}

# put_files UNITS ZSH: what all packages have, into $root; folders of systemd's units and of the completions of zsh.
put_files() {
	local page folder
	[ -x "$PROGRAM" ] || die "$PROGRAM is missing; build it: make build, or tools/arm64 cargo build --release --package onramp"
	put 755 "$PROGRAM" usr/bin/onramp
	# The one of LLVM knows all processors.
	llvm-strip-19 --strip-all --remove-section=.comment --remove-section=.note "$root/usr/bin/onramp"
	put 644 deploy/systemd/onramp.service "$1/onramp.service"
	put 644 deploy/onramp.toml etc/onramp/onramp.toml
	put 644 deploy/prometheus/onramp.rules.yml $DOC/examples/onramp.rules.yml
	put 644 deploy/grafana/onramp.json $DOC/examples/grafana.json
	put 644 deploy/wireshark/onramp.lua $DOC/examples/onramp.lua
	for page in README.md CONTRIBUTING.md CHANGELOG.md CITATION.cff; do
		put 644 $page $DOC/$page
	done
	put 644 figures/README.md $DOC/figures/README.md
	put 644 deploy/onramp.toml $DOC/deploy/onramp.toml
	for folder in docs scenarios workloads deploy/container deploy/helm deploy/systemd; do
		put_all $folder $DOC/$folder
	done
	check_links
	for page in deploy/man/*.1; do
		put_packed "$page" "usr/share/man/man1/$(basename "$page")"
	done
	put_completion bash usr/share/bash-completion/completions/onramp
	put_completion zsh "$2/_onramp"
	put_completion fish usr/share/fish/vendor_completions.d/onramp.fish
}
