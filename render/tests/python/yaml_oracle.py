#!/usr/bin/env python3
"""What stock Salt 3008.3 makes of YAML: generated texts and values with its answers, a line of JSON each.

    VENV/bin/python yaml_oracle.py load SEED COUNT    [text, "ok", repr] or [text, error's class, its text]
    VENV/bin/python yaml_oracle.py dump SEED COUNT    [value, options, text]; a value is typed JSON, see `typed`
    VENV/bin/python yaml_oracle.py json SEED COUNT    as load, for JSON
    VENV/bin/python yaml_oracle.py files FOLDER...    as load, for each .yml, .yaml, .sls and pillar.example
    VENV/bin/python yaml_oracle.py answers FOLDER     as dump, for pillars and low data of the NAME.json.xz about formulas
    VENV/bin/python yaml_oracle.py reload FOLDER      as load, for the text of these dumps
    VENV/bin/python yaml_oracle.py version            Salt's line and Python's

The files in ../data are `load 1 2500`, `dump 1 2000` and `json 1 1500`, with PYTHONHASHSEED=0 and Python 3.11. The test
`interop` runs the script (tests/interop.rs).
"""
import datetime
import json
import lzma
import pathlib
import random
import string
import sys
from collections import OrderedDict

import yaml
import salt.utils.yaml
import salt.version

FIXED = r"""
a: b: c|\tx|a: [|*x|&a b: *c|&x 1\n&x 2|- &x 1\n- &x 2\n- *x|a: 1\na: 2|{a: 1}: 2|[1]: 2|!!python/object:os.system x|!foo x
<<: 1|a: \x01|"\\x01"|a\n---\nb||--- \n|=|a: =|=: 1|!!int x|!!int ""|!!float x|!!bool x|!!null x|0o17|08|0x|0b|0b_|0_|+0|-017
-0x1F|190:20:30|1:2.5|!!set {b}|!!omap [a: 1]|!!pairs [a: 1, b: 2]|!!pairs {a: 1}|!!pairs [1]|!!pairs [{a: 1, b: 2}]|!!binary YWJj
!!binary YW Jj|!!binary YW==|!!binary =|!!binary \u00e9|!!binary \u00e9\u00e9\U0001f600|!!binary a|!!binary ab|!!str 5|!!python/unicode 5
!!python/str 5|2020-01-01|2020-01-01 10:00:00|!!timestamp foo|!!map [1]|!!seq {a: 1}|!!str [1]|!!int [1]|!!set [1]|! 5|! "5"|! [1]
%YAML 1.2\n--- a|%YAML 2.0\n--- a|%YAML 1.1\n%YAML 1.1\n--- a|%TAG ! tag:yaml.org,2002:\n--- !int "5"|%TAG !e! tag:x,\n--- !e!f g|!e!f g
\ufeffa: 1|a: \U0001f600|? a|? a\n: b|a:\n  - b\n c|'a|"\\q"|"\\|"\\x4|"a\\\n  b"|'a\n\n  b'|"a\\ \n b"|\|2\n  a|a: >-\n  b\n  c\n\n  d|@a|`a|%a|%YAML a
1e3|1.e+3|1.5e3|.5|._1|1_0.5|._|.inf|-.INF|.NaN|~|null|Null|nUll|yes|YES|yEs|y|n|on|Off|x: !!value y|!!merge x|{<<: {a: 1}}
<<: [{a: 1},{a: 2}]|<<: [{a: 1},{b: 2}]\nc: 3|<<: [1]|a: 1\n<<: {a: 2, b: 3}|!!str <<: {a: 2}|0b1010_1|-|?|key: \|\n\tx|a: !!binary [1]
!<tag:yaml.org,2002:int> 5|!!int 0|!!int 00|!!int 0b11|!!int _|!!int +|!!int "0x_"|!!int "1:99"|!!float "1:30.5"|!!float 1_000|!!float ""
!!float .inf|!!bool YES|!!bool [1]|!!timestamp [1]|!!null [1]|"<<": {a: 1}|!!set {a: 1, a: 2}|[!a,]|[!!str,]|{a: !!str, b}|!!str|&a|a: &b|[&a b, *a]
a: |a:\n|a:\n-|a:\n- b\n- c|a:\n - b\n - c|- a\n-b|- - a\n  - b|- a: b\n  c: d|[a, b|{a, b|{a: b, c}|{? a : b}|[? a : b]|[a: b, c: d]|[a,,b]|{,}|[,]
{a:b}|{"a":b}|{a: }|[:]|[a:]|[::]|{::}|a::b|a:: b|a #b|a#b|'a'#b|'a' #b|"a" b|'a': b|"a" : b|a : b|a\n b\n c|a\n\n b|a\n#c\nb|a:\n  b\n  c
\|\n a\n b\n|\|-\n a\n\n|\|+\n a\n\n|>\n a\n b\n\n c\n  d\n e|>+\n a\n\n\n|\|0\n a|\|1\n a|\|1-\n a|\|-1\n a|\|+ #c\n a|\| x\n a|\|\n  a\n b|\|\n\n\n  a|\|
---|--- a\n...|...|a\n...\nb|a\n...\n---\nb|---\n---|--- |--- >\n a|"a\n---\nb"|a\n---|#|# a\n|a: 1 # b|a: '#'|- # a\n  b|!|!!|!a!b c|!<> a|!<a b|!%41 a
&|&a-b_1 c|&a* b|*|*a|? - a\n: - b|? a\n? b|: a|- : a|a: b\n\tc: d|a:\tb|a:\n\tb|-\ta|a\tb|'a\tb'|\u2028a|a\u2028b|a\x85b|'a\x85b'|\|\n a\u2028 b\n
"\\u00e9\\U0001F600\\x41\\N\\_\\L\\P\\e\\0\\a\\b\\t\\n\\v\\f\\r\\"\\/\\\\\\ "|"\\ud800"|"\\U00110000"|\r\na: b\r\nc: d\r\n|a: |\r\n  b\r\n  c|a: b\rc: d
true: 1\n1: 2|1: a\n1.0: b|null: a\n~: b|1.5: a|yes: a\nno: b|? !!binary YQ==\n: b|0x10: a\n16: b|"": a|'': a\n"": b|a: &x {b: c}\nd: *x|a: &x {b: c}\nd:\n  <<: *x\n  e: f
a: &x {b: 1}\nc: &y {<<: *x, d: 2}\ne: {<<: *y, b: 3}|{<<: {a: 1}, <<: {b: 2}}|{<<: {a: 1}, <<: {a: 2}}|<<: {=: 1}|!!str {=: x}|!!int {=: 5}|a: {b: c}}|a: ]|}|]|,
- a\n - b\n- c|a: b\n c: d|a: b\n  c|a:\n  b: c\n d: e|a:\n    b\n  c: d|{a\n: b}|[a\n: b]|{a: b\n}|{a: b\n}: c|"a\nb": c|a\nb: c|- a\nb: c|a: - b|a: ? b|a: &b - c
""".strip("\n")

