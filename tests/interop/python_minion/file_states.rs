//! The states of `file`: the same SLS files, applied by a Python minion and by a Brine minion on the same files, have the
//! same results, changes and comments, and leave the same files. First with `test=True`, then for real, then again.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use brine_kit::{files, is_root};
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

/// What the minion adds to a result, and what depends on the time.
const OF_THE_RUN: [&str; 6] = ["start_time", "duration", "__run_num__", "__sls__", "__id__", "plan"];

/// What is at each path below a folder: kind and mode, owner, group, and content or target.
type Tree = BTreeMap<String, (u32, u32, u32, Vec<u8>)>;

/// `id` is the minion's, which some files have in them.
fn tree(top: &Path, id: &str) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(&folder).expect("a folder of this test") {
            let path = item.expect("an entry").path();
            let data = path.symlink_metadata().expect("an entry");
            let content = match data.file_type() {
                kind if kind.is_symlink() => {
                    std::fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                }
                kind if kind.is_dir() => Vec::new(),
                _ => std::fs::read(&path).expect("a file"),
            };
            let content =
                String::from_utf8_lossy(&content).replace(&top.display().to_string(), "DIR").replace(id, "ID");
            let content = content.into_bytes();
            let name = path.strip_prefix(top).expect("below it").display().to_string();
            found.insert(name, (data.mode(), data.uid(), data.gid(), content));
            if data.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// Makes the files that the states find.
fn prepare(top: &Path) {
    std::fs::remove_dir_all(top).expect("a folder of this test");
    let write = |name: &str, text: &str| {
        let path = top.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder around it")).expect("our own folder");
        std::fs::write(path, text).expect("our own folder");
    };
    write("adir/inside", "");
    std::fs::remove_file(top.join("adir/inside")).expect("just made");
    for name in ["existing", "existing2"] {
        write(name, "old one\nsame\n");
    }
    for number in 3..=14 {
        write(&format!("existing{number}"), &format!("file {number}\n"));
    }
    write("hashes", "d7c0a5ab1c6b8b7e0f4d  existing5\n");
    write("atarget", "target\n");
    for (link, target) in [("alink", "atarget"), ("clink", "atarget"), ("dlink", "adir"), ("s2", "/etc/passwd")] {
        symlink(target, top.join(link)).expect("our own folder");
    }
    symlink(top.join("atarget"), top.join("blink")).expect("our own folder");
    for folder in ["rec", "rec2", "rec3", "rec4", "rec5", "rec6", "cl", "cl2", "r3"] {
        write(&format!("{folder}/f"), "1\n");
        write(&format!("{folder}/x/g"), "2\n");
        write(&format!("{folder}/x/y/h"), "3\n");
    }
    write("cl/keepme", "k\n");
}

/// A minion that applies states to the files of a folder.
struct Host<'a> {
    id: &'a str,
    top: &'a Path,
}

impl Host<'_> {
    /// The results by tag, without what depends on the host and the time.
    fn apply(&self, master: &Master, sls: &str, test: bool) -> BTreeMap<String, Value> {
        let dir = self.top.display().to_string();
        let pillar = json!({"dir": dir, "k": "v", "text": "pillar text\nline\n"});
        let pillar = format!("pillar={pillar}");
        let test = format!("test={}", if test { "True" } else { "False" });
        let run = master.json(self.id, &["state.apply", sls, &pillar, &test]);
        let text = run.to_string().replace(&dir, "DIR").replace(self.id, "ID");
        let run: BTreeMap<String, Value> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("no results ({error}): {text}"));
        run.into_iter().map(|(tag, result)| (tag, plain(result))).collect()
    }
}

fn plain(mut result: Value) -> Value {
    let fields = result.as_object_mut().expect("a result is a dict");
    for name in OF_THE_RUN {
        fields.remove(name);
    }
    let said = fields["comment"].as_str().unwrap_or_default().to_owned();
    // Salt goes through sets: of files, and of what it removes.
    let mut lines: Vec<&str> = said.lines().collect();
    if said.starts_with("#### ") {
        lines.sort_unstable();
        fields.insert("comment".into(), lines.into());
    } else if said.starts_with("An exception occurred in this state: ") {
        // Python's traceback ends with what Brine's one line says.
        let error = said.split("SaltRenderError: ").last().unwrap_or_default();
        let error = error.split("state: ").last().unwrap_or_default();
        fields.insert("comment".into(), error.split("; line").next().unwrap_or_default().into());
    }
    if let Some(removed) = fields["changes"].get_mut("removed").and_then(Value::as_array_mut) {
        removed.sort_by_key(ToString::to_string);
    }
    result
}

fn serve(master: &Master) {
    master.serve("content.sls", include_bytes!("file_states/content.sls"));
    master.serve("names.sls", include_bytes!("file_states/names.sls"));
    master.serve("files/t.jinja", include_bytes!("file_states/template.jinja"));
    master.serve("files/lib.jinja", include_bytes!("file_states/lib.jinja"));
    master.serve("files/bad.jinja", b"bad {{ nothere }}\n");
    master.serve("files/plain.conf", b"alpha\nbeta\ngamma\n");
    master.serve("files/bin", b"\0\x01bin\n");
    master.serve("tree/a", b"a\n");
    master.serve("tree/sub/b", b"{{ who }}\n");
    master.serve("tree/sub/c.skip", b"c\n");
}

fn brine(master: &Master, top: &Path) -> Minion {
    let grants = format!("{{changes: {{{}: rw}}, files: any, pillar: any, functions: any}}", top.display());
    master.minion_kind(Kind::Brine, "brine", &format!("sandbox: {{modules: {{file: {grants}}}}}"))
}

#[test]
fn states_of_files_do_what_pythons_do() {
    if !is_root() {
        return;
    }
    let master = Master::start("timeout: 120");
    serve(&master);
    let folders = ["python", "brine"].map(|_| files::folder("brine-f"));
    let tops = [folders[0].path().join("w"), folders[1].path().join("w")];
    for top in &tops {
        std::fs::create_dir(top).expect("our own folder");
    }
    let _python = master.minion_kind(Kind::Python, "python", "");
    let _brine = brine(&master, &tops[1]);
    let [python, brine] = [Host { id: "python", top: &tops[0] }, Host { id: "brine", top: &tops[1] }];
    let mut different = Vec::new();
    for sls in ["content", "names"] {
        tops.iter().for_each(|top| prepare(top));
        let before = tree(&tops[1], "brine");
        for (step, test) in [("test=True", true), ("applied", false), ("again", false)] {
            let (expected, got) = (python.apply(&master, sls, test), brine.apply(&master, sls, test));
            assert!(expected.len() > 35, "{sls}: {expected:?}");
            for (tag, expected) in &expected {
                let got = got.get(tag).unwrap_or(&Value::Null);
                if got != expected {
                    different.push(format!("{sls} {step} {tag}\n  Salt  {expected}\n  Brine {got}"));
                }
            }
            if test {
                assert_eq!(tree(&tops[1], "brine"), before, "{sls}: a dry run changed files");
            }
            let (expected, got) = (tree(&tops[0], "python"), tree(&tops[1], "brine"));
            for path in expected.keys().chain(got.keys()) {
                if expected.get(path) != got.get(path) {
                    different.push(format!(
                        "{sls} {step} {path}\n  Salt  {:?}\n  Brine {:?}",
                        expected.get(path),
                        got.get(path)
                    ));
                }
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
