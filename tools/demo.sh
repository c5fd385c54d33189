#!/bin/bash
# The whole way of a job on this machine, on loopback, in a temporary folder: master, minion, key, `salt '*' test.ping`
# answered from the sandbox, a new module fetched on demand, and one that loops for ever being stopped.
# Starts two daemons and ends just those two, by their process ids.
set -eu
bin=${BRINE_BIN:?folder with the programs} examples=${BRINE_EXAMPLES:?folder with the example modules}
PATH=$bin:$PATH
dir=$(mktemp -d /tmp/brine-demo.XXXXXX)
master= minion=

finish() {
  status=$?
  for pid in $minion $master; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  if [ "$status" -ne 0 ]; then
    echo "demo: failed; the logs of master and minion:" >&2
    tail -n 40 "$dir"/*.log >&2 || true
  fi
  rm -rf "$dir"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

title() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
show() { printf '\033[36m$ %s\033[0m\n' "$*"; }
# Waits until a command succeeds; 30 seconds at most.
until_ok() { for _ in $(seq 300); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.1; done; echo "demo: gave up waiting for: $*" >&2; return 1; }

read -r publish_port ret_port < <(python3 -c '
import socket
s = [socket.socket() for _ in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))')

mkdir -p "$dir/conf" "$dir/srv/salt/_modules"
cat > "$dir/conf/master" <<C
interface: 127.0.0.1
publish_port: $publish_port
ret_port: $ret_port
root_dir: $dir
file_roots:
  base: [$dir/srv/salt]
C
cat > "$dir/conf/minion" <<C
id: demo
master: 127.0.0.1
master_port: $ret_port
root_dir: $dir
acceptance_wait_time: 1
# The owner of this host sets the budget of a job.
sandbox:
  limits: {wall: 3s}
C
c=(-c "$dir/conf")
salt() { command salt "${c[@]}" "$@"; }
salt-key() { command salt-key "${c[@]}" "$@"; }
salt-run() { command salt-run "${c[@]}" "$@"; }

title "A master and a minion start"
show "salt-master -c conf &   salt-minion -c conf &"
salt-master "${c[@]}" -l info > "$dir/master.log" 2>&1 & master=$!
salt-minion "${c[@]}" -l info > "$dir/minion.log" 2>&1 & minion=$!
pending() { salt-key -l un | grep -qx demo; }
until_ok pending

title "Its key waits to be accepted"
show "salt-key -y -a demo"
salt-key -y -a demo
answers() { [ "$(salt -t 1 demo test.ping --out=txt 2>/dev/null)" = "demo: True" ]; }
until_ok answers

title "Every job runs in a WebAssembly sandbox"
show "salt '*' test.ping"
salt '*' test.ping
show "salt '*' test.fib 20"
salt '*' test.fib 20
show "salt '*' test.fib twenty         # a wrong type"
salt '*' test.fib twenty || true

title "A new module: one file in file_roots/_modules, fetched when it is first called"
show "cp hello.wasm file_roots/_modules/   &&   salt '*' hello.world Brine"
cp "$examples/hello.wasm" "$dir/srv/salt/_modules/"
salt '*' hello.world Brine
show "salt '*' sys.doc hello"
salt '*' sys.doc hello

title "A module that loops for ever is stopped, and disturbs nobody"
show "cp spin.wasm file_roots/_modules/   &&   salt '*' spin.forever &"
cp "$examples/spin.wasm" "$dir/srv/salt/_modules/"
salt -t 10 '*' spin.forever > "$dir/spin.out" 2>&1 & spin=$!
running() { salt '*' saltutil.running --out=json | grep -q spin.forever; }
until_ok running
show "salt '*' test.ping              # meanwhile"
salt '*' test.ping
wait "$spin" || true
show "fg                              # spin.forever"
cat "$dir/spin.out"

title "What the job used comes with its return"
jid=$(salt --async '*' test.fib 25 | sed 's/.*: *//')
finished() { salt-run jobs.lookup_jid "$jid" | grep -q demo; }
until_ok finished
show "salt-run jobs.print_job $jid"
salt-run jobs.print_job "$jid"

title "Done: both daemons stop"
