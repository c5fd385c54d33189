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
    let sls = format!(
        "loops:
  file.managed: [name: {dir}/loops, source: 'salt://loop.jinja', template: jinja]
planted:
  file.managed: [name: {dir}/planted/file, contents: x, makedirs: True]
planted_directory:
  file.directory: [name: {dir}/planted/directory]
planted_gone:
  file.absent: [name: {dir}/planted/there]
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
        for name in ["/loops", "/planted/file", "/planted/directory", "/planted/there", "outside/file"] {
            assert_eq!(result(&run, name)["result"], Value::Bool(false), "{test} {name}: {run}");
        }
        assert!(comment(result(&run, "/loops")).contains("the template"), "{run}");
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
