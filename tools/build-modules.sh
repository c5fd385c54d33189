#!/bin/sh
# Builds the standard modules into OUTDIR, and the examples and the tests' own modules beside it, as components with their
# documentation inside.
# Does nothing when nothing changed since the last time.
#
# Usage: build-modules.sh [OUTDIR]          OUTDIR: default target/modules; the examples go to OUTDIR/../examples,
#   what only tests use to OUTDIR/../testing.
# Environment: BRINE_GUEST_RUSTC_DIR, where tools/guest-rustc.sh puts a rustc if it has to;
#   BRINE_GUEST_TARGET_DIR, cargo's folder for this (default OUTDIR/../guests); SALT_MODULE, a salt-module that is built.
set -eu

absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

root=$(cd "$(dirname "$0")/.." && pwd)
target=$(absolute "${CARGO_TARGET_DIR:-$root/target}")
rustc_dir=$(absolute "${BRINE_GUEST_RUSTC_DIR:-$target/guest-rustc}")
mkdir -p "${1:-$target/modules}"
out=$(cd "${1:-$target/modules}" && pwd)
parent=$(dirname "$out")
build=$(absolute "${BRINE_GUEST_TARGET_DIR:-$parent/guests}")
stamp=$out/.built
cd "$root/wasm-modules"

# FOLDER RESULT, a line for each module; a module is a folder with a world.
modules() {
  for world in */wit/world.wit; do
    folder=${world%/wit/world.wit}
    [ "$folder" = sdk ] || echo "$folder $out/$folder.wasm"
  done
  for world in examples/*/wit/world.wit testing/*/wit/world.wit; do
    folder=${world%/wit/world.wit}
    [ ! -f "$world" ] || echo "$folder $parent/$folder.wasm"
  done
}

# What the result depends on beside the files looked at below.
wanted=$(modules; "${RUSTC:-rustc}" -vV)
unchanged() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] || return 1
  modules | while read -r _ result; do [ -f "$result" ] || exit 1; done || return 1
  # Folders are looked at too: their time tells of a removed file.
  [ -z "$(find . ../wit ../tools/build-modules.sh ../tools/guest-rustc.sh ../sandbox/component/src \
    -path ./target -prune -o -newer "$stamp" -print -quit)" ]
}
if unchanged; then exit 0; fi
mkdir -p "$parent/examples" "$parent/testing" "$build"
# Taken now: what changes while this runs is newer.
touch "$build/started"

rustc=$("$root/tools/guest-rustc.sh" "$rustc_dir")
# The same bytes wherever this tree and cargo's home are.
flags=$(printf -- '--remap-path-prefix=%s=/cargo\037--remap-path-prefix=%s=/brine\037--remap-path-prefix=%s=/target' \
  "${CARGO_HOME:-$HOME/.cargo}" "$root" "$build")
RUSTC=$rustc CARGO_ENCODED_RUSTFLAGS=$flags CARGO_TARGET_DIR=$build cargo build --release --locked

if [ -z "${SALT_MODULE:-}" ]; then
  (cd "$root" && cargo build -q --locked -p brine-component --bin salt-module)
  SALT_MODULE=$target/debug/salt-module
fi
# What was a module the last time and is none now goes; in a folder that was copied, the stamp still names the first one's files.
[ ! -f "$stamp" ] || sed -n 's/^[^ ]* \(.*\.wasm\)$/\1/p' "$stamp" | while read -r result; do
  case $wanted in *" $result"*) ;; *) case $result in "$parent"/*) rm -f "$result" ;; esac ;; esac
done
modules | while read -r folder result; do
  name=$(basename "$folder")
  "$SALT_MODULE" docs "$build/wasm32-unknown-unknown/release/$name.wasm" --wit "$folder/wit" -o "$build/$name.wasm"
  # Files that stay the same keep their time; a new one appears whole.
  cmp -s "$build/$name.wasm" "$result" || { cp "$build/$name.wasm" "$result.tmp" && mv "$result.tmp" "$result"; }
done
echo "$wanted" >"$build/stamp"
touch -r "$build/started" "$build/stamp"
mv "$build/stamp" "$stamp"
