#!/usr/bin/env python3
"""Writes vectors.json beside this file: what Python Salt's outputters print for the values below.

Run it with a Python that has salt installed: `path/to/venv/bin/python make_vectors.py [FILE [COUNT [SEED]]]`, with COUNT generated
values, the first of them from SEED.
A value is stored as MessagePack in hex, so that bytes and text stay apart; an expectation of null means that the
outputter failed or printed nothing.
"""
import json
import pathlib
import random
import sys

import msgpack
import salt.config
import salt.loader
import salt.output
import salt.version

BASE = dict(salt.config.DEFAULT_MINION_OPTS)
BASE.update(extension_modules="", optimization_order=[0, 1, 2], conf_file="", __role="minion")

LONG = "the quick brown fox jumps over the lazy dog " * 4
VALUES = {
    "true": {"m1": True},
    "false": {"m1": False},
    "none": {"m1": None},
    "ints": {"m1": [0, 1, -1, 2**31, 2**63, 2**64 - 1, -(2**63)]},
    "floats": {"m1": [0.0, -0.0, 1.0, 1.5, 0.1, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 1.25e-7, 1e100, 3.141592653589793]},
    "float specials": {"m1": [float("inf"), float("-inf"), float("nan")]},
    "text": {"m1": "hello"},
    "empty text": {"m1": ""},
    "space text": {"m1": " "},
    "trailing spaces": {"m1": "a  ", "m2": "  a"},
    "multiline": {"m1": "one\ntwo\n\nfour\n"},
    "multiline indented": {"m1": "  one\n    two\n"},
    "only newlines": {"m1": "\n\n"},
    "crlf": {"m1": "one\r\ntwo\rthree"},
    "other line ends": {"m1": "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i"},
    "tab": {"m1": "a\tb"},
    "escape": {"m1": "\x1b[31mred\x1b[0m"},
    "escape in key": {"m\x1b[31m1": "x"},
    "controls": {"m1": "bell\x07 back\x08 null\x00 del\x7f c1\x9b31m"},
    "unicode": {"m1": "žluťoučký kůň 日本語 🎉 é"},
    "unicode key": {"můj": "x", "日本": 1},
    "odd spaces": {"m1": "a\u00a0b\u200bc\ufeffd\u3000e"},
    "bidi": {"m1": "a\u202eb\u2066c"},
    "private use": {"m1": "\ue000\U000f0000"},
    "bytes": {"m1": b"plain bytes"},
    "bytes not utf-8": {"m1": b"\xff\xfe\x00\x01", "m2": [b"\xff", "x"]},
    "empty dict": {"m1": {}},
    "empty list": {"m1": []},
    "nested empties": {"m1": {"a": {}, "b": [], "c": [[], {}, [[]], ""], "d": None, "e": ""}},
    "list": {"m1": ["a", "b", 3, None, True, 1.5]},
    "list multiline": {"m1": ["one\ntwo", "three"]},
    "nested lists": {"m1": [["a", ["b", ["c", "d"]], "e"], "f", [["g"]]]},
    "list of dicts": {"m1": [{"a": 1, "b": {"c": [1, 2]}}, {"d": "x\ny"}]},
    "dict": {"m1": {"b": 1, "a": {"z": [1, 2, {"k": "v"}], "y": "multi\nline"}, "C": 3}},
    "dict deep": {"m1": {"a": {"b": {"c": {"d": {"e": "f"}}}}}},
    "int keys": {"m1": {2: "b", 10: "a", 1: "c"}},
    "mixed keys": {"m1": {"a": 1, 2: "b", None: 3, True: 4, 1.5: 5}},
    "bool keys": {"m1": {True: 1, False: 0}},
    "none key": {"m1": {None: 0}},
    "bytes key": {"m1": {b"a": 1, b"\xff": 2}},
    "text that looks like yaml": {
        "m1": ["yes", "no", "on", "off", "true", "null", "~", "1", "1.5", "0x1f", "0644", "1_000", "1:30", "2026-11-20",
               "2026-11-20 10:00:00", "=", "<<", "", "-", "- a", "-a", "?", "? a", ":", "a: b", "a:b", ":a", "a #b", "a#b",
               "#a", "!tag", "&anchor", "*alias", "%dir", "@at", "`tick", "|", ">", "{a}", "[a]", "a, b", "a,b", "'q'", '"dq"',
               "it's", 'say "hi"', "---", "--- a", "...", "back\\slash", "1e3", "1.0e+3", ".5", "+1", "-1", "0o17", "0b11", ".inf",
               ".nan", "y", "n", "NULL", "Yes", "a:", "a ", " a", "a\nb", "a\n", "\na", "12e03", "685_230.15", "20:30.15", "?a",
               "-\ta", "a\t#b", "x]", "x}", "!", "&", "\u0085", "\u2028x", "\ufeffx", "x\ufeff"],
    },
    "long text": {"m1": LONG.strip()},
    "long text no spaces": {"m1": "x" * 200},
    "long quoted": {"m1": ": " + LONG},
    "long double quoted": {"m1": "\t" + LONG},
    "long in list": {"m1": [LONG.strip(), {"k": LONG.strip()}]},
    "long key": {"k" * 140: {"l" * 130 + " ": [1]}},
    "long multiline": {"m1": (LONG.strip() + "\n") * 2},
    "newline key": {"m1": {"a\nb": 1, "": 2, " c": 3}},
    "wide list": {"m1": list(range(60))},
    "wide texts": {"m1": ["some words %d" % i for i in range(12)]},
    "wide dict": {"m1": {"key%02d" % i: "value %d" % i for i in range(12)}},
    "wide empty text": {"m1": {"k" * 90: "", "l": 1935070470891754.25}},
    "quotes": {"m1": ["it's", 'a "b"', "it's \"both\"", "back\\slash", "new\nline", "\u00ad"]},
    "package list": {"m1": {"vim": "2:9.0", "bash": "5.2", "libc6": ["2.36", "2.37"]}},
    "doc": {"m1": {"test.ping": "\n    Used to make sure the minion is up\n\n    CLI Example:\n\n    .. code-block:: bash\n\n        salt '*' test.ping\n    "}},
    "two minions": {"web2": [1], "web1": {"a": "b"}},
    "top text": "just text",
    "top multiline": "one\ntwo\n",
    "top empty text": "",
    "top list": ["a", {"b": 1}, ["c"]],
    "top wide list": ["a rather long entry number %d" % i for i in range(9)],
    "top wide nested": [{"key one": ["word " * 6, "word " * 7], "key two": {"a": "b" * 50, "c": LONG}}],
    "top bool": True,
    "top none": None,
    "top int": 42,
    "top float": 1e-7,
    "top empty list": [],
    "top empty dict": {},
    "top bytes": b"\xff\x00abc",
    "top long text": LONG + "\n" + LONG,
    "rows": {"m1": {"out": [{"mac_address": "40:A6:77", "vlan": 111, "static": False, "age": 0.5},
                            {"mac_address": "64:16:8D:32:26:58", "vlan": 2, "static": None, "age": 1e9}], "comment": ""}},
    "rows of lists": {"m1": [["a", "bcd"], ["longer " * 12, "x"], ["one", "two", "three"]]},
    "rows of text": {"m1": ["a", "two words", "two\nlines", "word " * 30, "x" * 70]},
    "rows of two kinds": {"m1": {"a": ["x", {"b": 1}], "c": [[]], "d": [{}], "e": [{"x": "a\nb", "y": "c"}, {"x": "it's"}]}},
    "top rows": [{"it's_1": "ž"}, {"it's_1": ["a", {"b": None}]}],
    "unicode wide": {"m1": ["日本語" * 12, "日本語 " * 20]},
}



