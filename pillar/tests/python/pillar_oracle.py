"""What stock Salt makes of trees of pillar files: one line of JSON for each case, on standard output.

    pillar_oracle.py version        the versions of Salt and Python
    pillar_oracle.py cases          compiles each case of CASES

A case has files by environment and path, options of the master, what the minion says, and then stock's pillar (as
Python writes it, with dicts, lists and text only), its errors, or the name of the exception that it ends with.
"""
import collections
import datetime
import json
import logging
import os
import sys
import tempfile

GRAINS = {"os": "Debian", "osrelease": "12.4", "roles": ["web", "db"], "nodename": "web1", "ipv4": ["10.1.2.3", "127.0.0.1"],
          "nested": {"a": {"b": "c"}}, "num_cpus": 4, "fqdn": "web1.example"}
TOP = "base:\n  '*':\n"


def tree(name, base, grains=GRAINS, minion="web1.example", **more):
    case = {"name": name, "files": {"base": base}, "opts": {}, "id": minion, "grains": grains, "saltenv": None, "pillarenv": None, "override": {}}
    case["files"].update(more.pop("envs", {}))
    case.update(more)
    return case


def with_top(name, sls, top=None, **more):
    """All files of `sls`, in the top file for every minion unless `top` names some."""
    names = top if top is not None else [path.removesuffix("/init.sls").removesuffix(".sls").replace("/", ".") for path in sls if path.endswith(".sls")]
    files = {"top.sls": TOP + "".join(f"    - {name}\n" for name in names)}
    files.update(sls)
    return tree(name, files, **more)


def targets(name, top, minion="web1.example", **more):
    return tree(name, {"top.sls": top, "hit.sls": "hit: 1\n", "miss.sls": "miss: 1\n"}, minion=minion, **more)


def merging(name, a, b, opts):
    return with_top(name, {"a.sls": a, "b.sls": b}, opts=opts)


A = "one: 1\nd:\n  x: 1\n  l: [1, 2]\n  deep: {a: 1}\nl: [a, {k: v}]\ns: text\n"
B = "two: 2\nd:\n  y: 2\n  l: [2, 3]\n  deep: {b: 2}\nl: [b, {k: v}, b]\ns: {now: dict}\n"

