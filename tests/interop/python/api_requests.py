"""Python's requests with salt-api: a session that keeps the cookie, as Salt's documentation has it."""

import json
import sys

import requests

URL, CERTIFICATE, PASSWORD = sys.argv[1:]


def same(what, got, expect):
    if got != expect:
        sys.exit(f"{what}: got {got!r}, expected {expect!r}")
    print(f"ok: {what}")


session = requests.Session()
# A proxy or another certificate of the machine is not meant here.
session.trust_env = False
session.verify = CERTIFICATE
creds = dict(username="ann", password=PASSWORD, eauth="sharedsecret")
ping = dict(client="local", tgt="one", fun="test.ping")

same("GET /, nobody yet", session.get(URL).json()["return"], "Welcome")
same("POST / before the log-in", session.post(URL, json=ping).status_code, 401)

answer = session.post(f"{URL}/login", json=creds)
same("/login", answer.status_code, 200)
same("its token is the cookie", session.cookies["session_id"], answer.json()["return"][0]["token"])
same("and in the header", answer.headers["X-Auth-Token"], answer.json()["return"][0]["token"])

call = dict(client="local", tgt="one", fun="test.arg", arg=["foo", "bar"], kwarg={"baz": "Baz!"})
answer = session.post(URL, json=[call])
returned = answer.json()["return"][0]["one"]
same("a call", (returned["args"], returned["kwargs"]["baz"]), (["foo", "bar"], "Baz!"))
same("a form", session.post(URL, data=ping).json(), {"return": [{"one": True}]})
same("JSON as text", session.post(URL, data=json.dumps(ping), headers={"Content-Type": "text/plain"}).json(), {"return": [{"one": True}]})
same("two chunks", session.post(URL, json=[ping, dict(ping, tgt="two")]).json(), {"return": [{"one": True}, {"two": True}]})
same("/minions/two", list(session.get(f"{URL}/minions/two").json()["return"][0]), ["two"])
answer = session.post(f"{URL}/minions", json=[dict(tgt="*", fun="test.ping")])
same("POST /minions", answer.status_code, 202)
same("/keys", session.get(f"{URL}/keys").json()["return"]["minions"], ["down", "one", "two"])

# A stream over the same session: the events of a job that begins meanwhile.
with session.get(f"{URL}/events", stream=True, timeout=30) as stream:
    lines = stream.iter_lines(decode_unicode=True)
    same("a stream begins", next(lines), "retry: 400")
    job = session.post(URL, json=dict(ping, client="local_async")).json()["return"][0]
    wanted = f"tag: salt/job/{job['jid']}/ret/one"
    for line in lines:
        if line == wanted:
            data = json.loads(next(lines).removeprefix("data: "))
            same("the event of the return", (data["tag"], data["data"]["return"]), (wanted.removeprefix("tag: "), True))
            break

same("/logout", session.post(f"{URL}/logout").json(), {"return": "Your token has been cleared"})
same("the cookie is gone", "session_id" in session.cookies, False)
same("nobody again", session.get(f"{URL}/minions").status_code, 401)
