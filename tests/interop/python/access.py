"""Log-ins, tokens and what they allow, through every client; the configuration is in access.rs. Minions: `one` (role web), `two` (db)."""

import time

import salt.auth
import salt.client
import salt.exceptions
import salt.runner
import salt.wheel
from checks import CONF, bus, opts, plain, raises, same, true

Authentication = salt.exceptions.AuthenticationError
Authorization = salt.exceptions.AuthorizationError
Eauth = salt.exceptions.EauthAuthenticationError
Token = salt.exceptions.TokenAuthenticationError

local = salt.client.LocalClient(CONF)
# It has the master's own key too; a log-in that fails must not fall back to it.
runner = salt.runner.RunnerClient(opts())
wheel = salt.wheel.WheelClient(opts())
resolver = salt.auth.Resolver(opts())


def login(name, password, eauth="file", **more):
    return dict(username=name, password=password, eauth=eauth, **more)


FRED, ANN, BOB = login("fred", "fred-secret"), login("ann", "ann-secret"), login("bob", "bob-secret")
WEB = login("anyname", "front-end-secret", "sharedsecret")


def ping(who, tgt="one", fun="test.ping", arg=(), **more):
    return local.cmd(tgt, fun, arg, **who, **more)


def run(who, fun="jobs.list_jobs", **kwarg):
    return runner.cmd_sync(dict(fun=fun, kwarg=kwarg, **who), timeout=30)


def turn(who, fun="key.list_all", **kwarg):
    return wheel.cmd_sync(dict(fun=fun, **kwarg, **who), timeout=30)


