#!/usr/bin/env python3
"""Write yaml_cases.json: what Salt's own loader and argument parser make of a table of texts.

Run with the Python of an installed Salt:  python make_yaml_cases.py > yaml_cases.json
"""
import json
import math
import sys

import salt.utils.args
import salt.utils.yaml

SCALARS = """
yes Yes YES yEs no No NO y n Y N true True TRUE tRUE false False on On ON off Off OFF null Null NULL nULL ~ None
0 00 000 0644 0o644 0755 08 09 010 -010 +010 0_7 0b101 0b1_0 -0b11 0b2 0b_ 0x1f 0xFF 0xfg -0x10 0x_f 0x_ 1 -1 +1 1_000 _1 1_ 12_34_
9223372036854775807 9223372036854775808 18446744073709551615 -9223372036854775808
1:30 01:30 1:5 1:60 12:30:45 -1:30 1:2:3:4 190:20:30.15 1:30.5 1.5 1. .5 -.5 +.5 1.5e3 1.5e+3 1.5E-3 1e3 1e+3 1_0.5 1._5 . .. ... -
._5 .5_0 +1.5 -1.5e+10 .inf .Inf .INF -.inf +.inf .iNF .nan .NaN -.nan 1.2.3 1.2.3.4 10.0.0.1 1/2 a.b
2026-11-20 2026-11-20T13:05:09 20261120130509123456 <<a =a a=b == * & % @ ` ! | > [ { ] } , ? : # -a -- --- a:b a::b http://x:80/y
'yes' "yes" '0644' "1" 'it''s' "a\\nb" "\\x41" "\\u00e9" '' "" !!str !!str\\ 1 &a a#b a\\#b
""".split()

