#!/bin/sh
# Measures the release build. BRINE_BIN names its folder, BRINE_PYTHON the interpreter that has Python Salt. The example in four
# languages is measured where it can be built, and not with --quick. Options are brine-bench's.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
languages=${BRINE_BIN:?folder with the programs}/../languages/bench
build_languages() {
  mkdir -p "$languages"
  RUSTC=$("$root/tools/guest-rustc.sh" "$BRINE_BIN/../guest-rustc")
  export RUSTC
  for language in rust c js python; do
    XDG_CACHE_HOME=$languages/../cache CARGO_TARGET_DIR=$languages/../cargo \
      "$BRINE_BIN/salt-module" build "$root/examples/disk_report/$language" -o "$languages/$language.wasm" ||
      echo "bench: disk_report in $language is left out" >&2
  done
  unset RUSTC
}
cargo build --release --locked -p brine-tests --bin brine-bench
case " $* " in
*" --quick "* | *" --no-sandbox "*) ;;
*)
  build_languages
  export BRINE_LANGUAGES="$languages"
  ;;
esac
exec "$BRINE_BIN/brine-bench" "$@"
