# The commands of this repository. `make demo` and `make test` set everything up themselves.

CLANG ?= clang-19
export CLANG

ONRAMP := $(or $(CARGO_TARGET_DIR),target)/release/onramp
PYTHON := .cache/venv/bin/python
C_WARNINGS := -Wall -Wextra -Werror -Wno-unused-function
SHELL_SCRIPTS := tools/setup tools/test tools/vm tools/record .ci/run crates/rack/src/vm/init.sh bench/ns3/run.sh

# What `make demo` changes in scenarios/incast.toml, as --set arguments.
DEMO ?=

.PHONY: help setup build demo test bench bench-ns3 lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-9s  %s\n", $$1, $$2 }' Makefile

setup: ## installs what is missing: Debian packages, crates, Python packages, the rack's kernel
	@tools/setup

build: setup ## builds the onramp command
	cargo build --locked --release --package onramp

demo: build ## runs an incast with and without On-Ramp: a table, a picture and its data in results/demo
	$(ONRAMP) rack run scenarios/incast.toml $(DEMO) --out results/demo --force
	$(PYTHON) figures/incast.py results/demo

test: setup ## checks everything, in the rack's virtual machine too
	tools/test

bench: setup ## measures what On-Ramp costs a packet, the simulator a packet-hop, the estimator a fleet
	cargo bench --locked --package onramp-bench --bench cost
	cargo bench --locked --package onramp-rack --bench vm
	cargo bench --locked --package onramp-sim --package onramp-sync

bench-ns3: build ## compares the simulator's speed with ns-3's; needs Debian's libns3-dev, libgsl-dev
	bench/ns3/run.sh $(ONRAMP)

lint: ## formatting, clippy, shellcheck, and each law header on its own
	cargo fmt --all --check
	rustfmt --edition 2021 --check tests/daemon/facts/*.rs # a macro declares them, which cargo fmt does not see
	rustfmt --edition 2021 --check crates/cc/src/nic/*.rs crates/cc/src/tcp/*.rs # the same
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	cargo clippy --locked --package onramp --no-default-features --quiet -- -D warnings
	shellcheck --severity=warning $(SHELL_SCRIPTS)
	for header in law/*.h; do \
		$(CLANG) -x c -std=gnu11 -fsyntax-only $(C_WARNINGS) $$header || exit 1; \
	done

clean: ## removes what builds and runs made; keeps what setup fetched
	cargo clean
	rm -rf results .cache/vm
