#!/usr/bin/env python3
"""Records what stock Salt makes of states that edit text: reads cases.json and writes answers.json beside it.

Usage: PYTHON text_states.py SALT_CALL FOLDER        FOLDER: where cases.json is
Each case is a state on a file of its own; `ROOT` stands for the folder of the files. An answer has the result, comment
and changes of a dry run and of an apply, and the files after it. What Salt raises is kept as its last line, after `EXC `.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile


def high(cases, root):
    data = {}
    for case in cases:
        module, function = case["state"].split(".")
        args = json.loads(json.dumps(case["args"]).replace("ROOT", root))
        args.setdefault("name", os.path.join(root, case["id"]))
        data[case["id"]] = {
            module: [function] + [{name: value} for name, value in args.items()],
            "__sls__": "cases",
            "__env__": "base",
        }
    return data


def lay(cases, root):
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    for case in cases:
        if case["content"] is not None:
            with open(os.path.join(root, case["id"]), "w", encoding="utf-8", newline="") as file:
                file.write(case["content"])


def files(root, case):
    found = {}
    for name in sorted(os.listdir(root)):
        path = os.path.join(root, name)
        if os.path.isfile(path) and (name == case or name.startswith(case + ".")):
            with open(path, encoding="utf-8", newline="") as file:
                found[name[len(case) :]] = [file.read(), f"{os.stat(path).st_mode & 0o7777:o}"]
    return found


def run(salt_call, config, cases, root, test):
    lay(cases, root)
    command = [salt_call, "--local", "-c", config, "--out=json", "state.high", json.dumps(high(cases, root)), f"test={test}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    returned = json.loads(json.loads(json.dumps(done.stdout)).replace(root, "ROOT"))["local"]
    answers = {}
    for tag, result in returned.items():
        comment = result["comment"]
        if comment.startswith("An exception occurred in this state: Traceback"):
            comment = "EXC " + comment.strip().splitlines()[-1].split(": ", 1)[1]
        answers[tag.split("_|-")[1]] = [result["result"], comment, result["changes"]]
    return answers


def main():
    salt_call, folder = sys.argv[1:]
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    with tempfile.TemporaryDirectory() as work:
        config, root = os.path.join(work, "conf"), os.path.join(work, "root")
        os.makedirs(config)
        with open(os.path.join(config, "minion"), "w", encoding="utf-8") as file:
            json.dump({"file_client": "local", "root_dir": work, "id": "web1", "log_file": os.path.join(work, "log")}, file)
        answers = {}
        dry = run(salt_call, config, cases, root, True)
        applied = run(salt_call, config, cases, root, False)
        for case in (case["id"] for case in cases):
            answers[case] = {"test": dry[case], "apply": applied[case], "files": files(root, case)}
    with open(os.path.join(folder, "answers.json"), "w", encoding="utf-8") as file:
        lines = (f"{json.dumps(case)}: {json.dumps(answer, ensure_ascii=False)}" for case, answer in answers.items())
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
