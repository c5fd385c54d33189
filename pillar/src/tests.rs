//! Compares compiled pillars with the answers of stock Salt in `tests/data/pillar.jsonl`, which
//! `tests/python/pillar_oracle.py` writes, and tries bad input.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_protocol::config::{Config, Role};
use brine_protocol::value::{Value as Wire, ValueExt as _, empty_map, map};
use serde_json::{Value as Json, json};

use crate::STACK;
use crate::compile::{self, Chosen, Compiled, Subject};
use crate::ext::{Fetch, Get};
use crate::roots::Environments;
use crate::settings::PillarSettings;

/// A master's folder.
struct Tree {
    home: tempfile::TempDir,
    options: Json,
    fetched: Result<Vec<u8>, String>,
}

/// What a web server answers.
struct Fetched<'a>(&'a Result<Vec<u8>, String>);

impl Fetch for Fetched<'_> {
    fn get(&self, _: &Get<'_>) -> Result<Vec<u8>, String> {
        self.0.clone()
    }
}

impl Tree {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("base")).unwrap();
        let base = home.path().join("base");
        Self { options: json!({"pillar_roots": {"base": [base]}}), home, fetched: Err("nothing is there".to_owned()) }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let tree = Self::new();
        for (path, text) in files {
            tree.write(&format!("base/{path}"), text.as_bytes());
        }
        tree
    }

    fn set(mut self, name: &str, value: Json) -> Self {
        self.options[name] = value;
        self
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn opts(&self) -> Result<PillarSettings, String> {
        let text = self.options.to_string();
        let config = Config::from_yaml(&text, &self.home.path().join("master"), Role::Master).unwrap();
        PillarSettings::from_config(&config).map_err(|error| error.to_string())
    }

    fn compile(&self, subject: &Subject) -> Compiled {
        let opts = self.opts().unwrap();
        let envs = Environments::new(&opts.opts).for_request(Chosen::new(subject, &opts.opts).any());
        // The stack of a worker.
        std::thread::scope(|scope| {
            let run = || compile::compile(subject, &opts, &envs, &Fetched(&self.fetched));
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap().join().unwrap()
        })
    }

    /// Pillar, what the minion is told, what the log says.
    fn answer(&self) -> (String, Vec<String>, Vec<String>) {
        told(self.compile(&subject("web1.example")))
    }
}

fn subject(id: &str) -> Subject {
    let grains = map([("os", "Debian")]);
    Subject { id: id.parse().unwrap(), grains, saltenv: None, pillarenv: None, given: empty_map() }
}

fn told(mut compiled: Compiled) -> (String, Vec<String>, Vec<String>) {
    let errors = compiled.pillar.remove("_errors");
    let errors = errors.and_then(|errors| Some(errors.list()?.iter().map(|error| error.python_str()).collect()));
    let errors: Vec<String> = errors.unwrap_or_default();
    assert_eq!(compiled.is_whole, errors.is_empty());
    (compiled.pillar.python_repr(), errors, compiled.causes)
}

fn to_wire(json: &Json) -> Wire {
    match json {
        Json::Null => Wire::Nil,
        Json::Bool(b) => Wire::from(*b),
        Json::Number(n) => n.as_i64().map_or_else(|| Wire::from(n.as_f64().unwrap()), Wire::from),
        Json::String(text) => Wire::from(text.as_str()),
        Json::Array(items) => Wire::Array(items.iter().map(to_wire).collect()),
        Json::Object(entries) => {
            Wire::Map(entries.iter().map(|(key, item)| (key.as_str().into(), to_wire(item))).collect())
        }
    }
}

/// A text with Python's stand-ins for bytes that are not UTF-8.
fn bytes(json: &Json) -> Vec<u8> {
    json.as_str().unwrap().bytes().collect()
}

