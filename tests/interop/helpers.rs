//! The modules that formulas call from templates, on a command line: `match`, `slsutil`, `hashutil`, `dnsutil`, more of
//! `config`, and `ps`. They return the same as Salt's on the same host.

use brine_kit::files::set_mode;
use brine_kit::process::run;
use brine_tests::salt::{Kind, Minion};
use serde_json::{Value, json};

use super::standard_modules::compare;

/// Of a minion `m1` with the grains of `CONFIG` and its pillar.
const CALLS: &[&[&str]] = &[
    &["match.compound", "m1 and G@role:web"],
    &["match.compound", "m1 and not G@role:web"],
    &["match.compound", "L@m2,m3 or I@tier:front"],
    &["match.compound", "m1 and ("],
    &["match.compound", "db*", "minion_id=db7"],
    &["match.compound", "12", "minion_id=12"],
    &["match.glob", "m?"],
    &["match.glob", "m?", "db1"],
    &["match.pcre", "m[0-9]+"],
    &["match.pcre", "("],
    &["match.list", "m1,m2"],
    &["match.list", "[m2, m3]"],
    &["match.list", "m2", "minion_id=m2"],
    &["match.grain", "role:w*"],
    &["match.grain", "nest|n|1", "delimiter=|"],
    &["match.grain", "role"],
    &["match.grain_pcre", "role:(web|db)"],
    &["match.grain_pcre", "role:("],
    &["match.pillar", "tier:front"],
    &["match.pillar", "deep:er:*"],
    &["match.pillar_pcre", "tier:fr.*"],
    &["match.ipcidr", "127.0.0.0/8"],
    &["match.ipcidr", "203.0.113.0/24"],
    &["match.ipcidr", "nonsense"],
    &["match.data", "a:b"],
    &["match.filter_by", "{m*: {a: 1}, default: {b: 2}}"],
    &["match.filter_by", "{x*: {a: 1}, default: {b: 2}}"],
    &["match.filter_by", "{x*: {a: 1}}"],
    &["match.filter_by", "{x*: 1, y: 2}", "default=y"],
    &["match.filter_by", "{m*: {a: [1]}}", "merge={a: [2], c: 3}", "merge_lists=True"],
    &["match.filter_by", "{m*: null}", "merge={c: 3}"],
    &["match.filter_by", "{m*: {a: 1}}", "merge=text"],
    &["match.filter_by", "{web: W, db: D}", "minion_id=db", "tgt_type=glob"],
    &["match.search_by", "{web: [m1, m2], db: [m3], all: ['*']}"],
    &["match.search_by", "{web: ['G@role:web']}"],
    &["match.search_by", "{db: [m3]}"],
    &["match.search_by", "{db: [m3]}", "minion_id=m3"],
    &["match.ifelse", "db*", "Database", "m*", "Mine", "Other"],
    &["match.ifelse", "False", "Never", "Other"],
    &["match.ifelse", "a", "b"],
    &["config.option", "role"],
    &["config.option", "tier"],
    &["config.option", "nothing"],
    &["config.option", "nothing", "default=x"],
    &["config.option", "redis.host"],
    &["config.option", "hosts.file", "omit_all=True"],
    &["config.option", "ldap.*", "wildcard=True", "omit_all=True"],
    &["config.option", "nothing*", "wildcard=True"],
    &["config.option", "role", "omit_grains=True"],
    &["config.get", "redis.host"],
    &["config.get", "virt:images"],
    &["config.get", "role"],
    &["config.get", "deep:er:x"],
    &["config.get", "nest", "merge=recurse"],
    &["config.get", "both", "merge=overwrite"],
    &["config.get", "both", "merge=recurse"],
    &["config.get", "nothing", "default={a: 1}"],
    &["config.merge", "tier"],
    &["config.merge", "both"],
    &["config.merge", "nothing"],
    &["config.merge", "ldap.scope"],
    &["config.dot_vals", "nothing"],
    &["config.manage_mode", "644"],
    &["config.manage_mode", "0o4755"],
    &["config.manage_mode", "00644"],
    &["config.valid_fileproto", "salt://a/b"],
    &["config.valid_fileproto", "gopher://a"],
    &["config.valid_fileproto", "/a/b"],
    &["config.backup_mode"],
    &["config.backup_mode", "minion"],
    &["hashutil.digest", "get salted"],
    &["hashutil.digest", "get salted", "sha256"],
    &["hashutil.digest", "get salted", "sha512"],
    &["hashutil.digest", "get salted", "sha1"],
    &["hashutil.digest_file", "TREE/a.txt", "sha256"],
    &["hashutil.digest_file", "TREE/a.txt"],
    &["hashutil.digest_file", "TREE/nothing"],
    &["hashutil.md5_digest", "ünï"],
    &["hashutil.sha256_digest", "get salted"],
    &["hashutil.sha512_digest", "get salted"],
    &["hashutil.base64_b64encode", "get salted"],
    &["hashutil.base64_b64decode", "instr=Z2V0IHNhbHRlZA=="],
    &[
        "hashutil.base64_encodestring",
        "a text that is longer than the seventy-six characters of one line of such a text",
    ],
    &["hashutil.base64_decodestring", "instr=Z2V0IHNhbHRlZAo="],
    &["hashutil.base64_encodefile", "TREE/a.txt"],
    &["hashutil.base64_decodefile", "instr=Z2V0IHNhbHRlZAo=", "outfile=TREE/out"],
    &["hashutil.digest_file", "TREE/out", "sha256"],
    &[
        "hashutil.hmac_signature",
        "get salted",
        "shared secret",
        "challenge_hmac=eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ=",
    ],
    &[
        "hashutil.hmac_signature",
        "get salted",
        "another secret",
        "challenge_hmac=eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ=",
    ],
    &["hashutil.hmac_compute", "get salted", "shared secret"],
    &[
        "hashutil.github_signature",
        "get salted",
        "shared secret",
        "challenge_hmac=sha1=c3b6fd3fc0d6ba2f3d1ba3bf8c8bf8e6bb8e3c1d",
    ],
    &[
        "hashutil.github_signature",
        "a",
        "b",
        "challenge_hmac=sha256=cb448b440c42ac8ad084fc8a8795c98f5b7802359c305eabd57ecdb20e248896",
    ],
    &["hashutil.github_signature", "a", "b", "none"],
    &["slsutil.update", "{foo: {a: 1}, l: [1]}", "{foo: {b: 2}, l: [2]}"],
    &["slsutil.update", "{foo: {a: 1}, l: [1]}", "{foo: {b: 2}, l: [2]}", "merge_lists=True"],
    &["slsutil.update", "{foo: {a: 1}}", "{foo: {b: 2}}", "recursive_update=False"],
    &["slsutil.merge", "{foo: {a: 1}}", "{foo: {b: 2}}"],
    &["slsutil.merge", "{foo: {a: 1}}", "{foo: {b: 2}}", "strategy=overwrite"],
    &["slsutil.merge", "{foo: [1]}", "{foo: [2]}", "strategy=aggregate"],
    &["slsutil.merge", "{foo: [1]}", "{foo: [2]}", "strategy=list"],
    &["slsutil.merge", "{foo: [1]}", "{foo: [2]}", "strategy=recurse", "merge_lists=True"],
    &["slsutil.merge_all", "[{foo: Foo}, {foo: Bar}, {a: 1}]"],
    &["slsutil.boolstr", "True"],
    &["slsutil.boolstr", "0", "true=yes", "false=no"],
    &["slsutil.serialize", "json", "{foo: [1, null, true]}"],
    &["slsutil.serialize", "json", "{b: 1, a: ü}", "sort_keys=True", "indent=2"],
    &["slsutil.serialize", "yaml", "{foo: [1, null, true], t: text}"],
    &["slsutil.serialize", "yaml", "{foo: [1, null, true]}", "default_flow_style=False"],
    &["slsutil.deserialize", "json", "'{\"foo\": [1, null, true]}'"],
    &["slsutil.deserialize", "yaml", "'a: [1, yes, x]'"],
    &["slsutil.banner"],
    &[
        "slsutil.banner",
        "width=60",
        "title=Of us",
        "text=A text of a well-known author that has more words than one line of it may hold.",
    ],
    &["slsutil.banner", "commentchar=' *'", "borderchar=*", "blockstart=/**", "blockend=' */'", "newline=True"],
    &["slsutil.banner", "width=4"],
    &["slsutil.renderer", "string=Hello, {{ name }}.", "default_renderer=jinja", "name=world"],
    &["slsutil.renderer", "string={{ grains['role'] }}: [{{ pillar['tier'] }}, {{ saltenv }}]"],
    &["slsutil.renderer", "TREE/map.jinja"],
    &["slsutil.renderer", "salt://defaults/map.yaml"],
    &["slsutil.renderer", "salt://defaults/uses.jinja", "default_renderer=jinja"],
    &["slsutil.renderer"],
    &["slsutil.renderer", "path=a", "string=b"],
    &["slsutil.file_exists", "defaults/map.yaml"],
    &["slsutil.file_exists", "defaults"],
    &["slsutil.dir_exists", "defaults"],
    &["slsutil.dir_exists", "defaults/map.yaml"],
    &["slsutil.path_exists", "defaults"],
    &["slsutil.path_exists", "nothing"],
    &["slsutil.findup", "defaults/deep", "map.yaml"],
    &["slsutil.findup", "defaults/deep", "[nothing, top.sls]"],
    &["slsutil.findup", "defaults/deep", "nothing"],
    &["slsutil.findup", "nowhere", "map.yaml"],
    &["dnsutil.serial", "a.example"],
    &["dnsutil.serial", "b.example", "update=True"],
    &["dnsutil.serial", "b.example"],
    &["dnsutil.serial", "b.example", "update=True"],
    &["dnsutil.serial"],
    &["dnsutil.parse_hosts", "TREE/hosts"],
    &["dnsutil.parse_hosts", "TREE/nothing"],
    &["dnsutil.parse_hosts", "hosts=10.0.0.1 a b"],
    &["dnsutil.hosts_append", "TREE/hosts", "10.0.0.9", "new1,new2"],
    &["dnsutil.hosts_append", "TREE/hosts", "10.0.0.9", "new1"],
    &["dnsutil.hosts_remove", "TREE/hosts", "new1,web"],
    &["dnsutil.parse_hosts", "TREE/hosts"],
    &["file.read", "TREE/hosts"],
    &["dnsutil.parse_zone", "TREE/zone"],
    &["dnsutil.parse_zone", "TREE/nothing"],
    &["ps.num_cpus"],
    &["ps.total_physical_memory"],
    &["ps.boot_time"],
    &["ps.network_io_counters", "interface=eth99"],
    &["ps.disk_io_counters", "device=nothing9"],
    &["ps.disk_partitions"],
    &["ps.pgrep", "no-such-program-at-all"],
    &["ps.pgrep", "no-such-program-at-all", "pattern_is_regex=True"],
    &["ps.status", "wake-kill"],
    &["ps.proc_info", "1", "attrs=[pid, ppid, name, username, status]"],
    &["ps.proc_info", "1", "attrs=[cmdline, nice]"],
];

