#!/bin/sh
# Measures the release build. BRINE_BIN names its folder.
set -eu
cargo run -q --release --locked -p brine-tests --bin brine-bench
