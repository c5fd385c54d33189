"""LocalClient: what it can do with minions `one` and `two` (Brine's), and `down`, whose key is accepted and which is not there."""

import os
import sys

import salt.client
import salt.exceptions
from checks import CONF, LINE, opts, plain, raises, same, true

BOTH = {"one": True, "two": True}
UP = "one,two"

client = salt.client.LocalClient(CONF)

# --- one call

same("cmd", client.cmd("one", "test.ping"), {"one": True})
same("cmd, a list", client.cmd(["one", "two"], "test.ping", tgt_type="list"), BOTH)
same("cmd, a list as text", client.cmd(UP, "test.ping", tgt_type="list"), BOTH)
same("cmd, an expression", client.cmd("(one|two)$", "test.ping", tgt_type="pcre"), BOTH)
same("cmd, grains", client.cmd("role:web", "test.ping", tgt_type="grain"), {"one": True})
same("cmd, grains by expression", client.cmd("role:w.b", "test.ping", tgt_type="grain_pcre"), {"one": True})
same("cmd, compound", client.cmd("G@role:db or one", "test.ping", tgt_type="compound"), BOTH)
same("cmd, a nodegroup", client.cmd("pair", "test.ping", tgt_type="nodegroup"), BOTH)

nested = {"a": [1, 2.5, {"b": "ünïcödé"}], "c": None}
same("arguments", client.cmd("one", "test.echo", [nested]), {"one": nested})
arg = client.cmd("one", "test.arg", [1, "x"], kwarg={"key": [1, 2]})["one"]
same("arguments by position", arg["args"], [1, "x"])
same("arguments by name", arg["kwargs"]["key"], [1, 2])
full = client.cmd("one", "test.ping", full_return=True)["one"]
same("full_return", (full["ret"], full["retcode"], full["jid"][:2]), (True, 0, "20"))
two = client.cmd("one", ["test.ping", "test.echo"], [[], ["x"]])
same("several functions", plain(two), {"one": {"test.ping": True, "test.echo": "x"}})
same("no minion", client.cmd("nobody", "test.ping"), {})

# --- asynchronous

jid = client.cmd_async("one", "test.echo", ["later"])
true("cmd_async", len(jid) == 20 and jid.isdigit())
job = client.run_job(UP, "test.ping", tgt_type="list", listen=True)
same("run_job", sorted(job["minions"]), ["one", "two"])
rets = {}
for ret in client.get_cli_returns(job["jid"], job["minions"], timeout=15):
    rets.update(ret)
same("get_cli_returns", {name: ret["ret"] for name, ret in rets.items()}, BOTH)

# Python's own job cache knows of a job and never of its returns, which are in the master's store. With the returner `brine` it reads that.
same("get_cache_returns without the returner", client.get_cache_returns(job["jid"]), {})
with_store = opts()
with_store["master_job_cache"] = "brine"
with_store["returner_dirs"] = [sys.argv[2]]
client = salt.client.LocalClient(mopts=with_store)
cached = client.get_cache_returns(job["jid"])
same("get_cache_returns", {name: ret["ret"] for name, ret in cached.items()}, BOTH)
rets = {}
for ret in client.get_cli_returns(job["jid"], job["minions"], timeout=15):
    rets.update(ret)
same("get_cli_returns of a job that is over", {name: ret["ret"] for name, ret in rets.items()}, BOTH)
full = client.get_full_returns(job["jid"], set(job["minions"]), timeout=1)
same("get_full_returns", {name: ret["ret"] for name, ret in full.items()}, BOTH)

# --- one by one

rets = {}
for ret in client.cmd_iter(UP, "test.ping", tgt_type="list"):
    rets.update(ret)
same("cmd_iter", {name: ret["ret"] for name, ret in rets.items()}, BOTH)
rets, waited = {}, 0
for ret in client.cmd_iter_no_block(UP, "test.ping", tgt_type="list"):
    if ret is None:
        waited += 1
        os.sched_yield()
    else:
        rets.update(ret)
    if len(rets) == 2:
        break
same("cmd_iter_no_block", {name: ret["ret"] for name, ret in rets.items()}, BOTH)
subset = client.cmd_subset(UP, "test.ping", subset=1, tgt_type="list")
true("cmd_subset", len(subset) == 1 and set(subset) < set(BOTH))
rets = {}
for ret in client.cmd_batch(UP, "test.ping", tgt_type="list", batch="1"):
    # 3008 says of each batch which minion it was; before that, it is the only key.
    rets.update(ret)
same("cmd_batch", {name: rets[name] for name in rets if name in BOTH}, BOTH)

# --- a minion that is not there

gone = client.cmd("down", "test.ping", timeout=1, gather_job_timeout=1)
# 3008 says so in words, 3007 with False, 3006 leaves it out or says False.
true("a minion that is not there", gone.get("down") is not True)
rets = list(client.cmd_cli("one,down", "test.ping", tgt_type="list", timeout=1, gather_job_timeout=1, show_timeout=True))
states = {name: (ret.get("ret"), ret.get("failed", False)) for each in rets for name, ret in each.items()}
true("who is there answers", states["one"][0] is True)
true("who is not there did not return", "down" in states and states["down"][0] is not True)

# --- a job that takes longer than the timeout: find_job says that it still runs

same("a long job", client.cmd("one", "test.sleep", [4], timeout=1, gather_job_timeout=3), {"one": True})

# --- a wrong key

wrong = salt.client.LocalClient(mopts=opts())
wrong.key = "x" * 76
raises("a wrong key", salt.exceptions.AuthenticationError, lambda: wrong.cmd("one", "test.ping"))
wrong.key = ""
raises("no key", salt.exceptions.AuthenticationError, lambda: wrong.cmd("one", "test.ping"))
same("the right one goes on", client.cmd("one", "test.ping"), {"one": True})