const ZONE: &str = "$ORIGIN example.com.\n$TTL 1h\n@ IN SOA ns.example.com. admin.example.com. ( 2026112801 ; serial\n 2H 15M 1W 1D )\n\
    @ IN NS ns.example.com.\n@ IN MX 10 mail.example.com.\nwww 3600 IN A 192.0.2.1\nmail 3600 IN AAAA 2001:db8::1\nalias IN CNAME www\n";

#[test]
fn helpers_of_formulas_answer_as_salts() {
    // Each kind changes files of its own.
    let trees = ["python", "brine"].map(|kind| {
        let tree = tempfile::Builder::new().prefix("brine-h").tempdir_in("/tmp").expect("a temporary folder");
        set_mode(tree.path(), 0o755);
        for (name, content) in [
            ("a.txt", "alpha\nbeta\n"),
            ("hosts", "# ours\n127.0.0.1 localhost\n10.0.0.1\tweb1 web\n10.0.0.1 www\n"),
            ("map.jinja", "role: {{ grains['role'] }}\nlist: [1, {{ 1 + 1 }}]\n"),
            ("zone", ZONE),
            ("salt/defaults/map.yaml", "{% set a = 2 %}\nvalue: {{ a }}\n"),
            ("salt/defaults/uses.jinja", "{% from 'defaults/vars.jinja' import x %}x is {{ x }}\n"),
            ("salt/defaults/vars.jinja", "{% set x = 7 %}"),
            ("salt/defaults/deep/nested.sls", ""),
            ("salt/top.sls", ""),
            ("pillar/top.sls", "base: {'*': [all]}\n"),
            ("pillar/all.sls", "tier: front\ndeep: {er: {x: 1}}\nboth: {of_pillar: 1, l: [1]}\n"),
        ] {
            let path = tree.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own folder");
            std::fs::write(path, content).expect("our own folder");
        }
        (kind, tree)
    });
    let path = |kind: &str| {
        let (_, tree) = trees.iter().find(|(known, _)| *known == kind).expect("one of two");
        tree.path().display().to_string()
    };
    let config = |kind: &str| {
        let tree = path(kind);
        format!(
            "file_client: local\nlog_level: quiet\nfile_roots: {{base: [{tree}/salt]}}\npillar_roots: {{base: [{tree}/pillar]}}\n\
             grains: {{role: web, nest: {{list: [a], n: 1}}, both: {{of_grains: 2, l: [2]}}}}\nsandbox:\n  modules:\n    \
             dnsutil: {{changes: {{{tree}: rw}}}}\n    hashutil: {{changes: {{{tree}: rw}}}}\n    slsutil: {{changes: {{{tree}: ro}}}}\n    \
             file: {{filesystem: {{{tree}: ro}}}}\n    ps: {{kernel: any}}\n"
        )
    };
    compare(CALLS, &config, &path);
}