def state(run_num, result=True, changes=None, comment="All is well", **more):
    """What a Python minion returns for one state."""
    full = {"__id__": "id", "__run_num__": run_num, "__sls__": "web", "changes": changes or {}, "comment": comment,
            "duration": 1.5 + run_num, "name": "name", "result": result, "start_time": "10:00:0%d.123456" % run_num}
    full.update(more)
    return {key: value for key, value in full.items() if value != "absent"}


DIFF = "--- \n+++ \n@@ -1 +1 @@\n-old\n+new\n"
HIGHSTATES = {
    "all well": {"m1": {"file_|-id_|-/etc/motd_|-managed": state(0), "pkg_|-vim_|-vim_|-installed": state(1)}},
    "changed": {"m1": {"file_|-id_|-/etc/motd_|-managed": state(0, changes={"diff": DIFF, "mode": "0644"}),
                       "pkg_|-vim_|-vim_|-installed": state(1, changes={"vim": {"old": "", "new": "9"}})}},
    "failed": {"m1": {"b_|-late_|-late_|-run": state(2), "a_|-id_|-name_|-run": state(1, False, comment="It failed:\nbadly\n\n")}},
    "test mode": {"m1": {"a_|-id_|-id_|-run": state(0, None, {"new": "x"}), "a_|-c_|-d_|-run": state(1, None)}},
    "mixed": {"m1": {"a_|-%d_|-n%d_|-run" % (n, n): state(n, result, changes) for n, (result, changes) in enumerate(
        [(True, {}), (True, {"x": 1}), (False, {}), (None, {"y": [1, {"z": 2}]}), (False, {"pid": 5}), (True, {})] * 2)}},
    "warnings": {"m1": {"a_|-i_|-i_|-run": state(0, warnings=["This is a well-known option " * 6, "second"]),
                        "a_|-j_|-j_|-run": state(1, warnings=["x" * 150])}},
    "two minions": {"m1": {"a_|-i_|-i_|-run": state(0)}, "můj": {"a_|-i_|-i_|-run": state(0, False)}},
    "compile error": {"m1": ["Rendering SLS 'base:web' failed: Jinja variable 'x' is undefined", "No matching sls found for 'y' in env 'base'"]},
    "text": {"m1": "The function \"state.apply\" is running as PID 1\nand was started"},
    "number": {"m1": 3},
    "yes": {"m1": True},
    "none": {"m1": None},
    "empty": {"m1": {}},
    "no states": {"m1": {"no_|-states_|-states_|-None": state(0, False, name="No States", comment="No Top file or master_tops data matches found. Please see master log for details.", duration="absent", start_time="absent")}},
    "no profile": {"m1": {"a_|-i_|-n_|-run": state(0, duration="absent", start_time="absent")}},
    "old duration": {"m1": {"a_|-i_|-n_|-run": state(0, duration="12.5 ms")}},
    "long": {"m1": {"a_|-i_|-n_|-run": state(0, duration=61234.5678), "a_|-i_|-o_|-run": state(1, duration=1000)}},
    "parallel": {"m1": {"a_|-i_|-n%d_|-run" % n: state(n, duration=100 * n, __parallel__=True) for n in range(4)}},
    "data": {"m1": {"a_|-i_|-n_|-run": state(0, data=["x", 1]), "a_|-i_|-o_|-run": state(1, data={"k": "v"}), "a_|-i_|-p_|-run": state(2, data=5)}},
    "comment list": {"m1": {"a_|-i_|-n_|-run": state(0, comment=["a", "b"]), "a_|-i_|-o_|-run": state(1, comment="")}},
    "odd changes": {"m1": {"a_|-i_|-n_|-run": state(0, changes=["a", "b"]), "a_|-i_|-o_|-run": state(1, changes="text")}},
    "unicode": {"m1": {"file_|-žluť_|-/tmp/日本_|-managed": state(0, changes={"ů": "é"}, comment="kůň")}},
    "ten": {"m1": {"a_|-%d_|-%d_|-run" % (n, n): state(n, start_time="10:00:00.0", changes={"n": n}) for n in range(12)}},
    "sls in module.run": {"m1": {"module_|-i_|-state.sls_|-run": state(0, name="state.sls", changes={"local": {"a_|-i_|-n_|-run": state(0)}})}},
    "highstate in changes": {"m1": {"salt_|-i_|-n_|-state": state(0, changes={"out": "highstate", "ret": {"web1": {"a_|-i_|-n_|-run": state(0, changes={"x": 1})}, "web2": "text"}})}},
    "unordered": {"m1": {"a_|-i_|-n_|-run": {"result": True, "changes": {}, "comment": "c", "name": "n"}}},
    "orchestration": {"outputter": "highstate", "data": {"m1_master": {"salt_|-i_|-n_|-state": state(0, changes={"out": "highstate", "ret": {"web1": {"a_|-i_|-n_|-run": state(0, False)}}})}, "retcode": 1}, "retcode": 1},
    "of the job store": {"m1": {"jid": "20260101000000000000", "fun": "runner.state.orchestrate", "return": {"data": {"m1_master": {"a_|-i_|-n_|-run": state(0)}}, "outputter": "highstate"}}},
    "returned": {"return": {"m1": {"a_|-i_|-n_|-run": state(0)}}, "jid": "20260101000000000000"},
    "two masters": {"a_master": {"a_|-i_|-n_|-run": state(0)}, "b_master": {"a_|-i_|-n_|-run": state(0)}, "retcode": 1},
    "names": {"m1": {f"cmd_|-i_|-{name}_|-run": state(n, result, name=name, start_time=f"10:00:0{9 - n}.5", changes=changes, duration=n + 0.25, __id__="i", __sls__="web")
        for n, (name, result, changes) in enumerate([("a", True, {}), ("b", True, {"x": 1}), ("c", False, {}), ("d", True, {"y": 2}), ("e", None, {"z": 3})])}},
    "names without sls": {"m1": {f"cmd_|-i_|-{n}_|-run": state(n) for n in range(3)}},
    "escapes": {"m\x1b[31m1": {"a_|-i_|-n_|-run": state(0)}},
}
STATE_SETTINGS = [
    {}, {"color": True}, {"state_verbose": False}, {"state_output": "terse"}, {"state_output": "mixed", "color": True},
    {"state_output": "changes"}, {"state_output": "mixed_id"}, {"state_output": "full_id"}, {"state_output": "odd"},
    {"state_output_diff": True}, {"state_output_profile": False}, {"state_output_profile": False, "state_output": "terse"},
    {"state_output_pct": True}, {"state_output": "terse", "state_tabular": True},
    {"state_compress_ids": True}, {"state_compress_ids": True, "state_output": "terse_id"},
    {"state_output": "filter", "state_output_exclude": ["True"], "state_output_terse": ["None"]},
]

