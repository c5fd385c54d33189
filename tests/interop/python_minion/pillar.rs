//! A Brine master compiles the pillars of Python minions.

use brine_tests::salt::{Kind, Master, line};
use serde_json::json;

#[test]
fn a_python_minion_gets_its_pillar() {
    let mut master =
        Master::prepare(Kind::Brine, "timeout: 30\npillar_roots: {base: [../srv/pillar], dev: [../srv/dev]}");
    let write = |path: &str, text: &str| {
        let path = master.path("srv").join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own folder");
        std::fs::write(path, text).expect("our own folder");
    };
    write("pillar/top.sls", "base:\n  python:\n    - a\n  other:\n    - secret\n");
    write("pillar/a.sls", "role: web\nkernel: {{ grains.kernel }}\nl: [1, 2]\nwhen: 2026-01-02\n");
    write("pillar/secret.sls", "password: hunter2\n");
    write("dev/top.sls", "dev:\n  '*':\n    - b\n");
    write("dev/b.sls", "role: dev\n");
    let broken = master.path("srv/pillar/a.sls");
    master.up();
    let _minion = master.minion_kind(Kind::Python, "python", "");
    let unmask: &[&str] = if line() >= 3008 { &["unmask=True"] } else { &[] };
    let get = |args: &[&str]| master.json("python", &[args, unmask].concat());
    assert_eq!(get(&["pillar.items"]), json!({"role": "dev", "kernel": "Linux", "l": [1, 2], "when": "2026-01-02"}));
    assert_eq!(get(&["pillar.items", "pillarenv=dev"]), json!({"role": "dev"}));
    let given = get(&["pillar.items", "pillar={role: given, x: 1}"]);
    assert_eq!((&given["role"], &given["x"]), (&json!("given"), &json!(1)));
    assert_eq!(get(&["pillar.get", "l:0"]), json!(1));
    assert_eq!(master.salt(&["-I", "role:dev", "test.ping"]).exits(0).stdout, "python:\n    True\n");
    std::fs::write(broken, "password: hunter2\nrole: {{ nope }}\n").expect("our own folder");
    let told = get(&["pillar.items"]);
    assert_eq!(told["_errors"], json!(["Rendering SLS 'a' failed. Please see master log for details."]));
    assert!(!told.to_string().contains("hunter2"));
}