CASES = [
    # top files
    tree("no files", {}),
    tree("an empty top", {"top.sls": ""}),
    tree("a top without content", {"top.sls": "# nothing\n"}),
    with_top("one file", {"a.sls": "x: 1\n"}),
    with_top("a folder", {"a/init.sls": "x: 1\n", "a/b.sls": "y: [1, 2]\n"}),
    with_top("two files", {"a.sls": "x: 1\nd: {a: 1}\n", "b.sls": "y: 2\nd: {b: 2}\n"}),
    with_top("globs in a top", {"a/x.sls": "x: 1\n", "a/y.sls": "y: 1\n", "b.sls": "z: 1\n"}, top=["'a.*'"]),
    with_top("a glob of one letter", {"a1.sls": "x: 1\n", "a2.sls": "y: 1\n", "b1.sls": "z: 1\n"}, top=["'a?'", "'[bc]1'"]),
    with_top("a file that is missing", {"a.sls": "x: 1\n"}, top=["a", "gone"]),
    tree("ignore_missing", {"top.sls": TOP + "    - ignore_missing: True\n    - a\n    - gone\n", "a.sls": "x: 1\n"}),
    tree("a top that is a list", {"top.sls": "- a\n- b\n"}),
    tree("a top of text", {"top.sls": "just text\n"}),
    tree("an environment that is a list", {"top.sls": "base:\n  - a\n", "a.sls": "x: 1\n"}),
    tree("a target that is text", {"top.sls": "base:\n  '*': ab\n", "a.sls": "x: 1\n", "b.sls": "y: 1\n"}),
    tree("a target that is a number", {"top.sls": "base:\n  '*': 1\n"}),
    tree("a top that does not parse", {"top.sls": "base: [\n"}),
    tree("a top with a template", {"top.sls": "{% if grains.os == 'Debian' %}\nbase:\n  '{{ grains.id }}':\n    - a\n{% endif %}\n", "a.sls": "x: 1\n"}),
    tree("a top with an undefined name", {"top.sls": "base:\n  '{{ nope.a }}': [a]\n"}),
    tree("orders", {"top.sls": "base:\n  'web*':\n    - order: 10\n    - a\n  '*':\n    - order: 2\n    - b\n  '*1*':\n    - order: x\n    - c\n", "a.sls": "v: a\n", "b.sls": "v: b\n", "c.sls": "v: c\n"}),
    tree("an include in a top", {"top.sls": "include:\n  - more\nbase:\n  '*': [a]\n", "more.sls": "base:\n  'web1*': [b]\n  '*': [c]\n", "a.sls": "x: 1\n", "b.sls": "y: 1\n", "c.sls": "z: 1\n"}),
    tree("an include in a top that is missing", {"top.sls": "include: [gone]\nbase:\n  '*': [a]\n", "a.sls": "x: 1\n"}),
    tree("another name of the top", {"other.sls": TOP + "    - a\n", "a.sls": "x: 1\n"}, opts={"state_top": "salt://other.sls"}),
    # targets
    targets("globs", "base:\n  'web*': [hit]\n  'db*': [miss]\n"),
    targets("pcre", "base:\n  'web\\d':\n    - match: pcre\n    - hit\n  'x.*':\n    - match: pcre\n    - miss\n"),
    targets("a list", "base:\n  'a,web1.example':\n    - match: list\n    - hit\n  'web1':\n    - match: list\n    - miss\n"),
    targets("grains", "base:\n  'os:Deb*':\n    - match: grain\n    - hit\n  'os:Red*':\n    - match: grain\n    - miss\n"),
    targets("nested grains", "base:\n  'nested:a:b:c':\n    - match: grain\n    - hit\n  'roles:db':\n    - match: grain\n    - miss\n"),
    targets("grains by pcre", "base:\n  'os:(Debian|Ubuntu)':\n    - match: grain_pcre\n    - hit\n  'os:^x':\n    - match: grain_pcre\n    - miss\n"),
    targets("the id as a grain is proved", "base:\n  'id:web1.example':\n    - match: grain\n    - hit\n  'id:other':\n    - match: grain\n    - miss\n"),
    targets("compound", "base:\n  'G@os:Debian and not db*':\n    - match: compound\n    - hit\n  'G@os:Debian and E@db.*': [miss]\n"),
    targets("compound without a word", "base:\n  'G@roles:web or L@x,y': [hit]\n  'not G@os:Debian': [miss]\n"),
    targets("a compound that does not parse", "base:\n  'and web*': [miss]\n  '*': [hit]\n"),
    targets("networks", "base:\n  '10.1.0.0/16':\n    - match: ipcidr\n    - hit\n  '10.2.0.0/16':\n    - match: ipcidr\n    - miss\n"),
    targets("node groups", "base:\n  group1:\n    - match: nodegroup\n    - hit\n  group2:\n    - match: nodegroup\n    - miss\n", opts={"nodegroups": {"group1": "web* and G@os:Debian", "group2": "L@db1"}}),
    targets("a node group that is not there", "base:\n  gone:\n    - match: nodegroup\n    - miss\n  '*': [hit]\n"),
    targets("pillar, which is not there yet", "base:\n  'hit:1':\n    - match: pillar\n    - miss\n  '*': [hit]\n"),
    targets("a match that is not there", "base:\n  '*':\n    - match: nonsense\n    - miss\n"),
    targets("several targets have a file", "base:\n  '*': [hit]\n  'web*': [miss, hit]\n"),
    # environments
    tree("two environments", {"top.sls": "base:\n  '*': [a]\ndev:\n  '*': [b]\n", "a.sls": "x: base\ny: base\n"}, envs={"dev": {"b.sls": "x: dev\nz: dev\n"}}),
    tree("two tops", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: base\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\n", "b.sls": "x: dev\n"}}),
    tree("pillarenv", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: base\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\n", "b.sls": "x: dev\n"}}, pillarenv="dev"),
    tree("pillarenv and a top of another", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: base\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\nbase:\n  '*': [a]\n", "b.sls": "x: dev\n"}}, pillarenv="dev"),
    tree("pillarenv of the master", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: base\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\n", "b.sls": "x: dev\n"}}, opts={"pillarenv": "dev"}),
    tree("pillarenv_from_saltenv", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: base\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\n", "b.sls": "x: dev\n"}}, opts={"pillarenv_from_saltenv": True}, saltenv="dev"),
    tree("saltenv alone changes nothing", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: {{ saltenv }} {{ opts.saltenv }}\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\n", "b.sls": "y: {{ saltenv }}\n"}}, saltenv="dev"),
    tree("an environment that is not there", {"top.sls": "base:\n  '*': [a]\nnope:\n  '*': [b]\n", "a.sls": "x: 1\n"}),
    tree("a pillarenv that is not there", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: 1\n"}, pillarenv="nope"),
    tree("__env__", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: 1\n"}, envs={"__env__": {"top.sls": "{{ saltenv }}:\n  '*': [b]\n", "b.sls": "y: {{ saltenv }}\n"}}, pillarenv="feature"),
    tree("__env__ beside a listed one", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: 1\n"}, envs={"__env__": {"top.sls": "{{ saltenv }}:\n  '*': [b]\n", "b.sls": "y: {{ saltenv }}\n"}}, pillarenv="base"),
    tree("env_order", {"top.sls": "base:\n  '*': [a]\ndev:\n  '*': [b]\n", "a.sls": "x: base\n"}, envs={"dev": {"b.sls": "x: dev\n"}}, opts={"env_order": ["dev", "base"]}),
    # includes
    with_top("an include", {"a.sls": "include:\n  - b\nx: a\n", "b.sls": "x: b\ny: b\n"}, top=["a"]),
    with_top("includes override", {"a.sls": "include:\n  - b\nx: a\n", "b.sls": "x: b\ny: b\n"}, top=["a"], opts={"pillar_includes_override_sls": True}),
    with_top("an include with key", {"a.sls": "include:\n  - b:\n      key: in:here\nx: a\n", "b.sls": "x: b\n"}, top=["a"]),
    with_top("an include with defaults", {"a.sls": "include:\n  - b:\n      defaults:\n        who: you\n        n: 3\n", "b.sls": "x: {{ who }}\nn: {{ n + 1 }}\n"}, top=["a"]),
    with_top("defaults of an earlier include", {"a.sls": "include:\n  - b:\n      defaults: {who: you}\n  - c\n", "b.sls": "x: {{ who }}\n", "c.sls": "y: {{ who }}\n"}, top=["a"]),
    with_top("relative includes", {"a/init.sls": "include:\n  - .b\nx: a\n", "a/b.sls": "include:\n  - .c\ny: b\n", "a/c.sls": "z: c\n"}, top=["a"]),
    with_top("globs in an include", {"a.sls": "include:\n  - 'b.*'\n", "b/x.sls": "x: 1\n", "b/y.sls": "y: 1\n"}, top=["a"]),
    with_top("an include loop", {"a.sls": "include: [b]\nx: a\n", "b.sls": "include: [a]\ny: b\n"}, top=["a"]),
    with_top("an include of itself", {"a.sls": "include: [a]\nx: a\n"}, top=["a"]),
    with_top("an include that is missing", {"a.sls": "include: [gone]\nx: a\n"}, top=["a"]),
    with_top("an include that is text", {"a.sls": "include: b\nx: a\n", "b.sls": "y: b\n"}, top=["a"]),
    with_top("an include that does not render", {"a.sls": "include: [b, c]\nx: a\n", "b.sls": "{{ nope.a }}\n", "c.sls": "y: c\n"}, top=["a"]),
    with_top("an include that is a list", {"a.sls": "include: [b]\nx: a\n", "b.sls": "- 1\n"}, top=["a"]),
    with_top("a file that two include", {"a.sls": "include: [c]\nx: a\n", "b.sls": "include: [c]\ny: b\n", "c.sls": "z: [1]\n"}, top=["a", "b"], opts={"pillar_merge_lists": True}),
    with_top("includes with slashes", {"a.sls": "include: [b/c]\n", "b/c.sls": "x: 1\n"}, top=["a"]),
    # files
    with_top("a file that is a list", {"a.sls": "- 1\n", "b.sls": "x: 1\n"}),
    with_top("a file that is text", {"a.sls": "hello\n", "b.sls": "x: 1\n"}),
    with_top("an empty file", {"a.sls": "", "b.sls": " \n\n", "c.sls": "x: 1\n"}),
    with_top("a file that does not parse", {"a.sls": "a: b: c\n", "b.sls": "x: 1\n"}),
    with_top("a duplicate key", {"a.sls": "a: 1\na: 2\n", "b.sls": "x: 1\n"}),
    with_top("a file that is not UTF-8", {"a.sls": "latin1:caf\udce9\n", "b.sls": "x: 1\n"}),
    with_top("an undefined name", {"a.sls": "x: {{ nope }}\n", "b.sls": "y: 1\n"}),
    with_top("a renderer that is not there", {"a.sls": "#!nonsense\nx: 1\n", "b.sls": "y: 1\n"}),
    with_top("json and yaml", {"a.sls": "#!json\n{\"x\": [1, 2.5, null]}\n", "b.sls": "#!yaml\ny: '{{ x }}'\n", "c.sls": "#!jinja|json\n{\"z\": \"{{ grains.os }}\"}\n"}),
    with_top("anchors", {"a.sls": "a: &x {b: 1}\nc: *x\n", "b.sls": "a: {d: 2}\n"}),
    with_top("kinds of values", {"a.sls": "t: yes\nn: null\nf: 1.5\no: 0644\ns: '1'\n1: number\nl: [[1], {a: []}]\ne: {}\nm: |\n  two\n  lines\n"}),
    # templates
    with_top("grains in a template", {"a.sls": "os: {{ grains['os'] }}\nid: {{ grains.id }}\nroles: {{ grains.roles }}\nn: {{ grains.nested.a.b }}\n"}),
    with_top("where a template is", {"a/b.sls": "x: '{{ sls }} {{ slspath }} {{ slsdotpath }} {{ tplfile }} {{ tpldir }} {{ tpldot }} {{ sls_path }} {{ slscolonpath }}'\n", "a/init.sls": "y: '{{ sls }} {{ slspath }} {{ tplfile }} {{ tpldir }}'\n"}),
    with_top("the pillar of a template", {"a.sls": "x: 1\n", "b.sls": "y: '{{ pillar }}'\nz: {{ pillar.get('x', 'none') }}\n"}),
    with_top("import_yaml", {"a.sls": "{% import_yaml 'data/map.yaml' as m %}\nx: {{ m.v }}\n", "data/map.yaml": "v: 7\n"}),
    with_top("imports with context", {"a.sls": "{% from 'lib.jinja' import name with context %}\nx: {{ name }}\n", "lib.jinja": "{% set name = grains.os ~ saltenv %}\n"}),
    with_top("relative imports", {"a/init.sls": "{% from './lib.jinja' import name %}\nx: {{ name }}\n", "a/lib.jinja": "{% set name = 'here' %}\n"}),
    with_top("imports that lead out", {"a/init.sls": "{% import '../../out.jinja' as o %}\nx: 1\n"}),
    with_top("absolute imports", {"a.sls": "{% import '/etc/hostname' as o %}\nx: 1\n"}),
    with_top("imports that are missing", {"a.sls": "{% import 'gone.jinja' as o %}\nx: 1\n", "b.sls": "y: 1\n"}),
    with_top("changes of grains are seen by later files", {"a.sls": "{% do grains.update({'new': 1}) %}\nx: 1\n", "b.sls": "y: {{ grains.new }}\n"}),
    with_top("options of the minion", {"a.sls": "x: '{{ opts.id }} {{ opts.file_client }} {{ opts.pillarenv }} {{ opts.saltenv }}'\n"}),
    with_top("jinja_sls_env", {"a.sls": "x:\n  {% if true %}\n  - 1\n  {% endif %}\n"}, opts={"jinja_sls_env": {"trim_blocks": True, "lstrip_blocks": True}}),
    # merging
    merging("smart", A, B, {}),
    merging("recurse", A, B, {"pillar_source_merging_strategy": "recurse"}),
    merging("aggregate", A, B, {"pillar_source_merging_strategy": "aggregate"}),
    merging("overwrite", A, B, {"pillar_source_merging_strategy": "overwrite"}),
    merging("list", A, B, {"pillar_source_merging_strategy": "list"}),
    merging("none", A, B, {"pillar_source_merging_strategy": "none"}),
    merging("smart with lists", A, B, {"pillar_merge_lists": True}),
    merging("recurse with lists", A, B, {"pillar_source_merging_strategy": "recurse", "pillar_merge_lists": True}),
    merging("overwrite with lists", A, B, {"pillar_source_merging_strategy": "overwrite", "pillar_merge_lists": True}),
    tree("none with environments", {"top.sls": "base:\n  '*': [a]\n", "a.sls": "x: base\n"}, envs={"dev": {"top.sls": "dev:\n  '*': [b]\n", "b.sls": "x: dev\n"}}, opts={"pillar_source_merging_strategy": "none"}, saltenv="dev"),
    merging("kinds that differ", "x: [1]\ny: {a: 1}\nz: 1\n", "x: {a: 1}\ny: [1]\nz: {b: 1}\n", {"pillar_merge_lists": True}),
    with_top("an include with lists", {"a.sls": "include: [b]\nl: [1, 2]\n", "b.sls": "l: [2, 3]\n"}, top=["a"], opts={"pillar_merge_lists": True}),
    # pillar= of a command line
    with_top("pillar= adds", {"a.sls": "x: 1\nd: {a: 1}\n"}, override={"y": 2, "d": {"b": 2}}),
    with_top("pillar= overrides", {"a.sls": "x: 1\nl: [1]\n"}, override={"x": 2, "l": [2]}),
    with_top("pillar= in a template", {"a.sls": "x: {{ pillar.get('given', 'no') }}\n"}, override={"given": "yes"}),
    # file_tree
    with_top("file_tree", {"a.sls": "x: 1\n"}, opts={"ext_pillar": [{"file_tree": {"root_dir": "TREE"}}]}, tree={"hosts/web1.example/one": "1\n", "hosts/web1.example/d/two": "2\n\n", "hosts/other/three": "3\n"}),
    with_top("file_tree with line breaks", {"a.sls": "x: 1\n"}, opts={"ext_pillar": [{"file_tree": {"root_dir": "TREE", "keep_newline": ["d/*"]}}]}, tree={"hosts/web1.example/one": "1\n", "hosts/web1.example/d/two": "2\n"}),
    with_top("file_tree with templates", {"a.sls": "x: 1\n"}, opts={"ext_pillar": [{"file_tree": {"root_dir": "TREE", "template": True, "render_default": "jinja|yaml"}}]}, tree={"hosts/web1.example/one": "v: {{ grains.os }}\n"}),
    with_top("file_tree before the top", {"a.sls": "x: {{ pillar.one }}\none: mine\n"}, opts={"ext_pillar_first": True, "ext_pillar": [{"file_tree": {"root_dir": "TREE"}}]}, tree={"hosts/web1.example/one": "1\n"}),
    targets("targets by pillar of ext_pillar_first", "base:\n  'role:w*':\n    - match: pillar\n    - hit\n  'I@role:db': [miss]\n  'role:^we':\n    - match: pillar_pcre\n    - hit\n  'role:web':\n    - match: pillar_exact\n    - hit\n", opts={"ext_pillar_first": True, "ext_pillar": [{"file_tree": {"root_dir": "TREE"}}]}, tree={"hosts/web1.example/role": "web\n"}),
]


def plain(value):
    """Dicts, lists and text, as the wire has them."""
    if isinstance(value, collections.abc.Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (datetime.date, datetime.datetime)):
        return str(value)
    return value


def write(folder, files):
    for path, text in files.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def compile_case(case):
    import salt.config
    import salt.pillar

    with tempfile.TemporaryDirectory() as home:
        opts = salt.config.apply_master_config({"conf_file": os.path.join(home, "master"), "root_dir": home, "cachedir": os.path.join(home, "cache")})
        opts["pillar_roots"], opts["file_roots"] = {}, {"base": []}
        for env, files in case["files"].items():
            # the folder of any environment is named for the one that is asked for
            name = (case["pillarenv"] or case["saltenv"] or "base") if env == "__env__" else env
            folder = os.path.join(home, "roots", "any" if env == "__env__" else "env", name)
            os.makedirs(folder, exist_ok=True)
            write(folder, files)
            opts["pillar_roots"][env] = [os.path.join(home, "roots", "any" if env == "__env__" else "env", env)]
        write(os.path.join(home, "tree"), case.get("tree", {}))
        opts.update(json.loads(json.dumps(case["opts"]).replace("TREE", os.path.join(home, "tree"))))
        grains = dict(json.loads(json.dumps(case["grains"])), id=case["id"])
        pillar = salt.pillar.Pillar(opts, grains, case["id"], case["saltenv"], pillar_override=case["override"], pillarenv=case["pillarenv"])
        try:
            result = plain(pillar.compile_pillar())
        except Exception as error:  # the exception is the answer
            return {"raises": type(error).__name__}
        errors = result.pop("_errors", [])
        return {"pillar": repr(result), "errors": [str(error).replace(home, "HOME") for error in errors]}


def main():
    import salt.version

    if sys.argv[1:] == ["version"]:
        return print(".".join(str(part) for part in salt.version.__version_info__[:1]), "%d.%d" % sys.version_info[:2])
    logging.disable(logging.CRITICAL)
    for case in CASES:
        print(json.dumps({**case, **compile_case(case)}))


main()
