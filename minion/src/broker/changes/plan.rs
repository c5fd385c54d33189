//! What a change would lead to, in a job with `test=True`. Nothing here changes anything.
//!
//! A directory that is missing may be one that the job would have made, so it is no error.

use aws_lc_rs::digest::{SHA256, digest};
use brine_sandbox::{Change, Content, Owner};

use super::content;
use super::entry::Entry;
use super::failure::Failure;
use super::put::ids;
use super::{Done, Task};

impl Task {
    pub(super) fn plan(&self, change: &Change) -> Result<Done, Failure> {
        let follow = match change {
            Change::Put { follow, .. } | Change::SetPermissions { follow, .. } => *follow,
            Change::MakeDirectory { .. } | Change::Touch { .. } => true,
            _ => false,
        };
        let moves = !matches!(change, Change::SetPermissions { .. } | Change::RemoveBackup { .. });
        let path = change.path();
        let before = match self.find(path, follow)? {
            None => None,
            Some(place) => {
                // What would be refused is refused.
                self.admit_change(&place, moves && Entry::at(&place)?.is_none_or(|entry| entry.kind != "directory"))?;
                let mut before = Entry::at(&place)?;
                if let (Some(entry), Change::Put { .. }) = (&mut before, change)
                    && entry.kind == "regular"
                    && entry.size <= content::MAX_CONTENT
                {
                    entry.sha256 = Some(content::hash(&content::open(&place)?, &self.over)?);
                }
                before
            }
        };
        let after = match change {
            Change::Remove { .. } => None,
            Change::Put { content, owner, mode, .. } => {
                let mut after = owned(kept(before.as_ref(), "regular", 0o644), owner, *mode)?;
                if let Some((size, sha256)) = self.known(content)? {
                    (after.size, after.sha256) = (size, Some(sha256));
                }
                Some(after)
            }
            Change::MakeDirectory { owner, mode, .. } => match &before {
                Some(there) => Some(there.clone()),
                None => Some(owned(kept(None, "directory", 0o755), owner, *mode)?),
            },
            Change::Symlink { target, owner, .. } => {
                let mut after = owned(kept(None, "symlink", 0o777), owner, None)?;
                after.target = Some(target.clone());
                Some(after)
            }
            Change::SetPermissions { owner, mode, .. } => {
                before.clone().map(|is| owned(is, owner, *mode)).transpose()?
            }
            Change::Touch { .. } => Some(kept(before.as_ref(), "regular", 0o644)),
            Change::HardLink { target, .. } => self.find(target, false)?.as_ref().map(Entry::at).transpose()?.flatten(),
            // A backup goes, and its file stays.
            Change::Rename { .. } | Change::RemoveBackup { .. } => before.clone(),
        };
        let count = u64::from(before != after || matches!(change, Change::Rename { .. } | Change::Touch { .. }));
        Ok(Done { before, after, count, ..Done::default() })
    }

    /// The size and the SHA-256 of content that is here.
    fn known(&self, content: &Content) -> Result<Option<(u64, String)>, Failure> {
        Ok(match content {
            Content::Bytes(bytes) => Some((bytes.len() as u64, hex::encode(digest(&SHA256, bytes)))),
            Content::Staged(number) => {
                let file = self.host.stages.used(&self.job, *number).map_err(Failure::Other)?;
                Some((file.metadata()?.len(), content::hash(&file, &self.over)?))
            }
            Content::File(from) => match self.find_content(from, true)? {
                Some(place) if place.stat()?.is_some() => {
                    let file = content::open(&place)?;
                    Some((file.metadata()?.len(), content::hash(&file, &self.over)?))
                }
                _ => None,
            },
            Content::Master { .. } | Content::Backup(_) => None,
        })
    }
}

/// What is there if it is of this kind, else a new one.
fn kept(before: Option<&Entry>, kind: &'static str, mode: u32) -> Entry {
    match before {
        Some(before) if before.kind == kind => before.clone(),
        _ => Entry {
            kind,
            mode,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            user: None,
            group: None,
            size: 0,
            inode: 0,
            nlink: 1,
            times: [0.0; 3],
            target: None,
            sha256: None,
        },
    }
}

fn owned(mut entry: Entry, owner: &Owner, mode: Option<u32>) -> Result<Entry, Failure> {
    // A user that the job would have made is not there yet.
    let (uid, gid) = ids(owner).unwrap_or_default();
    entry.uid = uid.unwrap_or(entry.uid);
    entry.gid = gid.unwrap_or(entry.gid);
    entry.mode = mode.unwrap_or(entry.mode);
    Ok(entry)
}
