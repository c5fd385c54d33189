#!/usr/bin/env python3
"""Records what stock Salt makes of states of /etc/hosts, keys and kernel parameters: fills in the answers in host.json.

Usage: PYTHON host_states.py SALT_CALL host.json      as root; runs in a mount namespace of its own, with /etc and /root overlaid
"""

import json
import os
import subprocess
import sys
import tempfile

# What is there before. The test lays down the same.
BEFORE = r"rm -rf /root/.ssh; printf '127.0.0.1\tlocalhost\n# own\n\n10.0.0.9 old # c\n' > /etc/hosts"
OVERLAY = """mount -t tmpfs layer "$0"
for d in etc root; do
  mkdir "$0/$d" "$0/$d.work"
  mount -t overlay layer -o "lowerdir=/$d,upperdir=$0/$d,workdir=$0/$d.work" "/$d"
done
mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
"""


def run(salt_call, cases, test):
    high = {}
    for case in cases:
        module, function = case["state"].split(".")
        args = [{"order": len(high) + 1}] + [{name: value} for name, value in case["args"].items()]
        high[case["id"]] = {module: [function, *args], "__sls__": "cases", "__env__": "base"}
    with tempfile.TemporaryDirectory() as work:
        config, layer = os.path.join(work, "conf"), os.path.join(work, "layer")
        os.makedirs(config)
        os.makedirs(layer)
        with open(os.path.join(config, "minion"), "w", encoding="utf-8") as file:
            json.dump({"file_client": "local", "root_dir": work, "id": "web1", "log_file": os.path.join(work, "log")}, file)
        line = f'set -e; {OVERLAY}{BEFORE}; exec "$@"'
        call = [salt_call, "--local", "-c", config, "--out=json", "state.high", json.dumps(high), f"test={test}"]
        done = subprocess.run(["unshare", "-m", "sh", "-c", line, layer, *call], capture_output=True, text=True, check=False)
    answers = {}
    for tag, result in json.loads(done.stdout)["local"].items():
        comment = result["comment"]
        if comment.startswith("An exception occurred in this state: Traceback"):
            comment = "EXC " + comment.strip().splitlines()[-1].split(": ", 1)[1]
        answers[tag.split("_|-")[1]] = [result["result"], comment, result["changes"], result.get("warnings", [])]
    return answers


def main():
    salt_call, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    dry, applied = run(salt_call, cases, True), run(salt_call, cases, False)
    for case in cases:
        case["test"], case["apply"] = dry[case["id"]], applied[case["id"]]
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
