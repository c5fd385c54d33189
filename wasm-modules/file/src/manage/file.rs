//! Salt's `file.manage_file`: makes or replaces a file.

use brine_guest::changes::{self, Change, Entry, Kind, Put};
use brine_guest::url::redacted;
use brine_guest::{diff, path};

use super::body::{self, Body};
use super::get::Got;
use crate::change::permissions::Permissions;
use crate::change::{directories, mode};
use crate::ret::Ret;

/// The mode of a new file, as with Salt's usual umask.
const NEW: u32 = 0o644;
/// The same of one that Salt makes empty and private before it writes into it.
const NEW_PRIVATE: u32 = 0o600;

/// What a file is to be, and how it becomes so.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    pub(crate) name: String,
    /// Where the content is from, as the state says it.
    pub(crate) source: Option<String>,
    pub(crate) got: Option<Got>,
    pub(crate) contents: Option<Vec<u8>>,
    pub(crate) permissions: Permissions,
    /// Whether to keep what was there.
    pub(crate) backup: bool,
    pub(crate) makedirs: bool,
    pub(crate) dir_mode: Option<String>,
    /// Whether differences are shown.
    pub(crate) shown: bool,
    /// Whether a link's target is meant.
    pub(crate) follow: bool,
    /// Whether the source's content has to have the hash that was said.
    pub(crate) checked: bool,
    pub(crate) new_file_diff: bool,
}

/// Makes the file. `entry` is what is there, links followed as the wish says, with a file's hash.
///
/// # Errors
/// What Salt's function raises.
pub(crate) fn make(wish: Wish, entry: Option<&Entry>, mut ret: Ret) -> Result<Ret, String> {
    match entry.filter(|entry| matches!(entry.kind, Kind::Regular | Kind::Symlink)) {
        Some(entry) => replace(wish, entry, &mut ret)?,
        None => create(wish, &mut ret)?,
    }
    Ok(ret)
}

/// The content with the hash that it has to have. The inner error is a comment.
fn content(wish: &mut Wish, is_new: bool) -> Result<Result<Option<Got>, String>, String> {
    if let Some(contents) = wish.contents.take() {
        return Ok(Ok(Some(Got { body: Body::Bytes(contents), sum: None })));
    }
    let Some(got) = wish.got.take() else { return Ok(Ok(None)) };
    let got = match got.fetched() {
        Ok(got) => got,
        Err(trouble) => return Err(trouble.text()),
    };
    let Some(sum) = &got.sum else { return Ok(Ok(Some(got))) };
    let is_of_master = matches!(got.body, Body::Master { .. });
    if !is_of_master && wish.checked {
        let is = body::hash(&got.body.load()?, &sum.kind)?;
        if is != sum.hex {
            let about =
                if is_new { wish.name.clone() } else { wish.source.as_deref().map(redacted).unwrap_or_default() };
            let hint = " If the 'source_hash' value refers to a remote file with multiple possible matches, then it may be \
                        necessary to set 'source_hash_name'.";
            let hint = if is_new { "" } else { hint };
            let end = if is_new { "" } else { "." };
            return Ok(Err(format!(
                "Specified {} checksum for {about} ({}) does not match actual checksum ({is}){end}{hint}",
                sum.kind, sum.hex
            )));
        }
    }
    if got.body.is_small() {
        // What is compared is what is written, and it is what was hashed.
        let bytes = got.body.load_checked(sum)?;
        return Ok(Ok(Some(Got { body: Body::Bytes(bytes), sum: got.sum })));
    }
    Ok(Ok(Some(got)))
}

fn put(wish: &Wish, got: Got, expect: Option<String>, bits: Option<u32>) -> Result<Change, String> {
    let content = got.body.content(got.sum.as_ref())?;
    Put::new(&wish.name)
        .owner_of(wish.permissions.owner.owner())
        .mode(bits)
        .backup(wish.backup)
        .follow(wish.follow)
        .expect(expect)
        .content(&content)
}

