# What CI runs, by the same names. Nothing here is needed for the README's commands.

# List the recipes
[private]
default:
    @just --list --unsorted

# Every check that needs no cluster, cheapest first
check: fmt-check typos tidy lint doc api test otlp stranger walk generated deny package

# Format all Rust code
fmt:
    cargo fmt --all

# Fail if any Rust code is not formatted
fmt-check:
    cargo fmt --all --check

# Look for misspelt words
typos:
    typos

# The order of modules, the size of files, unused dependencies, and whether ARCHITECTURE.md names every crate
tidy:
    cargo xtask tidy

# Clippy over everything, warnings as errors
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation of every library, warnings as errors
doc:
    # The command has the SDK's name, so its pages would take the place of the SDK's.
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --lib --package windlass --package windlass-apimachinery --package windlass-cluster
    # Of these, authors read the reference of the commands; their modules are for us, and may point at private ones.
    RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --no-deps --workspace --exclude windlass --exclude windlass-apimachinery --exclude windlass-cluster --exclude windlass-cli

# Fail if what the libraries offer to others is not what their public-api.txt say
api:
    cargo xtask api --check

# All tests that need no cluster
test:
    cargo test --workspace

# The export of traces, which is a feature of its own
otlp:
    cargo clippy --package windlass --features otlp --all-targets -- -D warnings
    cargo test --package windlass --features otlp --test process

# The example of the SDK's front page in a crate of its own, outside the workspace
stranger:
    cargo test --workspace --test stranger

# The tutorial of docs/, executed line by line in a project of its own (needs kubectl and make)
tutorial:
    cargo test --package windlass-cli --test tutorial -- --nocapture

# A new project with kinds of every sort: what is scaffolded compiles, passes its tests and has no warnings
walk:
    cargo test --package windlass-cli --test walk --test cronjob

# The inner loop of an author: dev, run, doctor and a debugger on a project that is compiled (needs gdb and gdbserver)
project:
    cargo test --package windlass-cli --test project -- --nocapture

# Images without Docker: built twice, pushed to a real registry, read by skopeo, run by containerd (needs root, Go, skopeo)
image:
    rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl
    cargo test --package windlass-cli --test image -- --nocapture

# The page in Debian's Chromium: what it shows, how fast, and screenshots in target/screenshots (needs chromium and npm)
browser:
    cargo build
    npm install --prefix "${CARGO_TARGET_DIR:-target}/browser" --no-save --no-package-lock --no-audit --no-fund playwright-core@1.65
    cp xtask/browser/page.mjs "${CARGO_TARGET_DIR:-target}/browser/"
    node "${CARGO_TARGET_DIR:-target}/browser/page.mjs" "${CARGO_TARGET_DIR:-target}/debug/windlass" "${CARGO_TARGET_DIR:-target}/screenshots"

# Attacks on the built control plane, on loopback: what must hold, in less than two minutes (needs unshare and mount)
attack:
    cargo xtask attack --quick

# What is packed, held against Helm, kustomize and the Operator Framework's validators (needs Go)
packaging:
    cargo xtask packaging test --quick

# The same with opm; then the Operator Lifecycle Manager itself installs and upgrades an operator (needs Go, unshare and ip)
packaging-all:
    cargo xtask packaging test
    cargo xtask packaging olm

# Fail if a generated file differs from what its generator writes
generated:
    cargo metadata --locked --format-version 1 > /dev/null
    cd xtask/testbed && go mod tidy -diff
    cd xtask/testbed/oldest && go mod tidy -diff
    cd xtask/registry && go mod tidy -diff
    cd xtask/kwok && go mod tidy -diff
    cd bench/controller-runtime && go mod tidy -diff
    cd xtask/packaging/helm && go mod tidy -diff
    cd xtask/packaging/olm && go mod tidy -diff
    cd xtask/packaging/lifecycle && go mod tidy -diff

# Licences, sources and duplicate versions of all dependencies
deny:
    cargo deny check bans licenses sources

# The systems of most authors: Windows is linked, macOS type-checked (needs rustup, gcc-mingw-w64-x86-64 and cargo-zigbuild)
targets:
    rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin
    cargo build --target x86_64-pc-windows-gnu --package windlass-cli
    cargo-zigbuild check --target aarch64-apple-darwin --workspace

# The tests, type-checked for Windows
windows-tests:
    rustup target add x86_64-pc-windows-gnu
    cargo check --target x86_64-pc-windows-gnu --workspace --tests

# The crates as they would be published, checked where nothing else of the repository is
package:
    #!/usr/bin/env bash
    set -euo pipefail
    packages="${CARGO_TARGET_DIR:-target}/package"
    rm -rf "$packages"
    cargo package --workspace --exclude xtask --exclude windlass-bench --no-verify --allow-dirty
    mkdir "$packages/alone"
    for crate in "$packages"/*.crate; do
        name=$(basename "$crate" .crate)
        tar -xf "$crate" -C "$packages/alone"
        [ -s "$packages/alone/$name/README.md" ] || { echo "$name has no README.md" >&2; exit 1; }
        cmp LICENSE "$packages/alone/$name/LICENSE"
        [ "$(stat -c %s "$crate")" -lt 2000000 ] || { echo "$name is larger than 2 MB" >&2; exit 1; }
    done
    # With our profile and our versions, so that what is built already serves here too.
    {
        printf '[workspace]\nresolver = "3"\nmembers = ["windlass*"]\n\n[patch.crates-io]\n'
        for folder in "$packages"/alone/*/; do
            name=$(basename "$folder")
            echo "${name%-[0-9]*} = { path = \"$name\" }"
        done
        echo
        sed -n '/^\[profile\.dev/,/^$/p' Cargo.toml
    } > "$packages/alone/Cargo.toml"
    cp Cargo.lock "$packages/alone/"
    CARGO_TARGET_DIR="$(realpath "$packages/..")" cargo check --workspace --manifest-path "$packages/alone/Cargo.toml"

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

# What holds for all kinds, on a real control plane over simulated nodes (needs Go)
operators-real:
    cargo build --package xtask
    WINDLASS_XTASK="$(realpath "${CARGO_TARGET_DIR:-target}")/debug/xtask" \
        cargo test --package windlass-operators --test it real_control_plane -- --ignored --test-threads=1

# The oldest Kubernetes that is supported, from source: what holds for all kinds holds there too (needs Go)
oldest:
    cargo build --package xtask
    WINDLASS_XTASK="$(realpath "${CARGO_TARGET_DIR:-target}")/debug/xtask" WINDLASS_KUBERNETES_VERSION=1.30.14 \
        cargo test --package windlass-operators --test it real_control_plane -- --ignored --test-threads=1

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

# The first part of the browser test: the page has what the API server and `windlass top` say (needs chromium and npm)
browser-quick:
    QUICK=1 just browser
