#!/bin/sh
# Tests the modules' logic on the host, and the built modules themselves: what they ask for, their size, their documentation.
#
# Usage: check-modules.sh [OUTDIR]          OUTDIR: where tools/build-modules.sh put them, default target/modules.
# Environment: BRINE_GUEST_TARGET_DIR as for build-modules.sh.
set -eu

absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

root=$(cd "$(dirname "$0")/.." && pwd)
out=$(absolute "${1:-${CARGO_TARGET_DIR:-$root/target}/modules}")
build=$(absolute "${BRINE_GUEST_TARGET_DIR:-$(dirname "$out")/guests}")
host=$(rustc -vV | sed -n 's/^host: //p')
cd "$root/wasm-modules"
export BRINE_MODULES="$out" CARGO_TARGET_DIR="$build"
cargo fmt --all --check
# Clippy's driver compiles them, as in the Makefile's `test`.
CLIPPY_ARGS=-Dwarnings cargo test -q --config 'build.rustc-workspace-wrapper="clippy-driver"' --locked --workspace --target "$host"
