"""
The job store of a Brine master, for Python Salt's own programs on the same host.

LocalClient works without it. With it, what looks into the job cache by itself finds the returns too: ``salt-run jobs.*``,
``get_cache_returns``. Name its folder in the master's configuration:

.. code-block:: yaml

    returner_dirs: [/usr/local/lib/brine/python]
    master_job_cache: brine

It only reads: the master writes what it published and what came back. What a Python ``salt-run`` ran by itself is not kept.
"""

import contextlib
import os
import sqlite3

import salt.payload
import salt.utils.jid

__virtualname__ = "brine"


def __virtual__():
    return __virtualname__


@contextlib.contextmanager
def _store():
    path = os.path.join(__opts__["cachedir"], "jobs.db")
    # Without a master there is no log beside the store, and none can be made by who only reads.
    mode = "mode=ro" if os.path.exists(path + "-wal") else "immutable=1"
    with contextlib.closing(sqlite3.connect(f"file:{path}?{mode}", uri=True, timeout=5)) as connection:
        yield connection


def prep_jid(nocache=False, passed_jid=None):
    """A jid; nothing has to be prepared for it."""
    return passed_jid or salt.utils.jid.gen_jid(__opts__)


def get_load(jid):
    """What was published, and who was expected to answer."""
    with _store() as store:
        row = store.execute("select load, minions from jobs where jid = ?", (str(jid),)).fetchone()
    if row is None:
        return {}
    load = salt.payload.loads(row[0])
    load["Minions"] = salt.payload.loads(row[1])
    return load


def get_jid(jid):
    """Every return of a job, by minion."""
    found = {}
    with _store() as store:
        for minion, packed in store.execute("select minion, load from returns where jid = ? order by minion", (str(jid),)):
            load = salt.payload.loads(packed)
            found[minion] = {key: load[key] for key in ("return", "retcode", "success", "out") if key in load}
    return found


def get_fun(fun):
    """The last return of each minion for a function."""
    found = {}
    with _store() as store:
        for minion, packed in store.execute("select minion, load from returns where fun = ? order by at", (fun,)):
            found[minion] = salt.payload.loads(packed).get("return")
    return found


def _jobs(where="", values=()):
    with _store() as store:
        # The newest are wanted first where there is a limit; a list of jobs begins with the oldest.
        for jid, packed in sorted(store.execute(f"select jid, load from jobs {where}", values)):
            yield jid, salt.payload.loads(packed)


def get_jids():
    """Every job that is kept."""
    return {jid: salt.utils.jid.format_jid_instance(jid, load) for jid, load in _jobs()}


def get_jids_filter(count, filter_find_job=True):
    """The last ``count`` jobs."""
    where = "where fun <> 'saltutil.find_job'" if filter_find_job else ""
    jobs = _jobs(f"{where} order by started desc limit ?", (count,))
    return [salt.utils.jid.format_jid_instance_ext(jid, load) for jid, load in jobs]


def get_minions():
    """Every minion that returned something."""
    with _store() as store:
        return [minion for (minion,) in store.execute("select distinct minion from returns order by minion")]


def get_endtime(jid):
    """Not kept."""
    return False


def returner(load):
    """The master has stored it."""


def save_load(jid, clear_load, minions=None):
    """The master has stored it."""


def save_minions(jid, minions, syndic_id=None):
    """The master has stored them."""