fn run_case(case: &Json) -> (String, Vec<String>) {
    let mut tree = Tree::new();
    let text = |name: &str| case[name].as_str().map(str::to_owned);
    let any = text("pillarenv").or_else(|| text("saltenv")).unwrap_or_else(|| "base".to_owned());
    for (env, files) in case["files"].as_object().unwrap() {
        let (folder, name) = if env == "__env__" { ("any", any.as_str()) } else { ("env", env.as_str()) };
        std::fs::create_dir_all(tree.home.path().join(folder).join(name)).unwrap();
        for (path, content) in files.as_object().unwrap() {
            tree.write(&format!("{folder}/{name}/{path}"), &bytes(content));
        }
        tree.options["pillar_roots"][env] = json!([tree.home.path().join(folder).join(env)]);
    }
    for (path, content) in case["tree"].as_object().into_iter().flatten() {
        tree.write(&format!("tree/{path}"), &bytes(content));
    }
    let folder = tree.home.path().join("tree");
    let options = case["opts"].to_string().replace("TREE", folder.to_str().unwrap());
    for (name, value) in serde_json::from_str::<Json>(&options).unwrap().as_object().unwrap() {
        tree.options[name] = value.clone();
    }
    let subject = Subject {
        id: text("id").unwrap().parse().unwrap(),
        grains: to_wire(&case["grains"]),
        saltenv: text("saltenv"),
        pillarenv: text("pillarenv"),
        given: to_wire(&case["override"]),
    };
    let (pillar, errors, _) = told(tree.compile(&subject));
    // What follows is for the log; stock tells it the minion.
    let first = |error: &String| error.split('\n').next().unwrap_or_default().to_owned();
    (pillar, errors.iter().map(first).collect())
}

/// At least 50 trees, each as stock Salt compiles it.
#[test]
fn pillars_are_stock_salts() {
    let wanted: BTreeSet<&str> =
        include_str!("../tests/data/pillar-differences.txt").lines().filter(|line| !line.starts_with('#')).collect();
    let (mut all, mut differ, mut shown) = (0, BTreeSet::new(), String::new());
    for line in include_str!("../tests/data/pillar.jsonl").lines() {
        // Half a pair stands for a byte that is not UTF-8; here any such text is none.
        let is_binary = line.contains("\\udce9");
        let case: Json = serde_json::from_str(&line.replace("\\udce9", "\\u0000BINARY")).unwrap();
        if is_binary {
            // `a_file_that_is_not_text` tries it.
            continue;
        }
        all += 1;
        let name = case["name"].as_str().unwrap().to_owned();
        let (pillar, errors) = run_case(&case);
        let is_equal = match case["raises"].as_str() {
            Some(_) => !errors.is_empty(),
            None => {
                let first = |error: &Json| error.as_str().unwrap().split('\n').next().unwrap().to_owned();
                let stock: Vec<String> = case["errors"].as_array().unwrap().iter().map(first).collect();
                pillar == case["pillar"].as_str().unwrap() && errors == stock
            }
        };
        if !is_equal {
            if !wanted.contains(name.as_str()) {
                shown += &format!(
                    "{name}\n  salt {} {} {}\n  ours {pillar} {errors:?}\n",
                    case["pillar"], case["errors"], case["raises"]
                );
            }
            differ.insert(name);
        }
    }
    assert!(all >= 50, "{all}");
    assert!(shown.is_empty(), "{shown}");
    let differ: BTreeSet<&str> = differ.iter().map(String::as_str).collect();
    assert_eq!(differ, wanted, "the list has what differs, and nothing else");
}

