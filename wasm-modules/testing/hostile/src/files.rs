//! Attacks on paths through plain `wasi:filesystem`.

use crate::wasi::filesystem::preopens::get_directories;
use crate::wasi::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

type Done = Result<String, String>;

/// Upper bound on the bytes of a file in the result.
const SHOWN: u64 = 4096;

fn error(code: ErrorCode) -> String {
    code.name().to_owned()
}

pub(crate) fn roots() -> Vec<String> {
    get_directories().into_iter().map(|(_, path)| path).collect()
}

fn open_root(root: &str) -> Result<Descriptor, String> {
    let found = get_directories().into_iter().find(|(_, path)| path == root);
    found.map(|(root, _)| root).ok_or_else(|| format!("no directory {root}"))
}

fn read(root: &Descriptor, path: &str, follow: PathFlags) -> Done {
    let file = root.open_at(follow, path, OpenFlags::empty(), DescriptorFlags::READ).map_err(error)?;
    let (bytes, _) = file.read(SHOWN, 0).map_err(error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn act(op: &str, root: &str, path: &str, other: &str) -> Done {
    let root = &open_root(root)?;
    let follow = PathFlags::SYMLINK_FOLLOW;
    let done = |result: Result<(), ErrorCode>| result.map(|()| "done".to_owned()).map_err(error);
    match op {
        "read" => read(root, path, follow),
        "read-nofollow" => read(root, path, PathFlags::empty()),
        "write" | "create" | "truncate" => {
            let flags = match op {
                "create" => OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
                "truncate" => OpenFlags::TRUNCATE,
                _ => OpenFlags::CREATE,
            };
            let file = root.open_at(follow, path, flags, DescriptorFlags::WRITE).map_err(error)?;
            file.write(other.as_bytes(), 0).map(|written| format!("{written} bytes")).map_err(error)
        }
        "list" => {
            let flags = DescriptorFlags::READ;
            let dir = root.open_at(follow, path, OpenFlags::DIRECTORY, flags).map_err(error)?;
            let entries = dir.read_directory().map_err(error)?;
            let mut names = Vec::new();
            while let Some(entry) = entries.read_directory_entry().map_err(error)? {
                names.push(entry.name);
            }
            names.sort();
            Ok(names.join(" "))
        }
        // Opens a directory with the right to change it, and tries what that permits.
        "mutate" => {
            let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
            let dir = root.open_at(follow, path, OpenFlags::DIRECTORY, flags).map_err(error)?;
            done(dir.create_directory_at(other))
        }
        "stat" => root.stat_at(follow, path).map(|stat| format!("{:?} {}", stat.type_, stat.size)).map_err(error),
        "readlink" => root.readlink_at(path).map_err(error),
        "symlink" => done(root.symlink_at(other, path)),
        "link" => done(root.link_at(PathFlags::empty(), other, root, path)),
        "link-follow" => done(root.link_at(follow, other, root, path)),
        "rename" => done(root.rename_at(path, root, other)),
        "mkdir" => done(root.create_directory_at(path)),
        "rmdir" => done(root.remove_directory_at(path)),
        "unlink" => done(root.unlink_file_at(path)),
        "grow" => {
            let flags = DescriptorFlags::WRITE;
            let file = root.open_at(follow, path, OpenFlags::CREATE, flags).map_err(error)?;
            done(file.set_size(u64::MAX / 4))
        }
        _ => Err(format!("no operation {op}")),
    }
}

/// Reads `path` repeatedly while the test swaps a part of it. Returns everything except refusals and the expected
/// content.
pub(crate) fn race(root: &str, path: &str, times: u32) -> Done {
    let root = &open_root(root)?;
    let (mut inside, mut refused) = (0, 0);
    for _ in 0..times {
        match read(root, path, PathFlags::SYMLINK_FOLLOW) {
            Ok(text) if text == "inside" => inside += 1,
            Ok(other) => return Err(format!("escaped: {other}")),
            Err(_) => refused += 1,
        }
    }
    Ok(format!("{inside} inside, {refused} refused"))
}

pub(crate) fn handles(root: &str, path: &str, most: u32) -> Done {
    let root = &open_root(root)?;
    let mut open = Vec::new();
    for _ in 0..most {
        let file = root.open_at(PathFlags::empty(), path, OpenFlags::empty(), DescriptorFlags::READ);
        open.push(file.map_err(|code| format!("{} after {}", code.name(), open.len()))?);
    }
    Ok(format!("{} open", open.len()))
}
