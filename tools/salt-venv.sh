#!/bin/sh
# salt-venv.sh VERSION DIR: Python Salt of that version in a virtual environment, once. It is the peer of the interop tests.
set -eu
version=$1 dir=$2
[ -x "$dir/bin/salt-master" ] && [ -e "$dir/.complete" ] && exit 0
echo "salt-venv: installing Python Salt $version in $dir" >&2
rm -rf "$dir"
python3 -m venv "$dir"
pip="$dir/bin/pip --disable-pip-version-check -q"
if ! $pip install "salt==$version" >&2; then
  # Newer releases pin a certifi that an index may lack; nothing of Salt needs that very one.
  echo "salt-venv: its pins cannot be met here; installing without them" >&2
  $pip install --no-deps "salt==$version" >&2
  "$dir/bin/python" - > "$dir/requirements.txt" <<'P'
import importlib.metadata as m, re
for r in m.requires("salt") or []:
    if "extra ==" in r: continue
    print("certifi" if re.match(r"certifi\b", r) else r)
P
  $pip install -r "$dir/requirements.txt" >&2
fi
"$dir/bin/salt" --version >&2
: > "$dir/.complete"