/// `make interop`: the recorded answers are those of the Salt that is there.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests start Python")]
fn recorded_answers_are_stock_salts() {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/venv/salt-3008/bin/python");
    let python = std::env::var_os("BRINE_PYTHON").map_or_else(installed, PathBuf::from);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/pillar_oracle.py");
    let oracle = |what: &str| {
        let output = std::process::Command::new(&python).arg(&script).arg(what).output();
        let output = output.unwrap_or_else(|error| panic!("run `make venv` first: {}: {error}", python.display()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    if oracle("version").starts_with("3008 ") {
        assert!(oracle("cases") == include_str!("../tests/data/pillar.jsonl"), "run `pillar_oracle.py cases` again");
    }
}

#[test]
fn a_file_that_is_not_text() {
    let tree = Tree::with(&[("top.sls", "base:\n  '*': [a, b]\n"), ("b.sls", "x: 1\n")]);
    tree.write("base/a.sls", b"latin1: caf\xe9\n");
    let (pillar, errors, causes) = tree.answer();
    assert_eq!((pillar.as_str(), errors.len()), ("{'x': 1}", 1));
    assert_eq!(errors[0], "Rendering SLS 'a' failed. Please see master log for details.");
    assert!(causes[0].contains("not UTF-8"), "{causes:?}");
}

const TOP: (&str, &str) = ("top.sls", "base:\n  '*': [a, b]\n");
const B: (&str, &str) = ("b.sls", "x: 1\n");

/// The other file counts; one error is told, and its cause is in the log, without `hunter2`.
fn one_fails(tree: &Tree, said: &str) {
    let (pillar, errors, causes) = tree.answer();
    assert_eq!(pillar, "{'x': 1}", "{said}: {errors:?} {causes:?}");
    assert_eq!(errors, ["Rendering SLS 'a' failed. Please see master log for details."], "{said}: {causes:?}");
    assert!(causes.len() == 1 && causes[0].contains(said), "{said}: {causes:?}");
    assert!(!causes[0].contains("hunter2") && !causes[0].contains('\n'), "{causes:?}");
}

#[test]
fn a_secret_in_an_error_is_neither_told_nor_logged() {
    for (text, said) in [
        ("password: hunter2\nbad: b: c\n", "mapping values are not allowed"),
        ("password: hunter2\nx: {{ nope }}\n", "'nope' is undefined; line 2"),
        ("{% set p = 'hunter2' %}\nx: {{ p + 1 }}\n", "Jinja error"),
        ("x: {{ 'hunter2' | load_json }}\n", "Jinja"),
        ("{% set p = {'hunter2': 1} %}x: {{ p['a']['b'] }}\n", "has no attribute"),
        ("x: {{ 'hunter2'.no_such() }}\n", "no_such"),
        ("x: {{ salt['cmd.run']('echo hunter2') }}\n", "cmd.run"),
        ("x: {{ salt.cmd.run('echo hunter2') }}\n", "cmd.run"),
        ("x: !!int hunter2\n", ""),
        ("#!json\n{\"password\": \"hunter2\",}\n", "Expecting property name"),
    ] {
        let tree = Tree::with(&[TOP, ("a.sls", text), B]);
        one_fails(&tree, said);
    }
}

#[test]
fn details_are_told_where_the_operator_wishes_so() {
    let tree = Tree::with(&[TOP, ("a.sls", "password: hunter2\nx: {{ nope }}\n"), B]);
    let (_, errors, _) = tree.set("pillar_safe_render_error", json!(false)).answer();
    assert!(
        errors[0].starts_with("Rendering SLS 'a' failed, render error:\nJinja variable 'nope' is undefined"),
        "{errors:?}"
    );
}

#[test]
fn no_path_leads_out_of_the_roots() {
    for text in [
        "{% import '../secret.jinja' as s %}x: {{ s }}\n",
        "{% import '../../secret.jinja' as s %}x: {{ s }}\n",
        "{% include 'a/../../secret.jinja' %}\n",
        "{% import '/etc/passwd' as s %}x: {{ s }}\n",
        "{% import 'salt:///etc/passwd' as s %}x: {{ s }}\n",
        "{% import_yaml 'link.yaml' as s %}x: {{ s }}\n",
        "{% import_text '../secret.jinja' as s %}x: {{ s }}\n",
    ] {
        let tree = Tree::with(&[TOP, ("a.sls", text), B]);
        tree.write("secret.jinja", b"hunter2");
        std::os::unix::fs::symlink("../secret.jinja", tree.home.path().join("base/link.yaml")).unwrap();
        one_fails(&tree, "");
    }
    for name in ["../secret", "/etc/passwd", "..secret", "link", "folder.x"] {
        let include = format!("include: ['{name}']\ny: 1\n");
        let tree = Tree::with(&[("top.sls", "base:\n  '*': [a]\n"), ("a.sls", &include)]);
        tree.write("secret.sls", b"password: hunter2\n");
        tree.write("outside/x.sls", b"password: hunter2\n");
        std::os::unix::fs::symlink("../secret.sls", tree.home.path().join("base/link.sls")).unwrap();
        std::os::unix::fs::symlink("../outside", tree.home.path().join("base/folder")).unwrap();
        let (pillar, errors, _) = tree.answer();
        assert_eq!(pillar, "{'y': 1}", "{name}");
        assert!(errors.len() == 1 && errors[0].contains("not available on the salt master"), "{name}: {errors:?}");
    }
}

#[test]
fn a_link_within_the_roots_is_followed() {
    let tree = Tree::with(&[("top.sls", "base:\n  '*': [a]\n"), ("real.sls", "x: 1\n")]);
    std::os::unix::fs::symlink("real.sls", tree.home.path().join("base/a.sls")).unwrap();
    assert_eq!(tree.answer().0, "{'x': 1}");
}

#[test]
fn bombs_end_soon() {
    let big = " ".repeat(20 << 20);
    let deep = format!("x: {}{}\n", "[".repeat(20_000), "]".repeat(20_000));
    let aliases = (1..40)
        .fold("a0: &a0 [x, x]\n".to_owned(), |text, n| text + &format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1));
    for (text, said) in [
        (big.as_str(), "20971520 bytes, the limit is pillar_max_file_size"),
        ("{% import 'a.sls' as a %}\n", ""),
        ("{% include 'a.sls' %}\n", ""),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}\n", ""),
        ("{% for i in range(100000) %}{% for i in range(100000) %}{% endfor %}{% endfor %}\n", ""),
        ("{% set a = ['x'] %}{% for i in range(64) %}{% do a.append(a[-1] ~ a[-1]) %}{% endfor %}\n", ""),
        (deep.as_str(), ""),
        (aliases.as_str(), ""),
    ] {
        let tree = Tree::with(&[TOP, ("a.sls", text), B]);
        let began = Instant::now();
        let (pillar, errors, causes) = tree.answer();
        let shown: String = text.chars().take(60).collect();
        // An alias bomb is a value that is small here and huge on the wire.
        assert!(pillar == "{'x': 1}" || pillar == "{}", "{shown}: {pillar}");
        assert!(!errors.is_empty() && !causes.is_empty(), "{shown}");
        assert!(causes[0].contains(said), "{shown}: {causes:?}");
        assert!(began.elapsed() < Duration::from_secs(30), "{shown} took {:?}", began.elapsed());
    }
}

#[test]
fn bounds_of_all_files() {
    let chain: Vec<(String, String)> =
        (0..200).map(|n| (format!("c{n}.sls"), format!("include: [c{}]\nk{n}: 1\n", n + 1))).collect();
    let mut files = vec![("top.sls", "base:\n  '*': [c0]\n")];
    files.extend(chain.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let (_, errors, causes) = Tree::with(&files).answer();
    assert!(!errors.is_empty() && causes[0].contains("files include each other in a row"), "{causes:?}");
    let tree = Tree::with(&files).set("pillar_max_files", json!(10));
    assert!(tree.answer().2[0].contains("pillar_max_files"), "{:?}", tree.answer().2);
    let slow = "{% for i in range(30000) %}{% endfor %}\n";
    let names: Vec<(String, String)> = (0..300).map(|n| (format!("s{n}.sls"), slow.to_owned())).collect();
    let mut files = vec![("top.sls", "base:\n  '*': ['s*']\n")];
    files.extend(names.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let began = Instant::now();
    let (_, errors, causes) = Tree::with(&files).set("pillar_timeout", json!(1)).answer();
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(errors.len() == 100 && causes.iter().any(|cause| cause.contains("pillar_timeout")), "{causes:?}");
}

#[test]
fn grains_that_cannot_be_used() {
    let tree = Tree::with(&[("top.sls", "base:\n  '*': [a]\n"), ("a.sls", "x: 1\n")]);
    let deep = (0..10_000).fold(Wire::Nil, |inner, _| Wire::Array(vec![inner]));
    // Taken apart by hand: dropping 10,000 levels takes stack.
    let subject = Subject { grains: map([("deep", deep)]), ..subject("web1.example") };
    let (pillar, errors, causes) = told(tree.compile(&subject));
    assert_eq!(pillar, "{}");
    assert!(errors[0].contains("cannot be compiled") && causes[0].contains("levels"), "{errors:?} {causes:?}");
}

#[test]
fn who_gets_pillar_by_grains_is_noted() {
    let top = "base:\n  'os:Debian': [{match: grain}, a]\n  'G@os:Debian and web*': [a]\n  '*': [a]\n  'os:x': [{match: grain}, a]\n";
    let tree = Tree::with(&[("top.sls", top), ("a.sls", "x: 1\n")]);
    let compiled = tree.compile(&subject("web1.example"));
    let by: Vec<&str> = compiled.by_grains.iter().map(|(_, target)| target.as_str()).collect();
    assert_eq!(by, ["os:Debian", "G@os:Debian and web*"]);
}

#[test]
fn a_grain_id_is_not_believed() {
    let tree = Tree::with(&[
        ("top.sls", "base:\n  'id:other': [{match: grain}, a]\n"),
        ("a.sls", "secret: {{ grains.id }}\n"),
    ]);
    let claiming = Subject { grains: map([("id", "other")]), ..subject("web1.example") };
    assert_eq!(told(tree.compile(&claiming)).0, "{}");
    assert_eq!(told(tree.compile(&subject("other"))).0, "{'secret': 'other'}");
}

#[test]
fn the_environment_of_a_minion_leads_to_no_other_folder() {
    let tree = Tree::with(&[("top.sls", "base:\n  '*': [a]\n"), ("a.sls", "x: 1\n")]);
    tree.write("secrets/top.sls", b"base:\n  '*': [a]\n'../secrets':\n  '*': [a]\n");
    tree.write("secrets/a.sls", b"password: hunter2\n");
    let any = tree.home.path().join("envs/__env__");
    std::fs::create_dir_all(tree.home.path().join("envs")).unwrap();
    let base = tree.home.path().join("base");
    let tree = tree.set("pillar_roots", json!({"base": [base], "__env__": [any]}));
    for env in ["../secrets", "..", "/etc", "a/../../secrets", "x\0y"] {
        let asking = Subject { pillarenv: Some(env.to_owned()), ..subject("web1.example") };
        let (pillar, errors, causes) = told(tree.compile(&asking));
        assert_eq!(pillar, "{}", "{env}");
        assert!(
            errors[0].contains("No matching pillar environment") && causes[0].contains("no environment"),
            "{errors:?}"
        );
    }
}

#[test]
fn templates_see_no_secrets_of_the_master() {
    let text = "k: {{ opts.keys()|list|length > 50 }}\nx: '{{ opts.ext_pillar is defined }}{{ opts.key_pass is defined }}'\nid: {{ opts.id }}\n";
    let tree = Tree::with(&[("top.sls", "base:\n  '*': [a]\n"), ("a.sls", text)]).set("key_pass", json!("hunter2"));
    assert_eq!(tree.answer().0, "{'k': True, 'x': 'FalseFalse', 'id': 'web1.example'}");
    let tree = tree.set("pillar_opts", json!(true));
    let (pillar, _, _) = tree.answer();
    assert!(pillar.contains("'master': {") && pillar.contains("'saltversion'") && !pillar.contains("hunter2"));
}

#[test]
fn file_exists_sees_the_roots_only() {
    let tree = Tree::with(&[("top.sls", "base:\n  '*': [a]\n")]);
    let base = tree.home.path().join("base").display().to_string();
    tree.write("secret", b"x");
    let text = format!(
        "a: {{{{ salt['file.file_exists']('{base}/a.sls') }}}}\nb: {{{{ salt['file.file_exists']('{base}/gone') }}}}\nc: {{{{ salt['file.file_exists']('{base}/../secret') }}}}\n"
    );
    tree.write("base/a.sls", text.as_bytes());
    assert_eq!(tree.answer().0, "{'a': True, 'b': False, 'c': False}");
    let asks = |arguments: &str| format!("{{{{ salt['pillar.file_exists']({arguments}) }}}}");
    for (arguments, answer) in [
        ("'a.sls'", "True"),
        ("'gone.sls'", "False"),
        ("'../secret'", "False"),
        ("'/etc/passwd'", "False"),
        ("'a.sls', 'base'", "True"),
        ("path='a.sls', saltenv='dev'", "False"),
    ] {
        tree.write("base/a.sls", format!("a: {}\n", asks(arguments)).as_bytes());
        assert_eq!(tree.answer().0, format!("{{'a': {answer}}}"), "{arguments}");
    }
    tree.write("base/a.sls", b"a: {{ salt['file.file_exists']('/etc/passwd') }}\n");
    assert!(tree.answer().2[0].contains("below pillar_roots only"), "{:?}", tree.answer().2);
}

#[test]
fn documents_of_web_servers() {
    let source = |name: &str, more: Json| {
        let mut arguments = json!({"url": "http://h.example/%s"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([{name: arguments}])
    };
    let top = [("top.sls", "base:\n  '*': [a]\n"), ("a.sls", "x: 1\n")];
    for (name, more, answer, pillar) in [
        ("http_json", json!({}), "{\"x\": 2, \"y\": [1]}", "{'x': 2, 'y': [1]}"),
        ("http_json", json!({"namespace": "n"}), "{\"x\": 2}", "{'x': 1, 'n': {'x': 2}}"),
        ("http_yaml", json!({}), "x: 3\ny: {z: 1}\n", "{'x': 3, 'y': {'z': 1}}"),
    ] {
        let mut tree = Tree::with(&top).set("ext_pillar", source(name, more));
        tree.fetched = Ok(answer.as_bytes().to_vec());
        assert_eq!(tree.answer(), (pillar.to_owned(), Vec::new(), Vec::new()));
    }
    for (name, answer) in [
        ("http_json", Ok("[1]")),
        ("http_json", Ok("{\"password\": \"hunter2\"")),
        ("http_yaml", Ok("password: hunter2: x")),
        ("http_yaml", Err("no answer within 5 s")),
    ] {
        let mut tree = Tree::with(&top).set("ext_pillar", source(name, json!({})));
        tree.fetched = answer.map(|text: &str| text.as_bytes().to_vec()).map_err(str::to_owned);
        let (pillar, errors, causes) = tree.answer();
        assert_eq!((pillar.as_str(), errors.len(), causes.len()), ("{'x': 1}", 1, 1));
        assert_eq!(errors[0], format!("Failed to load ext_pillar {name}: please see master log for details"));
        assert!(causes[0].starts_with(&format!("ext_pillar {name}: ")) && !causes[0].contains("hunter2"), "{causes:?}");
    }
}

#[test]
fn what_the_master_cannot_do_is_said_at_its_start() {
    for (name, value, said) in [
        ("decrypt_pillar", json!(["secrets"]), "cannot decrypt"),
        ("ext_pillar", json!([{"git": ["https://h.example/x"]}]), "there is no \"git\""),
        ("pillar_source_merging_strategy", json!("best"), "smart, recurse, aggregate, overwrite, list, none"),
        ("pillar_cache_backend", json!("redis"), "disk, memory"),
    ] {
        let error = Tree::new().set(name, value).opts().unwrap_err();
        assert!(error.contains(name) && error.contains(said), "{error}");
    }
}

/// `pillar_bench.py tree FOLDER` makes the files. `BRINE_PILLAR_TREE=FOLDER cargo test --release -p brine-master --lib --
/// --ignored --nocapture a_thousand`
#[test]
#[ignore = "it measures"]
fn a_thousand_minions_from_forty_files() {
    let folder = std::env::var("BRINE_PILLAR_TREE").expect("BRINE_PILLAR_TREE names the tree");
    let opts = Tree::new().set("pillar_roots", json!({"base": [folder]})).opts().unwrap();
    let environments = Environments::new(&opts.opts);
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let began = cpu();
    let count: u32 = 1_000;
    for n in 1..=count {
        let grains = map([("os", Wire::from("Debian")), ("num_cpus", Wire::from(4))]);
        let subject = Subject { grains, ..subject(&format!("swarm-{n:05}")) };
        let envs = environments.for_request(Chosen::new(&subject, &opts.opts).any());
        let compiled = compile::compile(&subject, &opts, &envs, &Fetched(&Err(String::new())));
        assert!(compiled.is_whole, "{:?}", compiled.causes);
    }
    let each = (cpu() - began) / count;
    println!("{each:.2?} of a processor for each pillar, {:.0} a second", 1.0 / each.as_secs_f64());
}
