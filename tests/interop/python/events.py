"""The event bus through Python's own classes: subscribing, matching, pushing."""

import salt.utils.event
from checks import bus, opts, same, true

with bus() as events:
    with salt.utils.event.get_event("master", opts=opts(), listen=False) as push:
        true("fire_event", push.fire_event({"n": 1, "text": "ünïcödé", "raw": b"\xff\x00"}, "deploy/one"))
        event = events.get_event(tag="deploy", wait=30, full=True)
        same("the tag", event["tag"], "deploy/one")
        same("the data", (event["data"]["n"], event["data"]["text"], event["data"]["raw"]), (1, "ünïcödé", b"\xff\x00"))
        true("a time stamp", event["data"]["_stamp"])

        for n in range(300):
            push.fire_event({"n": n, "fill": "x" * 3000}, "deploy/many")
        same("many, in order", [events.get_event(tag="deploy/many", wait=30)["n"] for _ in range(300)], list(range(300)))

        push.fire_event({}, "deploy/a/b")
        same("fnmatch", events.get_event(tag="deploy/*/b", match_type="fnmatch", wait=30, full=True)["tag"], "deploy/a/b")
        push.fire_event({}, "deploy/c/d")
        same("regex", events.get_event(tag="deploy/[cx]/.$", match_type="regex", wait=30, full=True)["tag"], "deploy/c/d")
        push.fire_event({}, "deploy/e/f")
        same("endswith", events.get_event(tag="e/f", match_type="endswith", wait=30, full=True)["tag"], "deploy/e/f")
        same("nothing more", events.get_event(tag="deploy", wait=0, no_block=True), None)

        push.fire_event({"large": "x" * 2_000_000, "small": 1}, "deploy/large")
        large = events.get_event(tag="deploy/large", wait=30)
        same("larger than max_event_size", (large["large"], large["small"]), ("VALUE_TRIMMED", 1))

        push.fire_event({"n": 7}, "deploy/iter")
        for event in events.iter_events(tag="deploy/iter", full=True):
            same("iter_events", event["data"]["n"], 7)
            break
