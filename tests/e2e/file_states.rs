//! What the states of `file` refuse, and what they do not tell.

use std::os::unix::fs::symlink;

use brine_kit::files;
use brine_tests::salt::{Kind, Master};
use serde_json::Value;

/// The result of a state by the last part of its name.
fn result<'a>(run: &'a Value, name: &str) -> &'a Value {
    let found = run.as_object().unwrap_or_else(|| panic!("no results: {run}")).values();
    let mut found = found.filter(|result| result["name"].as_str().is_some_and(|path| path.ends_with(name)));
    found.next().unwrap_or_else(|| panic!("no state {name}: {run}"))
}

fn comment(result: &Value) -> &str {
    result["comment"].as_str().unwrap_or_default()
}

#[test]
fn bad_input_ends_one_state_and_secrets_stay_secret() {
    let folder = files::folder("brine-f");
    let (granted, outside) = (folder.path().join("granted"), folder.path().join("outside"));
    for dir in [&granted, &outside] {
        std::fs::create_dir(dir).expect("our own folder");
    }
    symlink(&outside, granted.join("planted")).expect("our own folder");
    std::fs::write(granted.join("secret"), "old hunter1\n").expect("our own folder");
    std::fs::write(granted.join("hidden"), "old hunter3\n").expect("our own folder");

    let master = Master::start("timeout: 60");
    master.serve("loop.jinja", b"{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}");
    let dir = granted.display();
    std::fs::write(granted.join("source"), "data\n").expect("our own folder");
    let no_hash = "0".repeat(64);
    let sls = format!(
        "loops:
  file.managed: [name: {dir}/loops, source: 'salt://loop.jinja', template: jinja]
planted:
  file.managed: [name: {dir}/planted/file, contents: x, makedirs: True]
planted_directory:
  file.directory: [name: {dir}/planted/directory]
planted_gone:
  file.absent: [name: {dir}/planted/there]
above:
  file.managed: [name: {dir}/above, source: 'salt://../conf/master']
wrong_hash:
  file.managed: [name: {dir}/wrong, source: '{dir}/source', source_hash: 'sha256={no_hash}']
odd_hash:
  file.managed: [name: {dir}/odd, source: 'http://127.0.0.1:1/x', source_hash: rubbish]
not_granted:
  file.managed: [name: {}/file, contents: x]
secret:
  file.managed: [name: {dir}/secret, contents_pillar: password]
hidden:
  file.managed: [name: {dir}/hidden, contents: hunter4, show_changes: False]
after:
  file.managed: [name: {dir}/after, contents: done]
",
        outside.display()
    );
    master.serve("bad.sls", sls.as_bytes());
    std::fs::write(outside.join("there"), "it stays\n").expect("our own folder");
    let config = format!(
        "sandbox: {{modules: {{file: {{changes: {{{dir}: rw}}, files: any, pillar: any, limits: {{cpu: 10s}}}}}}}}"
    );
    let _minion = master.minion_kind(Kind::Brine, "web1", &config);
    let apply = |test: &str| master.json("web1", &["state.apply", "bad", "pillar={password: hunter2}", test]);

    for test in ["test=True", "test=False"] {
        let run = apply(test);
        let bad = ["/loops", "/planted/file", "/planted/directory", "/planted/there", "outside/file", "/above", "/odd"];
        for name in bad {
            assert_eq!(result(&run, name)["result"], Value::Bool(false), "{test} {name}: {run}");
        }
        assert!(comment(result(&run, "/loops")).contains("the template"), "{run}");
        // Stock Salt's sentences.
        let above = "Source file salt://../conf/master not found in saltenv 'base'";
        let unable = if test == "test=True" { "" } else { "Unable to manage file: " };
        assert_eq!(comment(result(&run, "/above")), format!("{unable}{above}"), "{test}");
        let odd = "Source hash rubbish format is invalid. The supported formats are: 1) a hash, ";
        assert!(comment(result(&run, "/odd")).contains(odd), "{test}: {run}");
        let wrong = match test {
            "test=True" => format!(
                "The file {dir}/wrong is set to be changed\nNote: No changes made, actual changes may\n\
                                    be different due to other states."
            ),
            _ => format!(
                "Specified sha256 checksum for {dir}/wrong ({no_hash}) does not match actual checksum \
                 (6667b2d1aab6a00caa5aee5af8ad9f1465e567abf1c209d15727d57b3e8f6e5f)"
            ),
        };
        assert_eq!(comment(result(&run, "/wrong")), wrong, "{test}");
        assert!(
            comment(result(&run, "outside/file")).contains("the owner of this host grants it by this line"),
            "{run}"
        );
        for name in ["/secret", "/hidden"] {
            assert_eq!(result(&run, name)["changes"]["diff"], "<show_changes=False>", "{test}: {run}");
        }
        assert!(!run.to_string().contains("hunter"), "{test}: {run}");
        let wanted = if test == "test=True" { Value::Null } else { Value::Bool(true) };
        assert_eq!(result(&run, "/after")["result"], wanted, "{run}");
    }
    let read = |name: &str| std::fs::read_to_string(granted.join(name)).expect("a file of the states");
    assert_eq!((&*read("secret"), &*read("hidden"), &*read("after")), ("hunter2\n", "hunter4\n", "done\n"));
    let left: Vec<_> =
        std::fs::read_dir(&outside).expect("our own folder").map(|item| item.unwrap().file_name()).collect();
    assert_eq!(left, ["there"], "nothing outside of the grant changes");
}