PIECES = ["a", "b", "cc", "1", "0", "07", "1.5", "yes", "null", "~", "é", "😀", " ", "  ", "\n", "\n  ", "\n    ", ": ", ":", "- ", "-", "? ", "[",
          "]", "{", "}", ", ", ",", "#", " #", "&a ", "*a", "!!str ", "!!int ", "!x ", "!", "|\n", ">\n", "|-\n  ", ">+\n ", "'", "''", '"', '\\n', "\\",
          "<<: ", "=", "%", "@", "`", "\t", "---\n", "...\n", "--- ", "%YAML 1.1\n", "\u2028", "\x85", "\r\n", "\ufeff"]


def fixed():
    out = []
    for line in FIXED.split("\n"):
        part = ""
        for piece in line.replace("\\|", "\0").split("|"):
            text = piece.replace("\0", "|").replace("\\\\", "\1")
            for find, put in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\1", "\\")):
                text = text.replace(find, put)
            for size, letter in ((2, "x"), (4, "u"), (8, "U")):
                # \x01 and the like, but not those of YAML itself
                at = text.find("\\" + letter)
                while at >= 0 and not text.startswith('"'):
                    text = text[:at] + chr(int(text[at + 2:at + 2 + size], 16)) + text[at + 2 + size:]
                    at = text.find("\\" + letter)
            out.append(text)
    return out


def number(r):
    body = "".join(r.choice("0123456789_.:eE+-xb") for _ in range(r.randint(1, 7)))
    return r.choice(["", "", "-", "+", "0", "0x", "0b", ".", "1:", "2020-0"]) + body


