"""RunnerClient and WheelClient over the master, by its own key. Minions: `one` and `two` (Brine's), and `new`, whose key is pending."""

import salt.client
import salt.runner
import salt.utils.minions
import salt.wheel
from checks import CONF, LINE, bus, opts, plain, same, true

with open(f"{opts()['cachedir']}/.root_key") as file:
    KEY = {"key": file.read(), "user": "root"}

local = salt.client.LocalClient(CONF)
runner = salt.runner.RunnerClient(opts())
wheel = salt.wheel.WheelClient(opts())


def run(fun, *arg, **kwarg):
    return plain(runner.cmd_sync(dict(fun=fun, arg=list(arg), kwarg=kwarg, **KEY), timeout=60))


def turn(fun, **kwarg):
    answer = plain(wheel.cmd_sync(dict(fun=fun, **kwarg, **KEY), timeout=60))
    true(f"{fun} succeeded", answer["data"]["success"])
    return answer["data"]["return"]


with bus() as events:
    # --- runners

    jid = local.cmd("one", "test.echo", ["hello"], full_return=True)["one"]["jid"]
    same("jobs.lookup_jid", run("jobs.lookup_jid", jid), {"one": "hello"})
    same("jobs.lookup_jid, by name", run("jobs.lookup_jid", jid=jid), {"one": "hello"})
    job = run("jobs.list_job", jid)
    same("jobs.list_job", (job["Function"], job["Minions"], job["Result"]["one"]["return"]), ("test.echo", ["one"], "hello"))
    same("jobs.print_job", list(run("jobs.print_job", jid)), [jid])
    true("jobs.list_jobs", run("jobs.list_jobs")[jid]["User"] == "root")
    same("jobs.exit_success", run("jobs.exit_success", jid), {"one": True})
    same("jobs.last_run", run("jobs.last_run", function="test.echo")[jid]["Function"], "test.echo")
    same("jobs.active", run("jobs.active"), {})
    status = run("manage.status", timeout=10)
    same("manage.status", (sorted(status["up"]), status["down"]), (["one", "two"], []))
    same("manage.up", sorted(run("manage.up")), ["one", "two"])
    same("manage.down", run("manage.down"), [])
    # As Python finds it by itself, which reads grains where only 3008 has them.
    alive = run("manage.alived")
    if LINE >= 3008:
        same("manage.alived", sorted(alive), sorted(salt.utils.minions.CkMinions(opts()).connected_ids()))
    same("manage.not_alived", sorted(alive + run("manage.not_alived")), ["one", "two"])
    same("manage.present", run("manage.present"), alive)
    grains = run("cache.grains", tgt="*")
    same("cache.grains", {name: grains[name]["role"] for name in grains}, {"one": "web", "two": "db"})
    same("cache.grains of one", list(run("cache.grains", "role:db", tgt_type="grain")), ["two"])
    same("fileserver.envs", run("fileserver.envs"), ["base"])
    same("fileserver.file_list", run("fileserver.file_list"), ["folder/served.txt"])
    same("fileserver.dir_list", run("fileserver.dir_list", saltenv="base")[-1], "folder")
    same("event.send", run("event.send", "deploy/done", data={"version": [1, 2]}), True)
    same("its event", events.get_event(tag="deploy/done", wait=30)["version"], [1, 2])
    true("event.send in Salt's name is refused", "Salt's own" in run("event.send", "salt/auth", data={}))

    started = runner.cmd_async(dict(fun="jobs.list_jobs", **KEY))
    same("cmd_async", started["tag"], f"salt/run/{started['jid']}")
    new = events.get_event(tag=f"{started['tag']}/new", wait=30)
    same("its first event", (new["fun"], new["jid"], new["user"]), ("runner.jobs.list_jobs", started["jid"], "root"))
    ret = events.get_event(tag=f"{started['tag']}/ret", wait=30)
    true("its result", ret["success"] and jid in ret["return"])
    called = runner.master_call(fun="nope.nope", kwarg={"arg": [], "kwarg": {}}, **KEY)
    ret = events.get_event(tag=f"{called['tag']}/ret", wait=30)
    same("a runner that this master has not", ret["success"], False)
    same("and how that is said", ret["return"], "'nope.nope' is not available.")

    # --- wheel

    keys = turn("key.list_all")
    same("key.list_all", (sorted(keys["minions"]), keys["minions_pre"]), (["one", "two"], ["new"]))
    same("key.list", turn("key.list", match="accepted"), {"minions": ["one", "two"]})
    same("key.name_match", turn("key.name_match", match="t*"), {"minions": ["two"]})
    # 3008's own key.finger is over the whole file and fits nothing that a minion shows; ours is as the minion's.
    fingers = turn("key.finger", match="one")["minions"]["one"]
    true("key.finger", len(fingers.split(":")) == 32)
    true("key.key_str", "BEGIN PUBLIC KEY" in turn("key.key_str", match="one")["minions"]["one"])
    same("key.accept", turn("key.accept", match="new"), {"minions": ["new"]})
    same("its event", (lambda e: (e["id"], e["result"]))(events.get_event(tag="salt/key", wait=30)), ("new", True))
    same("key.reject", turn("key.reject", match="new", include_accepted=True), {"minions_rejected": ["new"]})
    turn("key.delete", match="new")
    same("key.delete", turn("key.name_match", match="new"), {})
    flat = wheel.master_call(fun="key.list_all", arg=[], kwarg={}, **KEY)
    tag = flat["tag"]
    true("master_call", tag == flat["data"]["tag"] == f"salt/wheel/{flat['data']['jid']}")
    true("its first event", events.get_event(tag=f"{tag}/new", wait=30)["fun"] == "wheel.key.list_all")
    true("its result", events.get_event(tag=f"{tag}/ret", wait=30)["success"])
    same("minions.connected", turn("minions.connected"), alive)
    values = turn("config.values")
    same("config.values", (values["ret_port"], values["timeout"]), (opts()["ret_port"], 15))
    true("config.values has no secrets", "front-end-secret" not in repr(values))
    made = turn("key.gen_accept", id_="made")
    true("key.gen_accept", "PRIVATE KEY" in made["priv"] and "BEGIN PUBLIC KEY" in made["pub"])
    # The caller has the private key; who listens to the bus has not.
    told = events.get_event(wait=30, match_type="fnmatch", tag="salt/wheel/*/ret", full=False)
    while told["fun"] != "wheel.key.gen_accept":
        told = events.get_event(wait=30, match_type="fnmatch", tag="salt/wheel/*/ret")
    same("its event", list(told["return"]), ["pub"])
    same("key.list", turn("key.list", match="accepted"), {"minions": ["made", "one", "two"]})
    turn("key.delete", match="made")
    bad = wheel.cmd_sync(dict(fun="config.apply", arg=["x", "y"], **KEY))
    same("a function that this master has not", bad["data"]["success"], False)