/// What a master says of test mode by other words than `True` and `False`. None of them turns off what the owner turned on.
#[test]
fn test_mode_is_what_the_owner_or_the_job_says() {
    let folder = files::folder("brine-t");
    let file = folder.path().join("file");
    let master = Master::start("");
    let sls = format!("a:\n  file.managed: [name: {}, contents: done]\n", file.display());
    master.serve("one.sls", sls.as_bytes());
    let config = format!("sandbox: {{modules: {{file.states: {{changes: {{{}: rw}}}}}}}}", folder.path().display());
    let strict = master.minion_kind(Kind::Brine, "strict", &format!("{config}\ntest: True"));
    let plain = master.minion_kind(Kind::Brine, "plain", &config);
    let applied = |id: &str, args: &[&str]| {
        let run = master.json(id, &[&["state.apply", "one"], args].concat());
        let there = std::fs::remove_file(&file).is_ok();
        // What is no truth value may be refused.
        let says = run.is_object() && result(&run, "/file")["result"] == Value::Bool(true);
        assert_eq!(says, there, "{id} {args:?}: {run}");
        there
    };
    for (id, args, changes) in [
        ("strict", &[][..], false),
        ("strict", &["test=None"], false),
        ("strict", &["test="], false),
        ("strict", &["test=1"], false),
        ("strict", &["test=yes"], false),
        ("strict", &["Test=True", "test=False"], false),
        ("strict", &["kwargs={test: False}"], false),
        ("strict", &["pillar={test: False}"], false),
        ("strict", &["test=False"], true),
        ("plain", &["test=None"], true),
        ("plain", &["test=True"], false),
        ("plain", &["test='True'"], false),
        ("plain", &["test=1"], false),
        ("plain", &["TEST=True"], false),
    ] {
        assert_eq!(applied(id, args), changes, "{id} {args:?}");
    }
    // What is called in a job with test=True is in it, whatever it is told.
    let asked = ["state.single", "module.run", "name=state.apply", "mods=one", "m_kwargs={test: False}", "test=True"];
    for asked in
        [&asked[..], &["state.single", "file.managed", &format!("name={}", file.display()), "contents=x", "test=True"]]
    {
        master.json("plain", asked);
        assert!(!file.exists(), "{asked:?}");
    }
    drop((strict, plain));
}
