//! `salt-call --local`: a host without a master applies its own files with its own pillar.

use std::os::unix::fs::symlink;
use std::path::Path;

use brine_tests::salt::{Kind, Minion};
use serde_json::json;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("our own folder");
        std::fs::write(path, text).expect("our own folder");
    }
}

#[test]
fn a_host_without_a_master_applies_its_own_states() {
    let here = tempfile::tempdir().expect("a temporary folder");
    let out = tempfile::tempdir().expect("a temporary folder");
    let (at, out) = (here.path().display(), out.path());
    let config = format!(
        "file_client: local\nfile_roots: {{base: [{at}/salt], dev: [{at}/dev]}}\npillar_roots: {{base: [{at}/pillar]}}\nsandbox: {{modules: \
         {{state: {{functions: any}}, file.states: {{changes: {{{}: rw}}, functions: any, files: any, pillar: any}}}}}}\n",
        out.display()
    );
    let file = out.join("motd");
    let sls = format!("{}:\n  file.managed:\n    - source: salt://web/motd\n    - template: jinja\n", file.display());
    write(
        here.path(),
        &[
            ("salt/top.sls", "base:\n  'web*': [web]\n"),
            ("salt/web/init.sls", &sls),
            // As in Salt, one of the grains is a tuple.
            ("salt/web/motd", "{{ pillar.greeting }} from {{ grains.id }} {{ (grains.osrelease_info|string)[0] }}\n"),
            ("salt/faulty.sls", &sls.replace("web/motd", "web/faulty")),
            ("salt/web/faulty", "one\n{{ nothing.at.all }}\nthree\n"),
            ("dev/only_dev", "x"),
            ("pillar/top.sls", "base:\n  'web*': [site]\n  'db*': [secret]\n"),
            ("pillar/site.sls", "greeting: {{ 'hello' if salt['grains.get']('id') == 'web1' else 'who' }}\n"),
            ("pillar/secret.sls", "password: hunter2\n"),
            ("outside", "outside"),
        ],
    );
    symlink("../outside", here.path().join("salt/link")).expect("our own folder");
    // Port 1: nobody is asked.
    let minion = Minion::prepare(Kind::Brine, "web1", 1, &config);
    let call = |args: &[&str]| minion.salt_call(&[&["--local", "--out=json"], args].concat());
    let local = |args: &[&str]| call(args).exits(0).json()["local"].clone();

    assert_eq!(local(&["pillar.items", "unmask=True"]), json!({"greeting": "hello"}));
    assert_eq!(local(&["cp.list_master", "saltenv=dev"]), json!(["only_dev"]));
    let dry = local(&["state.highstate", "test=True"]);
    assert!(dry.as_object().is_some_and(|states| states.values().all(|state| state["result"].is_null())), "{dry}");
    assert!(!file.exists());
    let states = local(&["state.highstate"]);
    assert!(states.as_object().is_some_and(|states| states.values().all(|state| state["result"] == true)), "{states}");
    assert_eq!(std::fs::read_to_string(&file).expect("applied"), "hello from web1 (\n");
    local(&["state.apply", "web", "pillar={greeting: bye}"]);
    assert_eq!(std::fs::read_to_string(&file).expect("applied"), "bye from web1 (\n");
    // The error of a template has the lines around the place.
    let faulty = call(&["state.apply", "faulty"]).json()["local"].to_string();
    assert!(faulty.contains(r"one\n{{ nothing.at.all }}    <===") && !faulty.contains(r"\\n"), "{faulty}");
    // No path leads out of the roots, by a link or by its name.
    for path in ["salt://link", "salt://../outside", "salt://web/../../outside"] {
        let output = call(&["cp.get_file_str", path]);
        assert!(!output.stdout.contains("outside\n") && !output.stdout.contains("\"outside\""), "{path}: {output:?}");
    }
    // Other folders for one call.
    let other = here.path().join("other");
    write(
        &other,
        &[("salt/one.sls", "a:\n  test.nop: []\n"), ("pillar/top.sls", "base: {'*': [x]}"), ("pillar/x.sls", "x: 1")],
    );
    let (files, pillar) =
        (format!("--file-root={}/salt", other.display()), format!("--pillar-root={}/pillar", other.display()));
    assert_eq!(local(&[&files, "cp.list_master"]), json!(["one.sls"]));
    assert_eq!(local(&[&pillar, "pillar.items", "unmask=True"]), json!({"x": 1}));
    let refused = minion.salt_call(&[&files, "test.ping"]).exits(64);
    assert!(refused.stderr.contains("goes with --local"), "{refused:?}");
    // What is wrong with the pillar stops states, as a master's would.
    write(here.path(), &[("pillar/site.sls", "greeting: {{ nobody.knows }}\n")]);
    let broken = call(&["state.apply", "web"]);
    assert!(broken.code != 0 && broken.stdout.contains("Rendering SLS 'site' failed"), "{broken:?}");
}

/// What a state sets counts for the conditions and slots of later ones; templates have random values and the time; syncing fetches nothing.
#[test]
fn states_see_what_those_before_them_have_set() {
    let here = tempfile::tempdir().expect("a temporary folder");
    let (at, file) = (here.path().display(), here.path().join("out/file"));
    let config = format!(
        "file_client: local\nfile_roots: {{base: [{at}/salt]}}\nsandbox: {{modules: {{state: {{functions: any}}, module.states: {{functions: any}}, \
         file.states: {{changes: {{{at}/out: rw}}, functions: any, files: any, pillar: any}}}}}}\n"
    );
    let sls = format!(
        r#"
{{% set word = 12|random_str %}}
synced:
  module.run:
    - saltutil.sync_all: []
set:
  grains.present:
    - name: shade
    - value: v1{{{{ word|length }}}}
seen:
  test.nop:
    - onlyif:
      - fun: grains.equals
        args: [shade, v112]
{file}:
  file.managed:
    - source: salt://file
    - template: jinja
slot:
  file.append:
    - name: {file}
    - text: __slot__:salt:grains.get(shade)
told:
  test.show_notification:
    - text: 1.5
"#,
        file = file.display()
    );
    let template = "{{ none|strftime('%Y') }} {{ '02:50'|gen_mac|length }} {{ 'a\\u00e9'|yaml_dquote }}\n";
    write(here.path(), &[("salt/all.sls", &sls), ("salt/file", template), ("out/keep", "")]);
    let minion = Minion::prepare(Kind::Brine, "web1", 1, &config);
    let states = minion.salt_call(&["--local", "--out=json", "state.apply", "all"]).json()["local"].clone();
    let results = states.as_object().unwrap_or_else(|| panic!("{states}"));
    assert!(results.values().all(|state| state["result"] == true), "{states}");
    assert_eq!(results["test_|-seen_|-seen_|-nop"]["comment"], "Success!");
    assert_eq!(results["test_|-told_|-told_|-show_notification"]["comment"], "1.5");
    let written = std::fs::read_to_string(&file).expect("applied");
    let lines: Vec<&str> = written.lines().collect();
    let [first, "v112"] = lines.as_slice() else { panic!("{written}") };
    let (year, rest) = first.split_once(' ').expect("three words");
    assert!(year.parse::<u32>().is_ok_and(|year| year >= 2026), "{written}");
    assert_eq!(rest, r#"14 "a\xE9""#);
}
