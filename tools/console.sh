#!/bin/sh
# Fetches what the console of salt-api takes from npm, as api/console/package-lock.json names it. Nothing of it runs here, and
# npm is not needed: a package is a tar file, and counts only with the hash in the lock file.
#
# Usage: console.sh DIR [tests]    DIR gets preact.js, hooks.js and htm.js; tests: also axe.js, which only tests use.
set -eu
DIR=$1
LOCK=$(dirname "$0")/../api/console/package-lock.json
mkdir -p "$DIR"

# Prints a value of a package in the lock file, which npm writes one value a line.
locked() {
  sed -n "/\"node_modules\/$1\": {/,/^    }/s/^      \"$2\": \"\(.*\)\",*\$/\1/p" "$LOCK"
}

# fetch PACKAGE FILE NAME: puts one file of a package into DIR under a name of ours.
fetch() {
  version=$(locked "$1" version)
  integrity=$(locked "$1" integrity)
  mark="$DIR/.$3"
  [ -e "$DIR/$3" ] && [ "$(cat "$mark" 2>/dev/null)" = "$integrity" ] && return
  hash=$(printf %s "${integrity#sha512-}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
  tar=$(mktemp)
  trap 'rm -f "$tar"' EXIT
  curl -fsSL --retry 3 -o "$tar" "https://registry.npmjs.org/$1/-/$1-$version.tgz"
  echo "$hash  $tar" | sha512sum -c --status || { echo "console: $1 $version is not what the lock file says" >&2; exit 1; }
  # Modules name each other by package; a browser needs the file. No source map is served.
  tar -xzOf "$tar" "package/$2" | sed -e 's/from"preact"/from".\/preact.js"/' -e '/^\/\/# sourceMappingURL/d' >"$DIR/.new"
  mv "$DIR/.new" "$DIR/$3"
  printf %s "$integrity" >"$mark"
  rm -f "$tar"
}

if [ "${2:-}" = tests ]; then
  fetch axe-core axe.min.js axe.js
  exit
fi
fetch preact dist/preact.mjs preact.js
fetch preact hooks/dist/hooks.mjs hooks.js
fetch htm dist/htm.mjs htm.js
