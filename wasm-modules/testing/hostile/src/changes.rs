//! Changes of files through the minion.

use crate::brine::host::changes::{self, Change, Content, Entry, Owner, PutOptions};

type Done = Result<String, String>;

fn shown(entry: &Option<Entry>) -> String {
    match entry {
        None => "nothing".to_owned(),
        Some(entry) => format!("{:?} {:o} {}", entry.kind, entry.mode, entry.size),
    }
}

fn change(done: Result<Change, String>) -> Done {
    let done = done?;
    let planned = if done.planned { "planned " } else { "" };
    Ok(format!("{planned}{} -> {}", shown(&done.before), shown(&done.after)))
}

pub(crate) fn act(op: &str, path: &str, other: &str, mode: Option<u32>) -> Done {
    let nobody = || Owner { user: None, group: None };
    let put = |content: Content, follow: bool| {
        let options = PutOptions { owner: nobody(), mode, backup: false, follow, expect: None };
        change(changes::put(path, &content, &options))
    };
    match op {
        "look" => Ok(shown(&changes::look(path, false, false)?)),
        "follow" => Ok(shown(&changes::look(path, true, true)?)),
        "read" => {
            let read = changes::read(path, 0, 4096)?;
            Ok(read.map_or_else(|| "none".to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned()))
        }
        "list" => Ok(changes::list(path, None)?.into_iter().map(|name| name.name).collect::<Vec<_>>().join(" ")),
        "put" => put(Content::Bytes(other.as_bytes().to_vec()), false),
        "put-follow" => put(Content::Bytes(other.as_bytes().to_vec()), true),
        "put-large" => put(Content::Bytes(vec![b'x'; 3 << 20]), false),
        "copy" => put(Content::File(other.to_owned()), false),
        "staged" => put(Content::Staged(other.parse().unwrap_or_default()), false),
        "backup" => put(Content::Backup(other.to_owned()), false),
        "mkdir" => change(changes::make_directory(path, false, &nobody(), mode)),
        "mkdirs" => change(changes::make_directory(path, true, &nobody(), mode)),
        "symlink" => change(changes::symlink(path, other, &nobody(), true)),
        "hardlink" => change(changes::hard_link(path, other)),
        "rename" => change(changes::rename(path, other)),
        "remove" => change(changes::remove(path, false)),
        "rmtree" => change(changes::remove(path, true)),
        "chmod" => change(changes::set_permissions(path, &nobody(), mode, true)),
        "chown" => {
            let owner = Owner { user: Some(other.to_owned()), group: None };
            change(changes::set_permissions(path, &owner, mode, true))
        }
        "touch" => change(changes::touch(path, None, None)),
        _ => Err(format!("no operation {op}")),
    }
}
