"""Python's PostgreSQL returners over tables that a Brine master writes, and the other way round. Arguments: the master's configuration,
the returner, what to do; for `read`: a jid that Brine published."""

import json
import sys

import salt.config
import salt.loader
from checks import same, true

conf, name, what = sys.argv[1:4]
if what == "has":
    import psycopg2  # noqa: F401

    sys.exit(0)

opts = salt.config.master_config(conf)
opts["grains"] = {}
returners = salt.loader.returners(opts, salt.loader.minion_mods(opts))


def call(function, *args):
    return returners[f"{name}.{function}"](*args)


WRITTEN = "20240102030405123456"

if what == "read":
    jid = sys.argv[4]
    load = call("get_load", jid)
    same("the job", (load["fun"], load["arg"], load["tgt"], load["user"]), ("test.echo", ["süß"], "*", "root"))
    same("who was expected", load["Minions"], ["web1"])
    full = call("get_jid", jid)
    same("who returned", list(full), ["web1"])
    ret = full["web1"]
    same(
        "the return",
        (ret["return"], ret["retcode"], ret["success"], ret["fun"], ret["jid"], ret["id"]),
        ("süß", 0, True, "test.echo", jid, "web1"),
    )
    shown = call("get_jids")[jid]
    same("in the list", (shown["Function"], shown["Target"], shown["User"]), ("test.echo", "*", "root"))
    true("its minion", "web1" in call("get_minions"))
elif what == "write":
    load = {"jid": WRITTEN, "fun": "test.arg", "arg": ["süß", {"a": [1, None]}], "tgt": "db*", "tgt_type": "glob", "user": "ann"}
    call("save_load", WRITTEN, load)
    for minion, value in [("db1", {"args": ["süß"], "n": 1.5}), ("db2", None)]:
        ret = {"jid": WRITTEN, "id": minion, "fun": "test.arg", "fun_args": [], "return": value, "retcode": 0, "success": True}
        call("returner", ret)
    print(json.dumps(WRITTEN))