SETTINGS = {
    "nested": [{}, {"color": True}, {"color": True, "_retcode": 1}, {"nested_indent": 4}, {"strip_colors": False}],
    "json": [{}, {"output_indent": 2}, {"output_indent": -1}, {"output_indent": 0}, {"output_indent": None}, {"output_indent": "pretty"}],
    "yaml": [{}, {"output_indent": 4}, {"output_indent": -1}],
    "txt": [{}],
    "raw": [{}],
    "pprint": [{}, {"output_indent": 2}],
    "no_return": [{}, {"color": True}],
    "table": [{}, {"color": True}],
    # Not in 3008.
    "newline_values_only": [{}],
}


def render(value, out, settings):
    opts = dict(BASE, color=False)
    kwargs = {}
    for key, val in settings.items():
        (kwargs if key == "_retcode" else opts)[key] = val
    try:
        return salt.output.out_format(value, out, opts, **kwargs)
    except Exception as exc:  # the outputter itself broke
        print(f"{out} {settings}: {exc!r}", file=sys.stderr)
        return None


def atom(rng):
    pool = ["", "a", " ", "\n", "\t", ":", "#", "-", "'", '"', "é", "日", "\x1b", "x" * 30, "word ", ",", "?", "[", "{", "&", "\\", "~", "1", "\u2028", "!"]
    kind = rng.randrange(10)
    if kind < 6:
        return "".join(rng.choice(pool) for _ in range(rng.choice([1, 2, 3, 5, 8, 20, 40])))
    return rng.choice([None, True, False, rng.randrange(-(10**6), 10**6), rng.random(), rng.random() * 10 ** rng.randrange(-20, 20)])


