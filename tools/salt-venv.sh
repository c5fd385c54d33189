#!/bin/sh
# salt-venv.sh LINE DIR: the newest Python Salt of that line (3006, 3007, 3008) in a virtual environment, once. It is the peer of
# the interop tests.
set -eu
line=$1 dir=$2
if [ -x "$dir/bin/salt-master" ] && [ -e "$dir/.complete" ]; then
  # One from before pyinotify was compared with gets it.
  "$dir/bin/python" -c 'import pyinotify' 2>/dev/null || "$dir/bin/pip" --disable-pip-version-check -q install pyinotify >&2 || true
  exit 0
fi
echo "salt-venv: installing Python Salt $line in $dir" >&2
rm -rf "$dir"
python3 -m venv "$dir"
pip="$dir/bin/pip --disable-pip-version-check -q"
# Newer releases pin a certifi that an index may lack. Nothing of Salt needs that very one, so any will do.
$pip install --no-deps "salt==$line.*" >&2
"$dir/bin/python" - > "$dir/requirements.txt" <<'P'
import importlib.metadata as m, re
for r in m.requires("salt") or []:
    if "extra ==" in r: continue
    print("certifi" if re.match(r"certifi\b", r) else r)
P
$pip install -r "$dir/requirements.txt" >&2
# What Salt's salt-api needs, which is not among what Salt says that it needs. Without it nothing is compared with Python's.
$pip install cherrypy >&2 || echo "salt-venv: no CherryPy here" >&2
# What Salt's PostgreSQL returners need. Without it the tests that compare with them do nothing, and say so.
$pip install psycopg2-binary >&2 || echo "salt-venv: no psycopg2 here" >&2
# What Salt's beacon inotify needs.
$pip install pyinotify >&2 || echo "salt-venv: no pyinotify here" >&2
"$dir/bin/salt" --version >&2
: > "$dir/.complete"