DOCS = [
    "", " ", "# only a comment", "---", "--- a", "a: 1\n---\nb: 2", "a: 1\n...\n", "%YAML 1.1\n---\na: 1",
    "a: 1", "a:1", "a: ", "a:\n", "a: b: c", "a: 'b': c", "? a\n: b", "? a", "- a\n- b", "-a", "- ", "- - a\n  - b",
    "a:\n- b\n- c", "a:\n  - b\n  - c: d\n    e: f", "a:\n  b: 1\n c: 2", "a: [1, 2, b]", "a: {b: c, d: 1}", "{a: b,}", "[a, , b]",
    "{a, b}", "{a: , b: }", "[a: b]", "{a:1}", "{'a':1}", "[1,2,]", "{a: [1, {b: c}]}", "[a", "{a", "a]", "a}", "{a: b", "[}",
    "a: |\n  x\n  y\n", "a: |-\n  x\n  y\n", "a: |+\n  x\n\n", "a: >\n  x\n  y\n\n  z\n", "a: >-\n  x\n  y\n", "a: |2\n   x\n", "a: x\n  y\n  z",
    "a: 'x\n  y'", 'a: "x\n  y"', 'a: "x\\\n  y"', "a: # c\n  b", "a: b # c", "a: b#c", "a: '#'", "\ta: b", "a:\tb", "a: b\t", "a: \tb",
    "a: &x 1\nb: *x", "a: *x", "a: &x [1]\nb: *x\nc: *x", "a: &x {b: *x}", "&x a: *x", "a: &x\nb: *x",
    "d: &d {a: 1, b: 2}\ne:\n  <<: *d\n  b: 3", "d: &d {a: 1}\nf: &f {b: 2}\ne:\n  <<: [*d, *f]\n  c: 3",
    "d: &d {a: 1}\nf: &f {a: 2}\ne: {<<: [*d, *f]}", "e: {<<: 1}", "e: {<<: [1]}", "e: {b: 3, <<: {a: 1, b: 2}, c: 4}",
    "e: {<<: {a: 1}, <<: {b: 2}}", "d: &d {<<: {x: 1}, a: 1}\ne: {<<: *d}", "e: {'<<': {a: 1}}", "e: {<<: {}}", "- <<", "- =", "=: 1",
    "a: 1\na: 2", "{a: 1, a: 1}", "{1: a, 1.0: b}", "{1: a, true: b}", "{1: a, '1': b}", "{yes: a, true: b}", "a:\n  x: 1\n  x: 2",
    "{[1]: a}", "{{a: 1}: b}", "? [a]\n: b", "1: a", "true: a", "null: a", "~: a", "1.5: a", ": a", "'': a",
    "a: !!str 1", "a: !!int '5'", "a: !!int x", "a: !!float 1", "a: !!float '1.5'", "a: !!bool yes", "a: !!bool 'YES'", "a: !!bool x",
    "a: !!null x", "a: !!binary aGk=", "a: !!binary aGk", "a: !!binary 'aG k='", "a: !!seq [1]", "a: !!seq x", "a: !!map {b: 1}",
    "a: !!map [1]", "a: !!omap [b: 1]", "a: !!pairs [b: 1, b: 2]", "a: !foo 1", "a: !!python/object:x.y {}", "a: !!python/unicode x",
    "a: ! 1", "a: ! x", "a: !", "a: !!timestamp 2026-11-20", "a: 2026-11-20 13:05:09", "!!str a: 1", "a: !<tag:yaml.org,2002:str> 1",
    "a: \"\\q\"", "a: \"\\t\"", "a: '\\t'", "a: \"\\0\"", "a: \x01", "a: \x7f", "a: \u00e9", "a: \u2028b", "a: \ufeffb", "a: \U0001f600",
    "a: b\r\nc: d\r\n", "a: b\rc: d", "a:   b   ", "a: b  c", "a: 'b  c'", "a: @x", "a: `x", "a: %x", "%x: a", "a: -", "a: - b", "a: ?", "a: :", "a: ::b",
    "a: [b:c, d]", "a: {b:c}", "a: [-, b]", "a: [b]c", "a: {b}c", "a: 'b'c", "a: \"b\" # c", "a: \"b\"#c", "master: 10.0.0.1", "a: 1 2",
    "nodegroups:\n  g: 'L@a,b'\n  h:\n    - a\n    - or\n    - b\n", "file_roots:\n  base:\n    - /srv/salt\n    - /srv/other\n",
    "peer:\n  .*:\n    - .*\n", "a: *", "*a: b", "&: b", "a: |x\n b", "a: >\n", "a:\n  |\n   b", "- a: b\n  c: d\n-\n  e: f", "a:\n\n\n  b: c",
    "autosign: \"a\nb\"", "{a: 'b', \"c\": d}", "{\na: b,\nc: d\n}", "[\n1,\n2\n]", "- [a, b]: c", "a: b\n- c", "- a\nb: c", "  a: b", "  a: b\nc: d",
]
WORDS = SCALARS + [d for d in DOCS] + [
    "a b", "a=b", "a = b", "a==b", "1a=b", "k=0644", "k=[1,2]", "k={a: b}", "k=a: b", "k=#x", "k=a #b", "k=", "k=None", "a.b-c=1", "\u00e9=1", "_=1",
    "k=1_000", "k=x=y", "k='a'", "{}", "[]", "{a: b} #c", "[1] # x", "a: b # c", "1 # c", "\"a # b\"", "'#'", " 1", "1 ", " ", "\u00a0", "- a", "!!set {a, b}",
]


def js(value):
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, float):
        return {"$float": "nan" if math.isnan(value) else repr(value)}
    if isinstance(value, dict):
        return {"$map": [[js(k), js(v)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [js(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return {"$set": sorted(value)}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"$int": str(value)}
    return value


def load(text):
    try:
        return {"value": js(salt.utils.yaml.safe_load(text))}
    except Exception as exc:
        return {"error": type(exc).__name__}


def main():
    texts = SCALARS + ["a: " + s for s in SCALARS] + ["[" + s + "]" for s in SCALARS] + DOCS
    out = {
        "yaml": [dict(text=t, **load(t)) for t in dict.fromkeys(texts)],
        "parse_input": [{"word": w, "arg": js(salt.utils.args.parse_input([w]))} for w in dict.fromkeys(WORDS)],
    }
    json.dump(out, sys.stdout, ensure_ascii=True, indent=0)
    sys.stdout.write("\n")


main()
