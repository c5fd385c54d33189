//! What plan mode records of a change: what would be done, in one line.

use super::{Change, Content, Owner};

pub(super) fn of(change: &Change) -> String {
    match change {
        Change::Put { path, content, owner, mode, backup, .. } => {
            let from = match content {
                Content::Bytes(bytes) => format!("{} bytes", bytes.len()),
                Content::Staged(_) => "what was staged".to_owned(),
                Content::Master { path, .. } => format!("salt://{path}"),
                Content::File(path) => path.clone(),
                Content::Backup(name) => format!("the backup {name}"),
            };
            let backup = if *backup { ", with a backup" } else { "" };
            format!("write: {path} ({from}{}{backup})", permissions(owner, *mode))
        }
        Change::MakeDirectory { path, owner, mode, .. } => {
            format!("make the directory: {path}{}", in_brackets(owner, *mode))
        }
        Change::Symlink { path, target, owner, .. } => {
            format!("link: {path} to {target}{}", in_brackets(owner, None))
        }
        Change::HardLink { path, target } => format!("link: {path} as another name of {target}"),
        Change::Rename { path, to } => format!("rename: {path} to {to}"),
        Change::Remove { path, recursive } => {
            format!("remove: {path}{}", if *recursive { " with what is in it" } else { "" })
        }
        Change::SetPermissions { path, owner, mode, .. } => {
            format!("set permissions: {path}{}", in_brackets(owner, *mode))
        }
        Change::Touch { path, .. } => format!("touch: {path}"),
        Change::RemoveBackup { path, name } => format!("remove the backup: {name} of {path}"),
    }
}

fn in_brackets(owner: &Owner, mode: Option<u32>) -> String {
    let said = permissions(owner, mode);
    said.strip_prefix(", ").map_or_else(String::new, |said| format!(" ({said})"))
}

fn permissions(owner: &Owner, mode: Option<u32>) -> String {
    let owner = match (&owner.user, &owner.group) {
        (None, None) => String::new(),
        (user, group) => format!(", {}:{}", user.as_deref().unwrap_or(""), group.as_deref().unwrap_or("")),
    };
    mode.map_or(owner.clone(), |mode| format!("{owner}, mode {mode:04o}"))
}
