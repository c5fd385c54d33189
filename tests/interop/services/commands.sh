# Scripts for cmd.script.
set -eu
rm -rf /run/systemd
printf '#!/bin/sh\necho args "$#" "$1" "$2"\npwd\nid -un\n' > /tmp/brine-script.sh
echo 'echo without an interpreter' > /tmp/brine-plain
mkdir -p /srv/salt
printf '#!/bin/sh\necho {{ grains.id }} {{ a }} {{ c }} "$@"\n' > /srv/salt/t.sh
