# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# The commands of this repository. `make demo` and `make test` also install what they need.

CLANG ?= clang-19
export CLANG

ONRAMP := $(or $(CARGO_TARGET_DIR),target)/release/onramp
PYTHON := .cache/venv/bin/python
C_WARNINGS := -Wall -Wextra -Werror -Wno-unused-function
SHELL_SCRIPTS := tools/setup tools/test tools/timed tools/book/build tools/release tools/spdx tools/fuzz tools/vm tools/record tools/deb tools/rpm tools/rpm-test tools/package.sh tools/arm64 tools/same-results tools/package-test tools/systemd-test tests/systemd/checks.sh tests/systemd/network.sh tools/guest.sh tests/expect.sh tools/fleet-vm tests/fleet-vm/steps.sh tests/fleet-vm/commands.sh tests/fleet-vm/network.sh tools/deploy-test tools/upgrade-test .ci/run crates/rack/src/vm/init.sh bench/ns3/run.sh

# Crates whose tests make test-arm64 runs: arithmetic, and what the daemon decides.
ARM64_TESTED := units keys law cc sync scenario trace status agent

# Changes that `make demo` makes to scenarios/incast.toml, as --set arguments.
DEMO ?=

.PHONY: help setup build demo test book facts doors setup-arm64 test-arm64 facts-arm64 bench bench-ns3 wheel wheel-test fuzz deb rpm deb-arm64 package-test rpm-test systemd-test fleet-vm deploy-test lint clean

help: ## prints this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' Makefile

setup: ## installs missing Debian packages, crates, Python packages and the rack's kernel
	@tools/setup

build: setup ## builds the onramp command
	cargo build --locked --release --package onramp

demo: build ## runs an incast with and without On-Ramp; prints a table, writes a picture and data to results/demo
	$(ONRAMP) rack run scenarios/incast.toml $(DEMO) --out results/demo --force
	$(PYTHON) figures/incast.py results/demo

test: ## runs all checks and tests, including those in the rack's virtual machine
	tools/test

book: setup ## builds the book of docs/ in target/book/html; a broken link fails
	tools/book/build

facts: setup ## runs all tests in virtual machines, also the variants that make test leaves out
	cargo test --locked --workspace --test daemon -- --include-ignored --skip studies:: --skip soak:: --skip unloaded:: --skip upgrades:: --skip grid::

doors: build ## sends ten million requests (ONRAMP_DOORS) to each door of a daemon; needs root and Linux 6.6
	cargo test --locked --release --package onramp --test doors -- --ignored --nocapture

setup-arm64: ## installs what the targets for arm64 need besides: a compiler, emulators, a kernel
	@tools/setup arm64

test-arm64: setup-arm64 ## runs the tests of the arithmetic on arm64 in emulation, and compares simulations byte by byte
	tools/arm64 cargo test --locked $(ARM64_TESTED:%=--package onramp-%) --lib --tests -- --skip a_network_device_without_a_clock
	tools/same-results

facts-arm64: setup-arm64 ## runs the facts of make test on an arm64 kernel in emulation
	tools/arm64 cargo test --locked --workspace --test daemon

bench: setup ## measures On-Ramp's cost per packet, the simulator's per packet-hop, the clock estimator's per fleet
	cargo bench --locked --package onramp-bench --bench cost
	cargo bench --locked --package onramp-rack --bench vm
	cargo bench --locked --package onramp-sim --package onramp-sync --package onramp-clock

bench-ns3: build ## compares the simulator's speed with that of ns-3; needs Debian's libns3-dev and libgsl-dev
	bench/ns3/run.sh $(ONRAMP)

wheel: setup ## builds the Python package onramp, a wheel for Python 3.11 and later, into target/wheels
	.cache/venv/bin/maturin build --release --locked --manifest-path python/Cargo.toml --out target/wheels

wheel-test: setup ## builds the wheel, installs it into an empty virtual environment, and runs its tests there
	tools/wheel-test

deb: build ## builds the Debian package target/debian/onramp_*.deb; needs dpkg-dev
	tools/deb

rpm: build ## builds the package for distributions with RPM, target/rpm/onramp-*.rpm; needs Debian's package rpm
	tools/rpm

deb-arm64: setup-arm64 ## builds the Debian and the RPM package for arm64, cross-compiled
	tools/arm64 cargo build --locked --release --package onramp
	tools/arm64 tools/deb
	tools/arm64 tools/rpm

package-test: build ## installs, upgrades, removes and purges the package in a chroot; needs root, lintian and mmdebstrap
	tools/package-test

rpm-test: build ## installs, upgrades and removes the RPM package in a root; needs root, rpm and mmdebstrap
	tools/rpm-test

systemd-test: build ## runs the package's unit under a real systemd in a virtual machine; needs root and mmdebstrap
	tools/systemd-test

fleet-vm: build ## makes a fleet of three virtual machines, and suspends, kills and starves them; needs root and mmdebstrap
	tools/fleet-vm

deploy-test: ## checks the container's recipe and the Helm chart with their linters; needs Go, and fetches the linters
	tools/deploy-test

fuzz: ## runs the fuzzers of the parsers for ten minutes each; needs cargo-fuzz
	tools/fuzz

lint: ## checks formatting, clippy, shellcheck, and that each law header compiles on its own
	tools/timed "lint: rustfmt" cargo fmt --all --check
	rustfmt --edition 2021 --check tests/daemon/facts/*.rs # a macro declares these modules, so cargo fmt does not find them
	rustfmt --edition 2021 --check crates/cc/src/nic/*.rs crates/cc/src/tcp/*.rs examples/outside/src/*.rs # likewise
	tools/timed "lint: clippy" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	tools/timed "lint: clippy, no features" cargo clippy --locked --package onramp --no-default-features --quiet -- -D warnings
	tools/timed "lint: shellcheck" shellcheck --severity=warning $(SHELL_SCRIPTS)
	for header in law/*.h law/cc/*.h; do \
		$(CLANG) -x c -std=gnu11 -fsyntax-only $(C_WARNINGS) $$header || exit 1; \
	done

clean: ## removes the results of builds and runs; keeps what setup fetched
	cargo clean
	rm -rf results .cache/vm
