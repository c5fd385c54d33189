#!/usr/bin/env python3
"""Writes salt_key.json beside this file: what Python Salt's salt-key prints and leaves behind, for the calls below.

    path/to/venv/bin/python make_salt_key_golden.py

Every call gets a fresh pki_dir with the same keys. Fingerprints are left out where Python Salt 3008 hashes the whole
PEM (PROTOCOL.md §3.9).
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

HERE = pathlib.Path(__file__).parent
SALT_KEY = pathlib.Path(sys.executable).with_name("salt-key")

KEYS = {
    "minions": ["web1", "db1"],
    "minions_pre": ["web2", "web3", "Alpha", "with space", "žluť", "-dash"],
    "minions_rejected": ["bad1"],
    "minions_denied": ["web1", "evil"],
}

CALLS = [
    (["-L"], ""),
    ([], ""),
    (["-L", "--out=json"], ""),
    (["-L", "--out=json", "--out-indent=-1"], ""),
    (["-L", "--out=yaml"], ""),
    (["-L", "--out=nested"], ""),
    (["-L", "--out=txt"], ""),
    (["-L", "--out=raw"], ""),
    (["-L", "--force-color"], ""),
    (["-l", "acc"], ""),
    (["-l", "accepted"], ""),
    (["-l", "pre"], ""),
    (["-l", "un"], ""),
    (["-l", "unaccepted"], ""),
    (["-l", "rej"], ""),
    (["-l", "den"], ""),
    (["-l", "all"], ""),
    (["--list", "acc", "--out=json"], ""),
    (["-l", "bogus"], ""),
    (["-a", "web2"], "y\n"),
    (["-a", "web2"], "\n"),
    (["-a", "web2"], "n\n"),
    (["-a", "web2"], "Yes\n"),
    (["-a", "web2", "-y"], ""),
    (["-y", "-a", "web*"], ""),
    (["-y", "-a", "web2,Alpha"], ""),
    (["-y", "-a", "with space"], ""),
    (["-y", "-a", "*"], ""),
    (["-y", "-A"], ""),
    (["-y", "-a", "nosuch"], ""),
    (["-y", "-a", "db1"], ""),
    (["-y", "-a", "bad1"], ""),
    (["-y", "-a", "bad1", "--include-rejected"], ""),
    (["-y", "-a", "bad1", "--include-all"], ""),
    (["-y", "-a", "evil", "--include-denied"], ""),
    (["-y", "-a", "nosuch", "--include-rejected", "--include-denied"], ""),
    (["-y", "-a", "nosuch", "--include-denied"], ""),
    (["-A", "--include-rejected"], "y\n"),
    (["-r", "web2"], "\n"),
    (["-y", "-r", "web2"], ""),
    (["-y", "-R"], ""),
    (["-y", "-r", "web1"], ""),
    (["-y", "-r", "db1", "--include-accepted"], ""),
    (["-y", "-r", "nosuch", "--include-accepted"], ""),
    (["-y", "-r", "web*", "--include-all"], ""),
    (["-d", "db1"], "\n"),
    (["-d", "db1"], "y\n"),
    (["-y", "-d", "db1"], ""),
    (["-y", "-d", "web1"], ""),
    (["-y", "-d", "web*"], ""),
    (["-y", "-d", "evil"], ""),
    (["-y", "-d", "nosuch"], ""),
    (["-y", "-D"], ""),
    (["-D"], "n\n"),
    (["-y", "-d", "db1", "--rotate-aes-key=False"], ""),
    (["-y", "-r", "web2", "--rotate-aes-key=False"], ""),
    (["-p", "web2"], ""),
    (["-p", "web*"], ""),
    (["-p", "nosuch"], ""),
    (["-P"], ""),
    (["-p", "web2", "--out=json"], ""),
    (["-f", "nosuch"], ""),
    (["-y", "-a", "../web2"], ""),
    (["-y", "-d", "../../x"], ""),
    (["-y", "-a", "[w]eb2"], ""),
    (["-y", "-a", "web?"], ""),
    (["-y", "-a", "!web2"], ""),
    (["-q", "-L"], ""),
    (["-q", "-y", "-a", "web2"], ""),
    (["--bogus"], ""),
    (["-L", "extra"], ""),
]


def pem(seed):
    key = rsa.generate_private_key(65537, 2048)
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode().strip()


def tree(pki):
    out = {}
    for state in ("minions", "minions_pre", "minions_rejected", "minions_denied"):
        folder = pki / state
        out[state] = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return out


def main():
    where = HERE / "salt_key.json"
    old = json.loads(where.read_text()) if where.exists() else {}
    pems = old.get("pems") or [pem(n) for n in range(3)]
    results = []
    for args, stdin in CALLS:
        with tempfile.TemporaryDirectory(prefix="sk") as folder:
            root = pathlib.Path(folder)
            (root / "conf").mkdir()
            (root / "conf/master").write_text(
                f"root_dir: {root}\npki_dir: {root}/pki\ncachedir: {root}/cache\nsock_dir: {root}/sock\nlog_file: {root}/log\nuser: root\nid: m_master\n"
            )
            count = 0
            for state, names in KEYS.items():
                (root / "pki" / state).mkdir(parents=True)
                for name in names:
                    (root / "pki" / state / name).write_text(pems[count % len(pems)])
                    count += 1
            (root / "cache").mkdir()
            done = subprocess.run([SALT_KEY, "-c", root / "conf", *args], input=stdin, capture_output=True, text=True)
            dropfile = root / "cache/.dfn"
            results.append(
                {
                    "args": args,
                    "stdin": stdin,
                    "code": done.returncode,
                    "stdout": done.stdout,
                    "tree": tree(root / "pki"),
                    "dropfile": dropfile.read_text() if dropfile.exists() else None,
                }
            )
            print(args, done.returncode, done.stderr.strip().splitlines()[-1:] )
    where.write_text(json.dumps({"keys": KEYS, "pems": pems, "calls": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
