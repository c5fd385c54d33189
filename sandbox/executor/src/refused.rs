//! What this process refuses a guest by itself, for the owner of the host: the minion is told each once.

use std::fs::File;
use std::sync::Arc;

use brine_sandbox_wire::{PathAccess, Wanted};
use rustix::fs::{Mode, OFlags};
use wasmtime_wasi::filesystem::Dir;

use crate::directories::There;
use crate::guest::Guest;
use crate::open::open_below;

/// Upper bound on the bytes of a path, as in Linux.
const MAX_PATH: usize = 4_095;
/// Upper bound on the parts of a path that are looked at to find the link in it.
const MAX_PARTS: usize = 256;

impl Guest {
    /// Returns the path of the host that a guest means by a path below one of its descriptors, without `.` and `..`. None if that is
    /// not known. Compares text only.
    #[must_use]
    pub fn meant(&self, dir: &Arc<File>, path: &str) -> Option<String> {
        normal(&self.files.path_of(dir)?, path)
    }

    /// Tells the owner of a path that was refused, if that is because it was not granted.
    pub(crate) async fn refused_path(&mut self, dir: &Dir, path: &str, access: PathAccess) {
        let Some(path) = self.meant(&dir.dir, path) else { return };
        let directories = &self.files.directories;
        if access == PathAccess::Read && directories.leads_to_granted(&path) {
            // Who walks down to a granted directory looks at its parents first.
            return;
        }
        let looks = path.clone();
        let there = tokio::task::spawn_blocking(move || There::look(&looks)).await.unwrap_or(There::Other);
        let access = match (access, there) {
            (PathAccess::Read, There::Link) if !directories.covers(&path) => PathAccess::ByLink,
            // A file can be granted, and a name that is to be made only with its directory.
            (PathAccess::Change, There::Link | There::Other) => PathAccess::Name,
            (access, _) => access,
        };
        if !directories.covers(&path) || access != PathAccess::Read {
            // The minion knows whether the directory around it is writable.
            self.line.refused(Wanted::Path { path, access });
            return;
        }
        let Some((around, rest)) = directories.innermost(&path) else { return };
        let found = tokio::task::spawn_blocking(move || led_out(&around, &rest)).await;
        let Ok(Some(target)) = found else { return };
        if !self.files.directories.covers(&target) {
            self.line.refused(Wanted::Path { path: target, access: PathAccess::ByLink });
        }
    }
}

/// Joins a path to the one of its directory. None for one that is too long or that the kernel refuses.
fn normal(directory: &str, path: &str) -> Option<String> {
    if directory.len() + path.len() > MAX_PATH || path.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    // The kernel refuses an absolute path below a directory, where a guest means one of the host.
    let start = if path.starts_with('/') { "" } else { directory };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

/// Where the first link on the way leads that leads out of the directory. None if there is none.
fn led_out(around: &(String, Arc<File>), rest: &str) -> Option<String> {
    let (root, dir) = around;
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let mut way = String::new();
    let parts: Vec<&str> = rest.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    for (nth, part) in parts.iter().enumerate().take(MAX_PARTS) {
        let here = if way.is_empty() { (*part).to_owned() } else { format!("{way}/{part}") };
        let fd = open_below(dir, false, &here, flags, Mode::empty()).ok()?;
        if let Ok(target) = rustix::fs::readlinkat(&fd, "", Vec::new()) {
            let target = target.into_string().ok()?;
            let beside = normal(root, &way)?;
            let target = normal(&beside, &target)?;
            return normal(&target, &parts[nth + 1..].join("/"));
        }
        way = here;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_as_text() {
        for (directory, path, expect) in [
            ("/srv/app", "x", Some("/srv/app/x")),
            ("/srv/app", "./../../etc//x/", Some("/etc/x")),
            ("/srv/app", "../../../../..", Some("/")),
            ("/", "etc/x", Some("/etc/x")),
            ("/srv/app", "/etc/x", Some("/etc/x")),
            ("/srv/app", ".", Some("/srv/app")),
            ("/srv/app", "a\0b", None),
            ("/srv/app", &"x".repeat(MAX_PATH), None),
        ] {
            assert_eq!(normal(directory, path).as_deref(), expect, "{directory} {path:.40}");
        }
    }
}