def tree(rng, depth):
    kind = rng.randrange(4) if depth else 0
    if kind <= 1:
        return atom(rng)
    size = rng.choice([0, 1, 1, 2, 3, 6])
    if kind == 2:
        return [tree(rng, depth - 1) for _ in range(size)]
    return {str(atom(rng)): tree(rng, depth - 1) for _ in range(size)}


def main():
    values = dict(VALUES)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    there = salt.loader.outputters(dict(BASE))
    for seed in range(first, first + count):
        values[f"random {seed}"] = {"m1": tree(random.Random(seed), 4)}
    cases = []
    for name, value in values.items():
        packed = msgpack.packb(value, use_bin_type=True)
        # what a client prints has been through msgpack
        value = msgpack.unpackb(packed, raw=False, strict_map_key=False)
        for out, many in SETTINGS.items():
            if out not in there:
                continue
            for settings in many:
                cases.append([name, out, settings, render(value, out, settings)])
    # A folder of files with recorded returns of states (`apply`, `test`), which stay out of the vectors in the tree.
    real = {}
    for file in sorted(pathlib.Path(sys.argv[4]).glob("*.json")) if len(sys.argv) > 4 else []:
        doc = json.loads(file.read_text())
        real.update({f"real {file.stem} {key}": {"m1": doc[key]} for key in ("apply", "test") if isinstance(doc.get(key), (dict, list))})
    for name, value in {**HIGHSTATES, **real}.items():
        values["state " + name] = value
        for settings in STATE_SETTINGS if name in ("mixed", "changed", "warnings", "names", "names without sls") or name.startswith("real ") else STATE_SETTINGS[:2]:
            # The outputter changes what it is given.
            shown = render(msgpack.unpackb(msgpack.packb(value)), "highstate", settings)
            cases.append(["state " + name, "highstate", settings, shown])
    packed = {name: msgpack.packb(value, use_bin_type=True).hex() for name, value in values.items()}
    where = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("vectors.json"))
    doc = {"salt": str(salt.version.__saltstack_version__), "values": packed, "cases": cases}
    # one case a line keeps differences readable
    body = ",\n".join("  " + json.dumps(case, ensure_ascii=True) for case in cases)
    head = json.dumps({k: v for k, v in doc.items() if k != "cases"}, ensure_ascii=True)[:-1]
    where.write_text(head + ', "cases": [\n' + body + "\n]}\n")
    print(len(cases), "cases", where.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
