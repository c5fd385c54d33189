#!/bin/sh
# Prints the path of a rustc that can build for wasm32-unknown-unknown:
#   1. the rustc in use, when it has std for that target;
#   2. the one that an earlier run put under DIR;
#   3. the rustc in use, once rustup has added the target to it;
#   4. where rustup cannot: one put together under DIR from Debian's packages (rustc-web and its sources), with std built from them.
#
# Usage: guest-rustc.sh [DIR]        DIR: default $BRINE_GUEST_RUSTC_DIR, else target/guest-rustc. It can be moved and cached.
# Environment: RUSTC, the rustc in use; BRINE_GUEST_RUSTC=debian leaves out steps 1 and 3.
# Needs for 4: apt-get and dpkg-deb (no root rights, nothing is installed), a rustup toolchain, 1 GB of disk while it works.
set -eu

T=wasm32-unknown-unknown
own=${RUSTC:-rustc}
from=${BRINE_GUEST_RUSTC:-any}

say() { echo "guest-rustc: $*" >&2; }
die() { say "$*"; exit 1; }

has_std() {
  lib=$("$1" --print target-libdir --target $T 2>/dev/null) && ls "$lib"/libcore-*.rlib "$lib"/libstd-*.rlib >/dev/null 2>&1
}

# The linkers (wasm-component-ld, rust-lld) come with the rustup toolchain; lay them where DIR's rustc looks.
link_linkers() {
  sys=$("$own" --print sysroot)
  [ -x "$sys/$bin/wasm-component-ld" ] || die "no wasm-component-ld in $sys: a rustup toolchain is needed (https://rustup.rs)"
  ln -sfn "$sys/$bin" "$1/root/usr/$bin"
}

ready() { [ -x "$dir/rustc" ] && has_std "$dir/rustc"; }

command -v "$own" >/dev/null || die "no $own: install Rust (https://rustup.rs)"
if [ "$from" != debian ] && has_std "$own"; then command -v "$own"; exit 0; fi

dir=${1:-${BRINE_GUEST_RUSTC_DIR:-target/guest-rustc}}
mkdir -p "$(dirname "$dir")"
dir=$(cd "$(dirname "$dir")" && pwd)/$(basename "$dir")
host=$("$own" -vV | sed -n 's/^host: //p')
bin=lib/rustlib/$host/bin
multiarch=$(echo "$host" | sed 's/-unknown//')

if ready; then link_linkers "$dir"; echo "$dir/rustc"; exit 0; fi

# One at a time; who waited finds the other's work.
if command -v flock >/dev/null; then
  exec 9>"$dir.lock"
  flock -n 9 || { say "waiting for another run of this script"; flock 9; }
fi
if ready; then link_linkers "$dir"; echo "$dir/rustc"; exit 0; fi
if [ "$from" != debian ] && has_std "$own"; then command -v "$own"; exit 0; fi

if [ "$from" != debian ] && command -v rustup >/dev/null && command -v timeout >/dev/null; then
  say "rustup target add $T"
  if RUSTUP_MAX_RETRIES=0 timeout 60 rustup target add $T >&2 9>&- && has_std "$own"; then command -v "$own"; exit 0; fi
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "no std for $T: run 'rustup target add $T'"

say "no std for $T here; putting one together from Debian's rustc-web (about 140 MB) in $dir"
tmp=$dir.tmp
rm -rf "$tmp"
mkdir -p "$tmp/deb" "$tmp/root" "$tmp/std/src" "$tmp/apt/lists/partial" "$tmp/apt/cache/archives/partial"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# apt with lists of its own: the system's may be missing or stale, and changing them would need root.
apt() {
  command=$1
  shift
  "$command" -q -o Dir::State::Lists="$tmp/apt/lists" -o Dir::Cache="$tmp/apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" "$@" 9>&-
}
apt apt-get update >&2 || die "apt-get update failed"

v=$(apt apt-cache policy rustc-web | sed -n 's/ *Candidate: //p')
case $v in "" | "(none)") die "this release has no rustc-web: run 'rustup target add $T'" ;; esac
series=${v%%+*}
series=${series%.*}
std=libstd-rust-web-$series
llvm=$(apt apt-cache show "$std=$v" | sed -n 's/^Depends:.*\(libllvm[0-9]*\).*/\1/p' | head -n 1)
# What LLVM needs and this system lacks (libz3-4, libedit2, libxml2 …): apt knows.
lacking=$(apt apt-get -s --no-install-recommends install "$llvm" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vx -e libc6 -e "$llvm" || true)
# shellcheck disable=SC2086 # a list of package names
(cd "$tmp/deb" && apt apt-get download "rustc-web=$v" "rust-web-src=$v" "libstd-rust-web-dev=$v" "$std=$v" "$llvm" $lacking >&2) ||
  die "the packages could not be had"
for deb in "$tmp"/deb/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp/root" --exclude='./usr/share/doc' --exclude='./usr/share/locale' \
    --exclude='*/src/llvm-project' --exclude='*/compiler'
done
rm -rf "$tmp/deb" "$tmp/apt"

cat >"$tmp/rustc" <<W
#!/bin/sh
here=\$(cd "\$(dirname "\$0")" && pwd)
lib=\$here/root/usr/lib/$multiarch
LD_LIBRARY_PATH="\$lib:\$here/root/lib/$multiarch\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "\$here/root/usr/bin/rustc" "\$@"
W
chmod +x "$tmp/rustc"
link_linkers "$tmp"
"$tmp/rustc" -V >&2 || die "Debian's rustc does not run here"

# std for the target, built once from the sources of this very rustc, in the form rustup ships it.
: >"$tmp/std/src/lib.rs"
cat >"$tmp/std/Cargo.toml" <<'W'
[package]
name = "std-only"
version = "0.0.0"
edition = "2024"
[workspace]
[profile.release]
panic = "abort"
opt-level = "s"
codegen-units = 1
W
(cd "$tmp/std" && env -u CARGO_ENCODED_RUSTFLAGS RUSTC="$tmp/rustc" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$tmp/std/target" \
  RUSTFLAGS="-Cembed-bitcode=yes --remap-path-prefix=$tmp=/guest-rustc --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
  cargo build -q --release --target $T -Zbuild-std=std,panic_abort -Zbuild-std-features= >&2 9>&-)
out=$tmp/root/usr/lib/rustlib/$T/lib
mkdir -p "$out"
for rlib in "$tmp/std/target/$T"/release/deps/*.rlib; do
  case $rlib in *libstd_only*) ;; *) cp "$rlib" "$out/" ;; esac
done
rm -rf "$tmp/std" "$tmp/root/usr/src"
has_std "$tmp/rustc" || die "the std did not come together"

rm -rf "$dir"
mv "$tmp" "$dir"
trap - EXIT
echo "$dir/rustc"