fn replace(mut wish: Wish, entry: &Entry, ret: &mut Ret) -> Result<(), String> {
    let is_link = entry.kind == Kind::Symlink;
    let same = match (&wish.got, &wish.contents) {
        (_, Some(contents)) => !is_link && entry.sha256.as_deref() == Some(&*brine_guest::hash::sha256(contents)),
        (Some(Got { sum: Some(sum), .. }), None) => !is_link && body::hash_of(&wish.name, entry, &sum.kind)? == sum.hex,
        (Some(_), None) => false,
        (None, None) => true,
    };
    if !same {
        let got = match content(&mut wish, false)? {
            Ok(Some(got)) => got,
            Ok(None) => return Ok(()),
            Err(comment) => {
                (ret.result, ret.comment) = (Some(false), comment);
                return Ok(());
            }
        };
        let text = match wish.shown {
            false => "<show_changes=False>".into(),
            // A link that is replaced is compared by what it leads to.
            true => got.body.diff(&wish.name, entry.size)?,
        };
        let replaced = "Replace symbolic link with regular file";
        let text = if text.is_empty() && is_link { replaced.into() } else { text };
        let lacks = wish.permissions.lacks(entry);
        let bits = wish.permissions.mode.as_deref().and_then(mode::bits);
        if !text.is_empty() {
            ret.change("diff", text);
        }
        // A change that somebody else made since it was compared is not lost.
        let expect = entry.sha256.clone().filter(|_| !is_link);
        match put(&wish, got, expect, bits) {
            Ok(done) => {
                wish.permissions.report(lacks, done.after.as_ref(), ret);
            }
            Err(why) => {
                *ret = std::mem::replace(ret, Ret::new()).failed(format!("Failed to commit change: {why}"));
                return Ok(());
            }
        }
    } else {
        wish.permissions.apply(&wish.name, entry, wish.follow, false, ret);
    }
    if !ret.changes.is_empty() {
        ret.comment = format!("File {} updated", wish.name);
    } else if ret.result == Some(true) {
        ret.comment = format!("File {} is in the correct state", wish.name);
    }
    Ok(())
}

fn create(mut wish: Wish, ret: &mut Ret) -> Result<(), String> {
    let is_from_source = wish.got.is_some();
    let is_empty = wish.got.is_none() && wish.contents.is_none();
    let got = match content(&mut wish, true)? {
        Ok(got) => got,
        Err(comment) => {
            (ret.result, ret.comment) = (Some(false), comment);
            return Ok(());
        }
    };
    let around = path::dirname(&wish.name);
    if !changes::is(around, Kind::Directory)? {
        if !wish.makedirs {
            (ret.result, ret.comment) = (Some(false), "Parent directory not present".into());
            return Ok(());
        }
        let of_file = wish.permissions.mode.as_deref().map(mode::of_directories);
        directories::make(around, &wish.permissions.owner, wish.dir_mode.as_deref().or(of_file.as_deref()))?;
    }
    // Salt makes a private file of a source; of contents, or an empty one, only before it gets a mode that was said.
    let is_private = is_from_source || wish.permissions.mode.is_some();
    let wanted = wish.permissions.mode.get_or_insert_with(|| format!("{NEW:04o}")).clone();
    let got = match got {
        Some(got) => {
            let text = match wish.new_file_diff {
                true => diff::of_contents(b"", &got.body.load()?),
                false => "New file".into(),
            };
            ret.change("diff", text);
            got
        }
        None => {
            ret.change("new", format!("file {} created", wish.name));
            Got { body: Body::Bytes(Vec::new()), sum: None }
        }
    };
    let done = match put(&wish, got, None, mode::bits(&wanted).or(Some(NEW_PRIVATE))) {
        Ok(done) => done,
        Err(why) => {
            ret.changes.clear();
            (ret.result, ret.comment) = (Some(false), format!("Failed to commit change: {why}"));
            return Ok(());
        }
    };
    // What Salt finds to be set after it has made the file.
    if let Some(after) = &done.after {
        let made = Entry {
            user: Some("root".into()),
            group: Some("root".into()),
            uid: 0,
            gid: 0,
            mode: if is_private { NEW_PRIVATE } else { NEW },
            ..after.clone()
        };
        let lacks = wish.permissions.lacks(&made);
        wish.permissions.report(lacks, Some(after), ret);
    }
    if is_empty {
        ret.comment = if ret.comment.is_empty() { "Empty file".into() } else { format!("Empty file; {}", ret.comment) };
    } else if ret.comment.is_empty() {
        ret.comment = format!("File {} updated", wish.name);
    }
    Ok(())
}
