"""Makes content.json: an answer with content as docs/PROTOCOL.md §6.5.2 describes it, by another library than Brine's.

python3 make_content.py > content.json; needs `cryptography` and `msgpack`.
"""

import base64
import json

import msgpack
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def main():
    minion = "vec-minion"
    session = base64.b64encode(bytes(range(100, 156))).decode()
    mac, salt = bytes(range(32)), bytes(range(60, 92))
    first, second = bytes(range(256)) * 2, b"second\n"
    fields = {"data": len(first), "dest": "a/b", "also": [{"data": len(second), "dest": "c"}]}
    packed = msgpack.packb(fields, use_bin_type=False)
    plain = first + second + packed + len(packed).to_bytes(4, "big")
    key = HKDF(hashes.SHA256(), 32, salt, b"brine file content 1").derive(session.encode())
    data = b"brine file content 1\0answer\0" + mac + minion.encode()
    vector = {
        "id": minion,
        "session_key": session,
        "mac": mac.hex(),
        "salt": salt.hex(),
        "first": first.hex(),
        "second": second.hex(),
        "answer": (b"\xc1\x01" + salt + AESGCM(key).encrypt(bytes(12), plain, data)).hex(),
    }
    print(json.dumps(vector, indent=1))


if __name__ == "__main__":
    main()
