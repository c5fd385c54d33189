"""
Salt's own matchers as a program: a question a line on stdin, an answer a line on stdout.

{"minions": {id: hex of msgpack {"grains", "pillar"} or null}, "groups": {name: text or list}} makes the minions that the questions after
it are about; of a minion with null the master knows nothing. {"type", "tgt", "delimiter"} asks which of them a target means: "minion" is
what each minion says for itself, "master" whom a master expects, "missing" whom it misses, "groups" what a node group stands for.
"""

import functools
import json
import logging
import os
import re
import sys
import tempfile

import msgpack
import salt.config
import salt.utils.args
import salt.utils.minions
from salt.matchers import (
    compound_match,
    glob_match,
    grain_match,
    grain_pcre_match,
    ipcidr_match,
    list_match,
    pcre_match,
    pillar_exact_match,
    pillar_match,
    pillar_pcre_match,
)

MATCHERS = {
    "compound": compound_match.match,
    "glob": glob_match.match,
    "grain": grain_match.match,
    "grain_pcre": grain_pcre_match.match,
    "ipcidr": ipcidr_match.match,
    "list": list_match.match,
    "pcre": pcre_match.match,
    "pillar": pillar_match.match,
    "pillar_exact": pillar_exact_match.match,
    "pillar_pcre": pillar_pcre_match.match,
}
try:
    from salt.matchers import managing_minion_match, resource_match

    MATCHERS["managing_minion"] = managing_minion_match.match
    MATCHERS["resource"] = resource_match.match
except ImportError:
    pass  # 3008 has them
# What Salt's loader gives the compound matcher.
compound_match.__context__ = {"matchers": {f"{name}_match.match": match for name, match in MATCHERS.items()}}
WITH_DELIMITER = ("grain", "grain_pcre", "pillar", "pillar_pcre", "pillar_exact")


class Cache:
    """What the master's cache holds, in the layout of every line."""

    def __init__(self, known):
        self.known = known

    def list(self, bank):
        return list(self.known) if bank in ("minions", "grains") else []

    def fetch(self, bank, key):
        if key == "data":
            return self.known.get(bank.rpartition("/")[2])
        return self.known.get(key, {}).get(bank)

    def contains(self, bank, key=None):
        return False


class Keys:
    """Without `glob_match` and `list_match`, as before 3008, so that the matchers take their own way."""


class NoResources:
    def resolve_bare_resource_id(self, _):
        return None

    def get_resources_for_minion(self, _):
        return {}

    def has_srn(self, *_):
        return False

    def get_resource_ids_for_type(self, _):
        return []


class Master(salt.utils.minions.CkMinions):
    registry = NoResources()
    accepted = ()

    def accept(self, ids):
        """Before 3008 the folder of keys is read past `_pki_minions`."""
        folder = os.path.join(self.opts["pki_dir"], "minions")
        os.makedirs(folder, exist_ok=True)
        for id_ in set(self.accepted) - set(ids):
            os.remove(os.path.join(folder, id_))
        for id_ in set(ids) - set(self.accepted):
            open(os.path.join(folder, id_), "w").close()
        self.accepted = ids

    def _pki_minions(self):
        return set(self.accepted)


def unpack(text):
    return text and msgpack.unpackb(bytes.fromhex(text), raw=False, strict_map_key=False)


def main():
    logging.disable(logging.CRITICAL)
    # What takes most of the time is the same for each minion.
    re._MAXCACHE = 1 << 20
    salt.utils.args.yamlify_arg = functools.lru_cache(None)(salt.utils.args.yamlify_arg)
    opts = salt.config.master_config(None)
    with tempfile.TemporaryDirectory() as folder:
        opts["cachedir"] = opts["pki_dir"] = folder
        opts["minion_data_cache"] = True
        answer_all(opts)


def answer_all(opts):
    master = Master(opts)
    master.key = Keys()
    minions = {}
    for line in sys.stdin:
        ask = json.loads(line)
        if "minions" in ask:
            data = {id_: unpack(packed) for id_, packed in ask["minions"].items()}
            master.accept(list(data))
            master.cache = Cache({id_: known for id_, known in data.items() if known})
            master.opts["nodegroups"] = ask["groups"]
            minions = {
                id_: {"id": id_, "minion_id": id_, "nodegroups": ask["groups"], **known} for id_, known in data.items() if known
            }
            continue
        answer = {"minion": {}}
        kind, tgt = ask["type"], ask["tgt"]
        if kind == "nodegroup":
            answer["groups"] = salt.utils.minions.nodegroup_comp(tgt, master.opts["nodegroups"])
        # A minion never sees a node group: who publishes writes it out.
        own_kind, own_tgt = ("compound", answer["groups"]) if kind == "nodegroup" else (kind, tgt)
        if own_kind in MATCHERS:
            kwargs = {"delimiter": ask["delimiter"]} if kind in WITH_DELIMITER else {}
            for id_, own in minions.items():
                try:
                    answer["minion"][id_] = bool(MATCHERS[own_kind](own_tgt, opts=own, **kwargs))
                except Exception:  # a minion logs it and takes the job for somebody else's
                    answer["minion"][id_] = False
        found = master.check_minions(tgt, kind, delimiter=ask["delimiter"])
        answer["master"], answer["missing"] = sorted(set(found["minions"])), sorted(set(found["missing"]))
        print(json.dumps(answer))


main()
