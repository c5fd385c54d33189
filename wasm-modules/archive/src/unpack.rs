//! Unpacks members into a folder, by way of `changes`: each file gets owner and mode before it has its name. Nothing is
//! written through a symbolic link beneath the folder, whoever made it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use brine_accounts::{groups, users};
use brine_guest::changes::{self, Content, Kind as Found, Owner, Put};
use brine_guest::host::changes::stage;
use brine_guest::host::grains;
use brine_guest::{Result, Value, path};

use crate::members::{Kind, Member, inside};

/// Bytes that are passed on at once.
const PIECE: usize = 1 << 20;
/// Permission bits; those of programs that run as their owner need the grant `rw+setid`.
const MODES: u32 = 0o7777;

/// Unpacks into one folder.
pub(crate) struct Unpacker {
    folder: String,
    /// Directories that were looked at, and are no links.
    known: BTreeSet<String>,
    /// The modes and owners of directories, which they get at the end.
    later: Vec<(String, Owner, Option<u32>)>,
    /// The numbers of users and groups; none if the minion may not give files away.
    ids: Option<(BTreeMap<String, i64>, BTreeMap<String, i64>)>,
}

impl Unpacker {
    pub(crate) fn new(folder: &str) -> Result<Self> {
        let is_root = grains::get("uid", None).and_then(|uid| uid.value().ok()).is_none_or(|uid| uid == Value::Int(0));
        let ids = if is_root {
            let users = users::all(Some("/"))?.into_iter().map(|user| (user.name, user.uid)).collect();
            let groups = groups::local(None)?.into_iter().map(|group| (group.name, group.gid)).collect();
            Some((users, groups))
        } else {
            None
        };
        Ok(Self { folder: folder.trim_end_matches('/').to_owned(), known: BTreeSet::new(), later: Vec::new(), ids })
    }

    /// Unpacks one member; `name` is its path below the folder.
    pub(crate) fn member(&mut self, name: &str, member: &Member, content: &mut dyn Read) -> Result<()> {
        let below = inside(name)?;
        let path = self.place(&below)?;
        let owner = self.owner(member);
        let mode = member.mode.map(|mode| mode & MODES);
        match &member.kind {
            Kind::Directory => {
                if !below.is_empty() {
                    self.replace(&path, Found::Directory)?;
                }
                changes::make_directory(&path, true, &nobody(), None)?;
                self.known.insert(path.clone());
                self.later.push((path, owner, mode));
            }
            Kind::Link(target) => {
                self.replace(&path, Found::Symlink)?;
                changes::symlink(&path, target, &owner, true)?;
            }
            Kind::HardLink(target) => {
                let target = self.place(&inside(target)?)?;
                self.replace(&path, Found::Regular)?;
                changes::remove(&path, false)?;
                changes::hard_link(&path, &target)?;
            }
            Kind::File => {
                self.replace(&path, Found::Regular)?;
                let put = Put::new(&path).owner(owner.user, owner.group).mode(mode).follow(false);
                put.content(&staged(content)?)?;
                if let Some(mtime) = member.mtime {
                    changes::touch(&path, Some(mtime), Some(mtime))?;
                }
            }
            Kind::Special => return Err(format!("{}: devices and pipes are not unpacked", member.name)),
        }
        Ok(())
    }

    /// Gives the directories their modes and owners, the innermost first.
    pub(crate) fn end(self) -> Result<()> {
        self.later
            .into_iter()
            .rev()
            .try_for_each(|(path, owner, mode)| changes::set_permissions(&path, &owner, mode, false).map(drop))
    }

    /// The path of a member, with the directories around it made.
    fn place(&mut self, below: &str) -> Result<String> {
        let mut path = self.folder.clone();
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
        for (place, part) in parts.iter().enumerate() {
            path = format!("{path}/{part}");
            if place + 1 == parts.len() || self.known.contains(&path) {
                continue;
            }
            match changes::look(&path, false)?.map(|entry| entry.kind) {
                Some(Found::Directory) => {}
                None => {
                    changes::make_directory(&path, false, &nobody(), None)?;
                }
                Some(Found::Symlink) => {
                    return Err(format!("{path} is a symbolic link, and nothing is unpacked through it"));
                }
                Some(_) => return Err(format!("[Errno 20] Not a directory: '{path}'")),
            }
            self.known.insert(path.clone());
        }
        Ok(path)
    }

    /// Checks what is where a member goes: a directory does not become a file, nor anything else a directory.
    fn replace(&self, path: &str, wanted: Found) -> Result<()> {
        match changes::look(path, false)?.map(|entry| entry.kind) {
            Some(Found::Directory) if wanted != Found::Directory => Err(format!("[Errno 21] Is a directory: '{path}'")),
            Some(kind) if wanted == Found::Directory && kind != Found::Directory => {
                Err(format!("[Errno 17] File exists: '{path}'"))
            }
            _ => Ok(()),
        }
    }

    fn owner(&self, member: &Member) -> Owner {
        let (Some((users, groups)), Some(owned)) = (&self.ids, &member.owner) else { return nobody() };
        let number = |ids: &BTreeMap<String, i64>, name: &String, number: u64| {
            ids.get(name).map_or_else(|| number.to_string(), i64::to_string)
        };
        Owner {
            user: Some(number(users, &owned.user, owned.uid)),
            group: Some(number(groups, &owned.group, owned.gid)),
        }
    }
}

pub(crate) fn nobody() -> Owner {
    Owner { user: None, group: None }
}

/// The content of a file: its bytes if they are few, else what the host was given in parts.
fn staged(content: &mut dyn Read) -> Result<Content> {
    let mut number = None;
    loop {
        let mut piece = Vec::new();
        content.take(PIECE as u64).read_to_end(&mut piece).map_err(|error| error.to_string())?;
        let last = piece.len() < PIECE;
        match (number, last) {
            (None, true) => return Ok(Content::Bytes(piece)),
            (Some(number), true) if piece.is_empty() => return Ok(Content::Staged(number)),
            _ => number = Some(stage(number, &piece)?),
        }
        if let (Some(number), true) = (number, last) {
            return Ok(Content::Staged(number));
        }
    }
}

/// What of a folder and all in it belongs to somebody else, is given to a user and a group; -1 is for any. Returns the
/// paths that were, or in a dry run would be. Links are not followed.
pub(crate) fn give(path: &str, uid: i64, gid: i64, dry: bool, recursive: bool) -> Result<bool> {
    let mut changed = false;
    let mut todo = vec![path.trim_end_matches('/').to_owned()];
    while let Some(path) = todo.pop() {
        let Some(entry) = changes::look(&path, false)? else { continue };
        let differs = |wanted: i64, now: u32| wanted != -1 && wanted != i64::from(now);
        if differs(uid, entry.uid) || differs(gid, entry.gid) {
            changed = true;
            if !dry {
                let number = |wanted: i64| (wanted != -1).then(|| wanted.to_string());
                changes::set_permissions(&path, &Owner { user: number(uid), group: number(gid) }, None, false)?;
            }
        }
        if recursive && entry.kind == Found::Directory {
            todo.extend(changes::list(&path)?.into_iter().map(|(name, _)| path::join(&path, &name)));
        }
    }
    Ok(changed)
}
