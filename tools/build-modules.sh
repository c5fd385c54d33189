#!/bin/sh
# Builds the standard modules into OUTDIR, and the examples and the tests' own modules beside it, as components with their
# documentation inside. The standard modules are signed with a key made for this build: its public half goes beside them, as
# standard.pub, the secret half is gone when this ends.
# Does nothing when nothing changed since the last time.
#
# Usage: build-modules.sh [OUTDIR [MODULE...]]
#   OUTDIR: default target/modules; the examples go to OUTDIR/../examples, what only tests use to OUTDIR/../testing.
#   MODULE: the folder of a module to build (test, examples/hello); default all.
# Environment: BRINE_GUEST_RUSTC_DIR, where tools/guest-rustc.sh puts a rustc if it has to;
#   BRINE_GUEST_TARGET_DIR, cargo's folder for this (default OUTDIR/../guests); SALT_MODULE, a salt-module that is
#   built; PROFILE, cargo's profile for building one (default dev). The modules themselves are optimized in each; in dev and demo not
#   across crates: they are a sixth larger, and built in less than half of the time.
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
profile=${PROFILE:-dev}
case $profile in dev | demo) guests=quick ;; *) guests=release ;; esac
[ $# = 0 ] || shift
chosen=$*
cd "$root/wasm-modules"

# FOLDER RESULT, a line for each module to build.
modules() {
  all_modules | while read -r folder result; do
    case " ${chosen:-$folder} " in *" $folder "*) echo "$folder $result" ;; esac
  done
}

# The same for every module; a module is a folder with a world.
all_modules() {
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
wanted=$(echo "$guests"; modules; "${RUSTC:-rustc}" -vV)
unchanged() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && [ -f "$out/standard.pub" ] || return 1
  modules | while read -r _ result; do [ -f "$result" ] || exit 1; done || return 1
  # Folders are looked at too: their time tells of a removed file.
  [ -z "$(find . ../wit ../tools/build-modules.sh ../tools/guest-rustc.sh ../sandbox/component/src ../author/src/docs.rs ../protocol/addresses ../protocol/patterns ../protocol/text \
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
packages=$(modules | sed 's|^[^ ]*/||; s|^\([^ /]*\).*|-p brine-module-\1|')
# shellcheck disable=SC2086 # a list of options
RUSTC=$rustc CARGO_ENCODED_RUSTFLAGS=$flags CARGO_TARGET_DIR=$build cargo build --profile $guests --locked $packages

if [ -z "${SALT_MODULE:-}" ]; then
  # In the profile that all else is built in: it shares most of its crates with the minion.
  (cd "$root" && cargo build -q --locked --profile "$profile" -p brine-author --bin salt-module)
  if [ "$profile" = dev ]; then SALT_MODULE=$target/debug/salt-module; else SALT_MODULE=$target/$profile/salt-module; fi
fi
# What was a module the last time and is none now goes; in a folder that was copied, the stamp still names the first one's files.
[ ! -f "$stamp" ] || sed -n 's/^[^ ]* \(.*\.wasm\)$/\1/p' "$stamp" | while read -r result; do
  case $wanted in *" $result"*) ;; *) case $result in "$parent"/*) rm -f "$result" "$result.minisig" ;; esac ;; esac
done
modules | while read -r folder result; do
  name=$(basename "$folder")
  "$SALT_MODULE" docs "$build/wasm32-unknown-unknown/$guests/$name.wasm" --wit "$folder/wit" -o "$build/$name.wasm"
  # Files that stay the same keep their time; a new one appears whole.
  cmp -s "$build/$name.wasm" "$result" || { cp "$build/$name.wasm" "$result.tmp" && mv "$result.tmp" "$result"; }
done

# In memory where there is such a folder.
keys=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "$build")/brine-keys.XXXXXX")
trap 'rm -rf "$keys"' EXIT
trap 'exit 130' INT TERM
"$SALT_MODULE" keygen --no-password -o "$keys/standard" >"$keys/said" || { cat "$keys/said" >&2; exit 1; }
cp "$out"/*.wasm "$keys"
"$SALT_MODULE" sign --key "$keys/standard.key" "$keys"/*.wasm >"$keys/said" || { cat "$keys/said" >&2; exit 1; }
rm -f "$keys/standard.key"
# Where the key is, all have to fit it: so it goes first and comes last.
rm -f "$out/standard.pub"
for signature in "$keys"/*.minisig; do
  cp "$signature" "$out/signature.tmp" && mv "$out/signature.tmp" "$out/$(basename "$signature")"
done
cp "$keys/standard.pub" "$out/standard.tmp" && mv "$out/standard.tmp" "$out/standard.pub"
rm -rf "$keys"

echo "$wanted" >"$build/stamp"
touch -r "$build/started" "$build/stamp"
mv "$build/stamp" "$stamp"
