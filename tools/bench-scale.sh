#!/bin/sh
# Measures a master with 100, 1,000 and 10,000 simulated minions; BRINE_BIN names the folder of a release build. What follows goes to
# `brine-swarm bench`, such as `-n 100` or `--steps ping`. What keys are made of is kept in BRINE_SWARM_KEYS.
set -eu
bin=${BRINE_BIN:?folder with the programs}
exec "$bin/brine-swarm" bench --bin "$bin" --keys "${BRINE_SWARM_KEYS:-$bin/../swarm-keys}" "$@"