def word(r):
    kind = r.random()
    if kind < 0.15:
        return number(r)
    if kind < 0.3:
        return r.choice(["yes", "no", "on", "off", "true", "null", "~", "0644", "1:30", "1e3", "2020-01-01", "<<", "=", "y", "a b", "a: b", "é", "x" * 90])
    return "".join(r.choice(string.ascii_lowercase + "_-. ") for _ in range(r.randint(1, 10))).strip() or "w"


def scalar(r, flow=False):
    text = word(r)
    style = r.random()
    if style < 0.15:
        return "'" + text.replace("'", "''") + "'"
    if style < 0.3:
        return json.dumps(text)
    prefix = r.choice(["", "", "", "", "", "", "!!str ", "!!int ", "!!float ", "! ", "&a ", "&b "])
    return prefix + text


def flow(r, depth):
    if depth <= 0 or r.random() < 0.5:
        return r.choice(["*a", "*b"]) if r.random() < 0.01 else scalar(r, True)
    if r.random() < 0.5:
        return "[" + r.choice([", ", ",", ",\n  "]).join(flow(r, depth - 1) for _ in range(r.randint(0, 3))) + "]"
    return "{" + ", ".join(f"{scalar(r)}: {flow(r, depth - 1)}" for _ in range(r.randint(0, 3))) + "}"


def block(r, indent, depth):
    pad = " " * indent
    kind = r.random()
    if depth <= 0 or kind < 0.15:
        if r.random() < 0.2:
            mark = r.choice(["|", ">", "|-", ">-", "|+", ">+", "|2"])
            lines = "".join(r.choice([pad + "  " + word(r), "", pad + "   " + word(r), pad + "  "]) + "\n" for _ in range(r.randint(1, 4)))
            return f" {mark}\n{lines}"
        return " " + flow(r, 2) + r.choice(["", "", "  # c"]) + "\n"
    out = r.choice(["", "", "", " &a", " &b", " !!map", " # c"]) + "\n"
    for _ in range(r.randint(1, 4)):
        if kind < 0.5:
            out += pad + "-" + block(r, indent + 2, depth - 1)
        else:
            key = "<<" if r.random() < 0.03 else r.choice([scalar(r), word(r), word(r)])
            value = block(r, indent + r.choice([0, 1, 2, 4]), depth - 1) if r.random() < 0.98 else " *a\n"
            out += pad + key + ":" + value
        if r.random() < 0.05:
            out += r.choice(["\n", pad + "# c\n", "\t\n"])
    return out


def mutate(r, text):
    for _ in range(r.randint(1, 3)):
        at = r.randint(0, len(text))
        if r.random() < 0.5:
            text = text[:at] + r.choice(PIECES) + text[at:]
        else:
            text = text[:at] + text[at + r.randint(1, 3):]
    return text


def texts(seed, count):
    r = random.Random(seed)
    if seed == 1:
        yield from fixed()
    for _ in range(count):
        kind = r.random()
        if kind < 0.15:
            yield number(r)
        elif kind < 0.3:
            yield "".join(r.choice(PIECES) for _ in range(r.randint(1, 8)))
        elif kind < 0.4:
            yield "---" + block(r, 0, 3)
        elif kind < 0.55:
            yield flow(r, 3)
        else:
            text = block(r, 0, r.randint(1, 3)).lstrip("\n")
            yield mutate(r, text) if kind < 0.85 else text


def answer(text):
    """None where the answer is not ours to give: what contains itself, and numbers beyond our bound."""
    try:
        value = salt.utils.yaml.safe_load(text)
    except yaml.YAMLError as error:
        return [text, type(error).__name__, str(error)]
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        return [text, type(error).__name__, str(error)]
    except (TypeError, RecursionError, OverflowError):
        return None
    shown = repr(value)
    if "..." in shown and "..." not in text or "Node(" in shown or big(value):
        return None
    if isinstance(value, set) and len(value) > 1 or "{" in shown and "!!set" in text:
        return None
    return [text, "ok", shown]


