//! A Brine master gives pillar to Brine minions.

use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn pillar_from_files_to_targets() {
    let mut master = Master::prepare(Kind::Brine, "pillar_roots: {base: [../srv/pillar]}");
    let root = master.path("srv/pillar");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own folder");
        std::fs::write(path, text).expect("our own folder");
    };
    write("top.sls", "base:\n  '*':\n    - common\n  'web*':\n    - web\n");
    write("common.sls", "{% import_yaml 'map.yaml' as map %}\nid: {{ grains.id }}\nport: {{ map[grains.kernel] }}\n");
    write("map.yaml", "Linux: 8080\n");
    write("web.sls", "include:\n  - .users\nrole: web\n");
    write("users/init.sls", "users: [ann, bob]\n");
    master.up();
    let _minions = [master.minion("web1"), master.minion("db1")];
    let get = |id: &str, args: &[&str]| master.json(id, args);
    assert_eq!(get("web1", &["pillar.get", "port", "unmask=True"]), json!(8080));
    assert_eq!(master.salt(&["-I", "role:web", "test.ping"]).exits(0).stdout, "web1:\n    True\n");
    let shown = |args: &[&str]| {
        let mut all = vec!["--out=json"];
        all.extend(args);
        master.command("salt-run", &all).exits(0).json()
    };
    let whole = json!({"id": "web1", "port": 8080, "users": ["ann", "bob"], "role": "web"});
    assert_eq!(shown(&["pillar.show_pillar", "web1"]), whole);
    assert_eq!(shown(&["pillar.show_pillar", "db1"]), json!({"id": "db1", "port": 8080}));
    assert_eq!(shown(&["pillar.show_top"]), json!({"base": {"*": ["common"], "web*": ["web"]}}));
    assert_eq!(shown(&["pillar.clear_pillar_cache"]), json!(true));
    // A file that breaks is told by name, and its cause is in the log without its secrets.
    write("web.sls", "password: hunter2\nrole: {{ nope }}\n");
    master.salt(&["web1", "saltutil.refresh_pillar"]);
    let shown = shown(&["pillar.show_pillar", "web1"]);
    assert_eq!(shown["_errors"], json!(["Rendering SLS 'web' failed. Please see master log for details."]));
    let log = std::fs::read_to_string(master.path("master.out")).expect("a log");
    assert!(log.contains("Rendering SLS 'web' of base failed: Jinja variable 'nope' is undefined; line 2"), "{log}");
    assert!(!log.contains("hunter2"));
}