with bus() as events:
    # --- log-ins

    same("eauth", ping(FRED), {"one": True})
    same("sharedsecret", ping(WEB), {"one": True})
    for what, who in {
        "a wrong password": login("fred", "wrong-secret"),
        "a system that this master has not": login("root", "fred-secret", "ldap"),
    }.items():
        raises(f"local: {what}", Authentication, lambda: ping(who))
        text = raises(f"runner: {what}", Eauth, lambda: run(who))
        true(f"runner: {what}: names the kind", 'type "eauth"' in text)
        raises(f"wheel: {what}", Eauth, lambda: turn(who))
        same(f"token: {what}", resolver.mk_token(dict(who)), "")
    for what, who in {
        "another user's password": login("fred", "ann-secret"),
        "an empty password": login("fred", ""),
        "no password": dict(username="fred", eauth="file"),
        "no name": dict(password="fred-secret", eauth="file"),
        "an unknown user": login("eve", "fred-secret"),
        "a name with a line end": login("x\nfred", "fred-secret"),
        "a system that lets anybody in": login("fred", "x", "auto"),
        "a wrong shared secret": login("web", "fred-secret", "sharedsecret"),
        "no system": login("fred", "fred-secret", ""),
    }.items():
        same(f"token: {what}", resolver.mk_token(dict(who)), "")

    # --- tokens

    made = {name: resolver.mk_token(dict(who)) for name, who in {"fred": FRED, "ann": ANN, "bob": BOB}.items()}
    same("mk_token", (made["fred"]["name"], made["fred"]["eauth"], len(made["fred"]["token"])), ("fred", "file", 64))
    same("token_expire", round(made["fred"]["expire"] - made["fred"]["start"]), 1000)
    same("groups", made["bob"]["groups"], ["ops"])
    fred, ann, bob = ({"token": made[name]["token"]} for name in ("fred", "ann", "bob"))
    same("get_token", plain(resolver.get_token(fred["token"]))["name"], "fred")
    same("get_token of an unknown one", resolver.get_token("0" * 64), {})
    same("get_token of a path", resolver.get_token("../.root_key"), {})
    same("local by token", ping(fred), {"one": True})
    same("whoever's token it is", local.cmd("one", "test.ping", full_return=True, **fred)["one"]["retcode"], 0)
    true("runner by token", isinstance(run(fred), dict))
    same("wheel by token", turn(fred)["data"]["success"], True)
    short = resolver.mk_token(dict(FRED, token_expire=1))
    same("a user may choose who is named", round(short["expire"] - short["start"]), 1)
    long = resolver.mk_token(dict(ANN, token_expire=100000))
    same("another may not", round(long["expire"] - long["start"]), 1000)
    while time.time() <= short["expire"]:
        time.sleep(0.05)
    for what, who in {
        "an expired token": {"token": short["token"]},
        "an unknown token": {"token": "0" * 64},
        "no token": {"token": ""},
        "a path": {"token": "../.root_key"},
        "a wrong token and a right password": dict(FRED, token="0" * 64),
    }.items():
        raises(f"local: {what}", Authentication, lambda: ping(who))
        text = raises(f"runner: {what}", Token, lambda: run(who))
        true(f"runner: {what}: names the kind", 'type "token"' in text)
        raises(f"wheel: {what}", Token, lambda: turn(who))
    same("a right token and a wrong password: the token counts", ping(dict(fred, eauth="file", password="x")), {"one": True})

    # --- permissions: fred everything of test; ann some on some; bob what everybody and his group may

    same("fred: arguments", ping(FRED, fun="test.echo", arg=["x"]), {"one": "x"})
    for kind, who in {"eauth": ANN, "token": ann}.items():
        same(f"{kind}: ann on one", ping(who), {"one": True})
        same(f"{kind}: ann, an argument", ping(who, fun="test.echo", arg=["abc"]), {"one": "abc"})
        true(f"{kind}: ann by grains", "two" in ping(who, "role:db", "test.version", tgt_type="grain"))
        for what, call in {
            "another function": dict(fun="test.arg"),
            "another minion": dict(tgt="two"),
            "more than its minions": dict(tgt="*"),
            "another argument": dict(fun="test.echo", arg=["xabc"]),
            "an argument that could be a keyword": dict(fun="test.echo", arg=["a=1", "x"]),
            "one of two functions": dict(fun=["test.ping", "test.arg"], arg=[[], []]),
            "what is always allowed, and another": dict(fun=["saltutil.find_job", "test.arg"], arg=[["1"], []]),
            "a function of its other minions": dict(fun="test.version"),
        }.items():
            raises(f"{kind}: ann, {what}", Authorization, lambda: ping(who, **call))
    for kind, who in {"eauth": BOB, "token": bob}.items():
        true(f"{kind}: bob, what all may", "one" in ping(who, fun="test.version"))
        raises(f"{kind}: bob, another function", Authorization, lambda: ping(who))
    raises("fred: another module", Authorization, lambda: ping(FRED, fun="cmd.run", arg=["id"]))
    raises("blocked for everybody", Authorization, lambda: ping(FRED, fun="test.sleep", arg=[1]))
    raises("blocked for the master's own key", Authorization, lambda: ping({}, fun="test.sleep", arg=[1]))

    true("ann: @jobs, one function", isinstance(run(ann), dict))
    true("bob: a wheel function of his group", turn(bob, "key.list_all")["data"]["success"])
    for what, call in {
        "runner, a function of the module": lambda: run(ann, "jobs.active"),
        "runner, another module": lambda: run(ann, "manage.up"),
        "wheel": lambda: turn(ann),
    }.items():
        raises(f"ann: {what}", Token, call)
    raises("ann by password: wheel", Eauth, lambda: turn(ANN))
    raises("bob: another wheel function", Token, lambda: turn(bob, "key.delete", match="two"))
    raises("bob: runner", Token, lambda: run(bob))
    raises("a name that is no function", salt.exceptions.SaltInvocationError, lambda: turn(ann, "key"))
    same("nothing was deleted", sorted(wheel.cmd_sync(dict(FRED, fun="key.list_all"))["data"]["return"]["minions"]), ["one", "two"])

    # --- who it was is on the bus; what proved it is not

    seen, users = "", set()
    while True:
        event = events.get_event(wait=1, full=True)
        if event is None:
            break
        seen += repr(event)
        users.add((event["tag"].split("/")[-1], event["data"].get("user")))
    true("jobs have their users", {("new", "fred"), ("new", "ann"), ("new", "bob"), ("new", "anyname")} <= users)
    true("refusals are told", "salt/job/error" in seen and "Authentication failure" in seen)
    with open(f"{opts()['cachedir']}/.root_key") as key:
        secrets = [key.read(), *(token["token"] for token in made.values()), short["token"]]
    for secret in [*secrets, "fred-secret", "ann-secret", "bob-secret", "wrong-secret", "front-end-secret"]:
        true("no event has a secret", secret not in seen)