def big(value):
    if isinstance(value, dict):
        return any(big(k) or big(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return any(map(big, value))
    return isinstance(value, int) and abs(value) >= 2**127


JSON_PIECES = ['{', '}', '[', ']', ',', ':', '"a"', '"b": ', '"', '\\', '\\n', '\\u00e9', '\\ud83d\\ude00', '\\x', '\\u12', '1', '-', '0', '1.5', '.', 'e', '-1e+5',
               'null', 'true', 'NaN', 'Infinity', '-Infinity', 'nul', ' ', '\n', '\t', 'é', '😀', '\x00', "'", '\ufeff', '1e400']


def json_value(r, depth):
    if depth <= 0 or r.random() < 0.4:
        return r.choice([None, True, 1, -5, 2**70, 1.5, 1e300, "", "a", "é\n", "😀\\", float("inf")])
    if r.random() < 0.5:
        return [json_value(r, depth - 1) for _ in range(r.randint(0, 4))]
    return {r.choice("abcdef"): json_value(r, depth - 1) for _ in range(r.randint(0, 4))}


def json_cases(seed, count):
    r = random.Random(seed)
    for _ in range(count):
        made = json.dumps(json_value(r, 3), ensure_ascii=r.random() < 0.5, indent=r.choice([None, 1]))
        kind = r.random()
        if kind < 0.3:
            made = "".join(r.choice(JSON_PIECES) for _ in range(r.randint(0, 8)))
        elif kind < 0.8:
            for _ in range(r.randint(1, 2)):
                at = r.randint(0, len(made))
                made = made[:at] + (r.choice(JSON_PIECES) if r.random() < 0.6 else "") + made[at + r.randint(0, 2):]
        try:
            found = json.loads(made)
        except ValueError as error:
            yield [made, type(error).__name__, str(error)]
            continue
        if not big(found) and "\\ud" not in json.dumps(repr(found)).replace("\\ud83d\\ude00", ""):
            yield [made, "ok", repr(found)]


def typed(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, tuple):
        return {"tuple": [typed(item) for item in value]}
    if isinstance(value, OrderedDict):
        return {"ordered": [[typed(k), typed(v)] for k, v in value.items()]}
    if isinstance(value, dict):
        return {"dict": [[typed(k), typed(v)] for k, v in value.items()]}
    if isinstance(value, set):
        return {"set": [typed(item) for item in value]}
    if isinstance(value, datetime.datetime):
        offset = None if value.tzinfo is None else int(value.utcoffset().total_seconds() // 60)
        return {"datetime": [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, offset]}
    return {"date": [value.year, value.month, value.day]}


SPECIAL = ["", " ", "a ", " a", "yes", "no", "1", "1.5", "0644", "08", "1:30", "null", "~", "a: b", "a:b", "- x", "-x", "-", "?", "? x", "#a", "a #b", "a#b",
           "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'", '"', "a'b", 'a"b', "'a'", "[a", "a]", "{a}", "a,b", "a, b", "\n", "a\n", "a\nb", "a\n\nb", " a\nb",
           "a \nb", "a\n b", "\na", "a\n\n", "\t", "a\tb", "\ta", "é", "ü b", "😀", "a😀", "\x00", "\x07\x1b", "\x7f", "\x85", "\xa0", "\u2028", "\u2029x", "\ufeff",
           "\ufffe", "\u7eff", "绿色", "2020-01-01", "2020-01-01 10:00:00", "<<", "=", "---", "--- a", "...", "..", "---a", "x" * 100, "x " * 60, "x  " * 40,
           "word " * 30 + "\n" + "word " * 30, "a\\b", "\\", "a\r\nb", "\r", ".inf", ".nan", "1e3", "1.0e+3", "0x1f", "0b1", "1_000", "_", "a" * 128, "a" * 129,
           "é" * 64, "é" * 65, "true", "on", "key: |", "a:", ":a", "a::b", "http://a/b?c=d#e", "{{ a }}", "{% a %}", "100%", "a|b", "a>b", "*", "&", "!", "a?b", "a? b"]


def text(r):
    kind = r.random()
    if kind < 0.35:
        return r.choice(SPECIAL)
    if kind < 0.5:
        return number(r)
    if kind < 0.7:
        return "".join(r.choice("ab:#-? \n'\"é😀\t,[]{}&*!|>%@`\\\u2028") for _ in range(r.randint(1, 12)))
    if kind < 0.8:
        return r.choice([" ", "  ", ", ", ": ", "\n"]).join(r.choice(["lorem", "a", "ipsum-dolor", "'sit'", "é", '"amet"', "x" * 30]) for _ in range(r.randint(1, 40)))
    return word(r)


def atom(r):
    kind = r.random()
    if kind < 0.6:
        return text(r)
    if kind < 0.7:
        return r.choice([0, 1, -1, 7, 2**40, 2**100, -(2**70), r.randint(-1000, 1000)])
    if kind < 0.8:
        return r.choice([0.0, -0.0, 1.0, 1e16, 1.5e-7, 1e22, 1e100, 123456789.125, float("inf"), float("-inf"), float("nan"), r.random(), r.uniform(-1e6, 1e6), 5e-324, 0.1])
    if kind < 0.86:
        return r.choice([True, False, None])
    if kind < 0.92:
        return r.randbytes(r.choice([0, 1, 3, 20, 57, 58, 100]))
    if kind < 0.96:
        return datetime.date(2020, r.randint(1, 12), r.randint(1, 28))
    zone = r.choice([None, datetime.timezone.utc, datetime.timezone(datetime.timedelta(minutes=r.choice([90, -330])))])
    return datetime.datetime(2020, 1, r.randint(1, 28), 3, 4, r.randint(0, 59), r.choice([0, 5, 123456]), zone)


def value(r, depth):
    kind = r.random()
    if depth <= 0 or kind < 0.3:
        return atom(r)
    if kind < 0.55:
        return [value(r, depth - 1) for _ in range(r.randint(0, 5))]
    if kind < 0.6:
        return tuple(value(r, depth - 1) for _ in range(r.randint(0, 3)))
    if kind < 0.63:
        return {key(r) for _ in range(r.randint(0, 3))}
    entries = [(key(r), value(r, depth - 1)) for _ in range(r.randint(0, 5))]
    return OrderedDict(entries) if r.random() < 0.5 else dict(entries)


def key(r):
    found = text(r) if r.random() < 0.85 else atom(r)
    # two of them are unequal, and their order is by chance
    return 1 if found != found else found


def main():
    mode = sys.argv[1]
    if mode == "files":
        for folder in sys.argv[2:]:
            for path in sorted(pathlib.Path(folder).rglob("*")):
                if path.is_file() and (path.suffix in (".yml", ".yaml", ".sls") or path.name == "pillar.example"):
                    try:
                        found = answer(path.read_text("utf-8"))
                    except UnicodeDecodeError:
                        continue
                    if found:
                        print(json.dumps(found))
        return
    if mode == "version":
        print(salt.version.__saltstack_version__.major, ".".join(map(str, sys.version_info[:2])))
        return
    if mode in ("answers", "reload"):
        for path in sorted(pathlib.Path(sys.argv[2]).glob("*.json.xz")):
            found = json.loads(lzma.open(path).read())
            for made in found["pillars"] + [case["low"] for case in found["cases"] if "low" in case]:
                for style in (None, True, False):
                    options = {"default_flow_style": style}
                    dumped = salt.utils.yaml.safe_dump(made, **options)
                    print(json.dumps([typed(made), options, dumped] if mode == "answers" else answer(dumped)))
        return
    seed, count = int(sys.argv[2]), int(sys.argv[3])
    if mode == "json":
        for found in json_cases(seed, count):
            print(json.dumps(found))
        return
    if mode == "load":
        for made in texts(seed, count):
            found = answer(made)
            if found:
                print(json.dumps(found))
        return
    r = random.Random(seed)
    first = [(made, {}) for made in SPECIAL] + [([made], {"default_flow_style": False}) for made in SPECIAL]
    first += [({made: made}, {"default_flow_style": True}) for made in SPECIAL]
    for n in range(count):
        if seed == 1 and n < len(first):
            made, options = first[n]
        else:
            made, options = value(r, r.randint(0, 4)), {}
            if r.random() < 0.7:
                options["default_flow_style"] = r.choice([True, False])
            for name, choices in (("width", [10, 20, 40, 80, 200, 2**31 - 1, -1]), ("indent", [1, 2, 4, 8, 10]), ("allow_unicode", [False]),
                                  ("sort_keys", [False]), ("default_style", ['"', "'", "|", ">"])):
                if r.random() < 0.12:
                    options[name] = r.choice(choices)
        try:
            print(json.dumps([typed(made), options, salt.utils.yaml.safe_dump(made, **options)]))
        except UnicodeEncodeError:
            continue


if __name__ == "__main__":
    main()
