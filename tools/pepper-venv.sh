#!/bin/sh
# pepper-venv.sh DIR: pepper, a client of salt-api, in a virtual environment of its own, once. The interop tests run it.
# Not beside Python Salt: there it would print as Salt's outputters do.
set -eu
dir=$1
[ -e "$dir/.complete" ] && exit 0
echo "pepper-venv: installing pepper in $dir" >&2
rm -rf "$dir"
python3 -m venv "$dir"
"$dir/bin/pip" --disable-pip-version-check -q install salt-pepper==0.7.6 >&2
"$dir/bin/pepper" --version >&2
: > "$dir/.complete"
