"""What the scripts beside this one share. Each is called with the master's configuration file."""

import contextlib
import json
import logging
import sys

import salt.config
import salt.version

LINE = salt.version.__saltstack_version__.major
CONF = sys.argv[1]

# What Salt says by itself would hide what a check says.
logging.disable(logging.WARNING)


def opts():
    return salt.config.client_config(CONF)


def same(what, got, expect):
    if got != expect:
        sys.exit(f"{what}: got {got!r}, expected {expect!r}")
    print(f"ok: {what}")


def true(what, got):
    if not got:
        sys.exit(f"{what}: got {got!r}")
    print(f"ok: {what}")


def raises(what, kind, call):
    """The text of the exception that the call raises."""
    try:
        got = call()
    except kind as error:
        print(f"ok: {what}: {error}")
        return str(error)
    sys.exit(f"{what}: got {got!r}, expected an exception")


@contextlib.contextmanager
def bus():
    """A subscription to the master's event bus."""
    import salt.utils.event

    with salt.utils.event.get_event("master", opts=opts(), listen=True) as event:
        # Salt connects at the first look.
        event.get_event(wait=0.01, no_block=True)
        yield event


def plain(value):
    """Without the classes that Salt wraps values in."""
    return json.loads(json.dumps(value))
