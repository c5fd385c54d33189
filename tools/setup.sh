#!/bin/sh
# Installs from Debian's packages what the build and the tests need and this machine lacks. Says what to do where it may not.
#
# Usage: setup.sh [peers|guard|browser]    peers: also other people's programs that tests compare with, and pass without;
#                                  guard: also what `make bench-guard` counts with; browser: also what the console's tests drive.
set -eu
missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need cc build-essential
need pkg-config pkg-config
need python3 python3
need flock util-linux
# fetches what the console is made of
need curl curl
# for modules in JavaScript
need node nodejs
need npm npm
pkg-config --exists openssl 2>/dev/null || missing="$missing libssl-dev"
python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
if [ "${1:-}" = guard ]; then
  need valgrind valgrind
fi
if [ "${1:-}" = browser ]; then
  need chromium chromium
  need chromedriver chromium-driver
fi
if [ "${1:-}" = peers ]; then
  need minisign minisign
  # Its programs are in no PATH.
  [ -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || missing="$missing postgresql"
fi
[ -z "$missing" ] && exit 0

command -v cargo >/dev/null 2>&1 || { echo "setup: no cargo here: install the Rust toolchain first (rustup.rs)" >&2; exit 1; }
command -v apt-get >/dev/null 2>&1 || { echo "setup: please install:$missing" >&2; exit 1; }
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
echo "setup: installing$missing" >&2
$sudo apt-get update -q >&2
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing >&2
