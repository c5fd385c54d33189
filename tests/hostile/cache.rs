//! Altered compiled code: it is native code, and none of it may run.

use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_kit::files::set_mode;

use crate::asks::NOTHING;
use crate::rig::{Rig, hostile, returns};

fn code(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir.join("cache/sandbox")).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|kind| kind == "cwasm")).collect();
    files.sort();
    files
}

/// A change and its effect on a file of compiled code.
type Change = (&'static str, fn(&Path));

/// Time for a call whose module is compiled first, by a compiler without optimization.
const COMPILED: Duration = Duration::from_secs(15);

const CHANGES: [Change; 8] = [
    ("flipped bits", |path| {
        let mut bytes = std::fs::read(path).unwrap();
        for at in (bytes.len() / 3..bytes.len()).step_by(bytes.len() / 20) {
            bytes[at] ^= 0x10;
        }
        std::fs::write(path, bytes).unwrap();
    }),
    ("another length", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("another engine's", |path| {
        // The engine's header is at the front: settings and version.
        let mut bytes = std::fs::read(path).unwrap();
        let at = bytes.windows(2).position(|pair| pair == b"48").unwrap_or(64);
        bytes[at] = b'9';
        std::fs::write(path, bytes).unwrap();
    }),
    ("nothing", |path| std::fs::write(path, "").unwrap()),
    ("everybody's", |path| set_mode(path, 0o666)),
    ("somebody else's", |path| {
        if rustix::process::geteuid().is_root() {
            chown(path, Some(65_534), None).unwrap();
        }
    }),
    ("a link", |path| {
        let aside = path.with_extension("aside");
        std::fs::rename(path, &aside).unwrap();
        symlink(aside, path).unwrap();
    }),
    ("gone", |path| std::fs::remove_file(path).unwrap()),
];

#[tokio::test(flavor = "multi_thread")]
async fn changed_code_is_compiled_again_or_refused() {
    let settings = format!("  modules:\n    hostile: {NOTHING}\n");
    let mut rig = Rig::start(&settings).await;
    let mut standard = code(&rig.dir);
    rig.install("hostile", &hostile()).await;
    // The smallest of the standard modules beside it: compiling all of them in each round takes minutes.
    standard.sort_by_key(|path| std::fs::metadata(path).map_or(0, |file| file.len()));
    let mut files = code(&rig.dir);
    files.retain(|path| !standard[2..].contains(path));
    assert_eq!(files.len(), 3, "{files:?}");
    for (what, change) in CHANGES {
        println!("{what}");
        rig.sandbox().shutdown().await;
        files.iter().for_each(|path| change(path));
        rig.restart(&settings).await;
        // The module was compiled again, and nothing of the altered file ran.
        rig.attack("hostile.say", vec!["fine".into(), false.into()], COMPILED, &returns("fine")).await;
    }
    // A folder that other users may write is not used at all.
    let folder = rig.dir.join("cache/sandbox");
    set_mode(&folder, 0o777);
    let refused = rig.try_restart(&settings).await.unwrap_err();
    let expect =
        format!("…{}…its mode is 777; what is run from it must be safe from others: chmod 700", folder.display());
    rig.said("a folder of everybody's", &refused, &expect);
    set_mode(&folder, 0o700);
    rig.restart(&settings).await;
    rig.end().await;
}
