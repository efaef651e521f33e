# What CI runs, by the same names. Nothing here is needed for the README's commands.

# List the recipes
[private]
default:
    @just --list --unsorted

# Every check that needs no cluster, cheapest first
check: fmt-check typos lint test otlp stranger generated deny

# Format all Rust code
fmt:
    cargo fmt --all

# Fail if any Rust code is not formatted
fmt-check:
    cargo fmt --all --check

# Look for misspelt words
typos:
    typos

# Clippy over everything, warnings as errors
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# All tests that need no cluster
test:
    cargo test --workspace

# The export of traces, which is a feature of its own
otlp:
    cargo clippy --package windlass --features otlp --all-targets -- -D warnings
    cargo test --package windlass --features otlp --test process

# The example of the SDK's front page in a crate of its own, outside the workspace
stranger:
    cargo test --package windlass --test stranger

# Fail if a generated file differs from what its generator writes
generated:
    cargo metadata --locked --format-version 1 > /dev/null
    cd xtask/testbed && go mod tidy -diff
    cd bench/controller-runtime && go mod tidy -diff

# Licences, sources and duplicate versions of all dependencies
deny:
    cargo deny check bans licenses sources

# A real Kubernetes with a node: smoke test, real-cluster tests (needs root, Go, Node, apt and containerd)
real:
    #!/usr/bin/env bash
    set -euo pipefail
    trap 'cargo xtask kubernetes down --name real' EXIT
    cargo xtask kubernetes up --name real
    cargo xtask kubernetes smoke --name real
    cargo xtask kubernetes load-software --name real
    cargo xtask kubernetes load-operators --name real
    cargo xtask kubernetes test --name real

# A real control plane without a node: the API server's tables must be what it says (needs Go)
control-plane:
    #!/usr/bin/env bash
    set -euo pipefail
    trap 'cargo xtask kubernetes down --name control-plane' EXIT
    cargo xtask kubernetes up --name control-plane --control-plane
    cargo xtask generate --check --name control-plane

# Kubernetes' own conformance specs on the embedded cluster, the part of those known to pass that is quick (needs Go)
conformance:
    cargo xtask conformance --ci
