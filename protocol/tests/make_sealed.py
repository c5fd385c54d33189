"""Makes sealed.json: a sealed publication as docs/PROTOCOL.md §5.5 describes it, by another library than Brine's.

python3 make_sealed.py vectors.json > sealed.json; needs `cryptography` and `msgpack`.
"""

import base64
import hashlib
import json
import sys

import msgpack
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def hkdf(salt, secret, info):
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def number(value):
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def seal(key, nonce, data, content):
    return ChaCha20Poly1305(key).encrypt(bytes(4) + nonce.to_bytes(8, "big"), content, data)


def main():
    pem = json.load(open(sys.argv[1], encoding="utf-8"))["keys"]["master_priv"]
    if "BEGIN" not in pem:
        pem = f"-----BEGIN RSA PRIVATE KEY-----\n{pem.strip()}\n-----END RSA PRIVATE KEY-----\n"
    rsa = serialization.load_pem_private_key(pem.encode(), None)
    numbers = rsa.private_numbers()
    signer = Ed25519PrivateKey.from_private_bytes(
        hkdf(number(numbers.public_numbers.n), number(numbers.d), b"brine publications key 1")
    )
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    public = signer.public_key().public_bytes(*raw)
    statement = f"brine publications key 1\n{public.hex()}\n".encode()

    minion = "vec-minion"
    publish = base64.b64encode(bytes(range(56))).decode()
    session = base64.b64encode(bytes(range(100, 156))).decode()
    serial = 7
    load = {"fun": "test.echo", "arg": ["x"], "tgt": minion, "tgt_type": "glob", "jid": "20261120134740245008", "ret": ""}
    packed = msgpack.packb(load, use_bin_type=True)

    epoch = hashlib.sha256(b"brine epoch 1\0" + publish.encode()).digest()[:16]
    signature = signer.sign(b"brine publication 1\0" + epoch + serial.to_bytes(8, "big") + packed)
    body_key = bytes(range(200, 232))
    body = seal(body_key, 0, b"brine publication body 1\0", signature + packed)
    minion_key = hkdf(publish.encode(), session.encode(), b"brine sealed publication 1")
    wrapped = seal(minion_key, serial, b"brine publication header 1\0" + epoch + minion.encode(), body_key)
    header = b"\x01" + epoch + signer.sign(b"brine epoch 1\0" + epoch) + serial.to_bytes(8, "big") + wrapped
    vector = {
        "id": minion,
        "publish_key": publish,
        "session_key": session,
        "sealed": {
            "key": public.hex(),
            "sig": rsa.sign(statement, padding.PKCS1v15(), hashes.SHA224()).hex(),
        },
        "frames": [hashlib.sha1(minion.encode()).hexdigest().encode().hex(), header.hex(), body.hex()],
        "serial": serial,
        "load": load,
    }
    print(json.dumps(vector, indent=1))


if __name__ == "__main__":
    main()
