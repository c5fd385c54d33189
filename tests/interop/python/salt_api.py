"""salt-api, Python's or ours, in front of a Brine master; the permissions are in access.rs. Minions: `one` (role web), `two` (db)."""

import json
import os
import sys
import urllib.error
import urllib.request

from checks import LINE, bus, opts, same, true

URL = f"http://127.0.0.1:{sys.argv[3]}"


def ask(path, body=None, token=None, method=None):
    """Status and JSON of a request."""
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if token:
        headers["X-Auth-Token"] = token
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, None


def login(name, password, eauth="file"):
    return ask("/login", dict(username=name, password=password, eauth=eauth))


def low(token, **call):
    """The return of one lowstate chunk."""
    status, answer = ask("/", [call], token)
    same(f"{call['client']} {call['fun']}", status, 200)
    return answer["return"][0]


# --- log-ins

status, answer = login("fred", "fred-secret")
same("/login", (status, answer["return"][0]["user"], answer["return"][0]["eauth"]), (200, "fred", "file"))
true("its permissions", "test.*" in answer["return"][0]["perms"])
fred = answer["return"][0]["token"]
ann = login("ann", "ann-secret")[1]["return"][0]["token"]
same("sharedsecret", login("any", "front-end-secret", "sharedsecret")[0], 200)
for what, who in {
    "a wrong password": ("fred", "wrong-secret"),
    "an unknown user": ("eve", "fred-secret"),
    "a system that lets anybody in": ("fred", "x", "auto"),
}.items():
    same(f"/login with {what}", login(*who)[0], 401)

# --- clients

both = {"one": True, "two": True}
same("local", low(fred, client="local", tgt="*", fun="test.ping"), both)
same("local, arguments", low(fred, client="local", tgt="one", fun="test.echo", arg=["ünïcödé"]), {"one": "ünïcödé"})
named = low(fred, client="local", tgt="one", fun="test.arg", arg=[1], kwarg={"key": [2]})["one"]
same("local, arguments by name", (named["args"], named["kwargs"]["key"]), ([1], [2]))
same("local, grains", low(fred, client="local", tgt="role:db", tgt_type="grain", fun="test.ping"), {"two": True})
same("local_subset", len(low(fred, client="local_subset", tgt="*", fun="test.ping", subset=1)), 1)
batch = ask("/", [dict(client="local_batch", tgt="*", fun="test.ping", batch="1")], fred)[1]["return"]
same("local_batch", {name: each[name] for each in batch for name in each if name in both}, both)
job = low(fred, client="local_async", tgt="*", fun="test.echo", arg=["later"])
same("local_async", sorted(job["minions"]), ["one", "two"])
true("runner", job["jid"] in low(fred, client="runner", fun="jobs.list_jobs"))
started = low(fred, client="runner_async", fun="jobs.active")
same("runner_async", started["tag"], f"salt/run/{started['jid']}")
wheel = low(fred, client="wheel", fun="key.list_all")["data"]
same("wheel", (wheel["success"], sorted(wheel["return"]["minions"])), (True, ["one", "two"]))
finger = low(fred, client="wheel", fun="key.finger", match="one")["data"]["return"]
same("wheel, an argument", list(finger["minions"]), ["one"])
status, answer = ask("/run", [dict(client="local", tgt="one", fun="test.ping", username="fred", password="fred-secret", eauth="file")])
same("/run", (status, answer), (200, {"return": [{"one": True}]}))

# --- what there is to see

minions = ask("/minions", token=fred)[1]["return"][0]
same("/minions", {name: minions[name]["role"] for name in minions}, {"one": "web", "two": "db"})
same("/minions/one", list(ask("/minions/one", token=fred)[1]["return"][0]), ["one"])
status, answer = ask("/minions", [dict(tgt="one", fun="test.ping")], fred)
same("POST /minions", (status, len(answer["return"][0]["jid"])), (202, 20))
true("/jobs", job["jid"] in ask("/jobs", token=fred)[1]["return"][0])
with bus() as events:
    # The last return is stored before its event comes.
    done = low(fred, client="local", tgt="one", fun="test.echo", arg=["kept"], full_return=True)["one"]["jid"]
info = ask(f"/jobs/{done}", token=fred)[1]
same("/jobs/JID", (info["info"][0]["Function"], info["return"][0]["one"]), ("test.echo", "kept"))
same("/keys", sorted(ask("/keys", token=fred)[1]["return"]["minions"]), ["one", "two"])
same("/keys/one", list(ask("/keys/one", token=fred)[1]["return"]["minions"]), ["one"])

# --- events, as a browser reads them

request = urllib.request.Request(f"{URL}/events", headers={"X-Auth-Token": fred})
with urllib.request.urlopen(request, timeout=60) as stream:
    same("/events", stream.headers["Content-Type"].split(";")[0], "text/event-stream")
    # The stream begins when it is subscribed.
    while not stream.readline().startswith(b"retry"):
        pass
    status, answer = ask("/minions", [dict(tgt="one", fun="test.ping")], fred)
    wanted = f"salt/job/{answer['return'][0]['jid']}/ret/one"
    for line in stream:
        if line.startswith(b"data:") and json.loads(line[5:])["tag"] == wanted:
            same("the event of a return", json.loads(line[5:])["data"]["return"], True)
            break

# --- who may not

same("without a token", ask("/", [dict(client="local", tgt="*", fun="test.ping")])[0], 401)
for path in ("/minions", "/jobs", "/keys"):
    same(f"{path} without a token", ask(path)[0], 401)
same("an unknown token", ask("/minions", token="0" * 40)[0], 401)
same("/events with an unknown token", ask("/events", token="0" * 40)[0], 401)
ping = dict(client="local", tgt="one", fun="test.ping")
same("/run without a log-in", ask("/run", [ping])[0], 401)
same("/run with a wrong password", ask("/run", [dict(ping, username="fred", password="x", eauth="file")])[0], 401)
same("/run with an unknown token", ask("/run", [dict(ping, token="0" * 64)])[0], 401)
same("ann may that", low(ann, **ping), {"one": True})
for what, call in {
    "a function": dict(client="local", tgt="one", fun="test.arg"),
    "a minion": dict(client="local", tgt="two", fun="test.ping"),
    "local_async": dict(client="local_async", tgt="*", fun="test.ping"),
    "a runner": dict(client="runner", fun="manage.up"),
    "runner_async": dict(client="runner_async", fun="manage.up"),
    "the wheel": dict(client="wheel", fun="key.delete", match="two"),
}.items():
    status, answer = ask("/", [call], ann)
    # salt-api makes a refusal that is found out late a text in a good answer.
    refused = status in (401, 403) or "rror" in json.dumps(answer) or "ailure" in json.dumps(answer) or answer == {"return": [{}]}
    true(f"ann may not: {what}", refused)
same("nothing was deleted", sorted(ask("/keys", token=fred)[1]["return"]["minions"]), ["one", "two"])

# --- the end of a session: the token goes with it

tokens = f"{opts()['cachedir']}/tokens"
before = set(os.listdir(tokens))
same("/logout", ask("/logout", {}, fred)[0], 200)
same("after it", ask("/minions", token=fred)[0], 401)
# Python's salt-api removes the file that it looks for, the master both of a token.
gone = {name.removesuffix(".p") for name in before - set(os.listdir(tokens))}
same("the token's file is gone", len(gone), 1)
text = gone.pop()
same("the master takes it no more", ask("/run", [dict(ping, token=text)])[0], 401)
