//! A folder to work in, and components to work on.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

/// A folder in which `salt-module` runs.
pub struct Bench {
    dir: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// A component whose functions do nothing, of this WIT, in `NAME.wasm` and in no other way different.
    pub fn component(&self, name: &str, wit: &str) {
        self.write(&format!("{name}.wasm"), component(wit));
    }

    /// Runs `salt-module` with these words, split at spaces.
    pub fn run(&self, words: &str) -> Ended {
        self.run_in(self.dir.path(), &words.split_whitespace().collect::<Vec<_>>())
    }

    pub fn run_in(&self, dir: &Path, words: &[&str]) -> Ended {
        let output = assert_cmd::cargo::cargo_bin_cmd!("salt-module").args(words).current_dir(dir).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs it well and returns what it printed.
    pub fn good(&self, words: &str) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, 0, "{words}: {}", ended.err);
        ended.out
    }

    /// Runs it to this exit code, and returns the words about that.
    pub fn bad(&self, words: &str, code: i32) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, code, "{words}: {}{}", ended.out, ended.err);
        ended.err
    }
}

/// A component of the only world of this WIT, with functions that do nothing.
pub fn component(wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")).unwrap();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
}