/// What changes from moment to moment has the same names, of the same kinds.
#[test]
fn counters_have_psutils_names() {
    let config = "file_client: local\nlog_level: quiet";
    let brine = Minion::prepare(Kind::Brine, "m1", 1, config);
    let calls: &[&[&str]] = &[
        &["ps.virtual_memory"],
        &["ps.swap_memory"],
        &["ps.cpu_times"],
        &["ps.cpu_times", "per_cpu=True"],
        &["ps.cpu_percent"],
        &["ps.cpu_percent", "per_cpu=True"],
        &["ps.network_io_counters"],
        &["ps.network_io_counters", "interface=lo"],
        &["ps.disk_io_counters"],
        &["ps.disk_usage", "/"],
    ];
    let script = "
import json, sys, psutil
import salt.modules.ps as ps
made = {'per_cpu': True, 'interface': 'lo'}
def call(name, *words):
    kwargs = {w.split('=')[0]: made[w.split('=')[0]] for w in words if '=' in w}
    return getattr(ps, name[3:])(*[w for w in words if '=' not in w], **kwargs)
print(json.dumps([call(*words) for words in json.loads(sys.argv[1])]))
";
    let output = run(&Kind::Python.program("python"), &["-W", "ignore", "-c", script, &json!(calls).to_string()]);
    let expected = output.exits(0).json();
    for (index, call) in calls.iter().enumerate() {
        let answer = brine.salt_call(&[&["--local", "--out=json", "--"], *call].concat()).exits(0).json();
        assert_eq!(kinds(&answer["local"]), kinds(&expected[index]), "{call:?}");
    }
    // The same host has the same memory, and a file system is as large to both.
    let total = |call: &[&str]| {
        brine.salt_call(&[&["--local", "--out=json", "--"], call].concat()).json()["local"]["total"].clone()
    };
    assert_eq!(total(&["ps.virtual_memory"]), expected[0]["total"]);
    assert_eq!(total(&["ps.disk_usage", "/"]), expected[9]["total"]);
    // What a process was started with is the owner's to show.
    let refused = brine.salt_call(&["--local", "--", "ps.pgrep", "salt", "full=True"]);
    assert!(refused.code != 0 && refused.stderr.contains("process-arguments"), "{refused:?}");
    let own = brine.salt_call(&["--local", "--out=json", "--", "ps.top", "2", "0.1"]).exits(0).json();
    let own = own["local"].as_array().expect("a list");
    assert_eq!(own.len(), 2);
    let names: Vec<&String> = own[0].as_object().expect("a dict").keys().collect();
    assert_eq!(names, ["cmd", "user", "status", "pid", "create_time", "cpu", "mem"]);
}

/// A value with the kinds of its parts in their place.
fn kinds(value: &Value) -> Value {
    match value {
        Value::Object(entries) => entries.iter().map(|(name, value)| (name.clone(), kinds(value))).collect(),
        Value::Array(items) => items.iter().map(kinds).collect(),
        Value::Number(number) => json!(if number.is_f64() { "float" } else { "int" }),
        other => other.clone(),
    }
}
