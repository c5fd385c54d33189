//! Tar archives, as they are or compressed by gzip, bzip2, xz or lzma.

use std::io::{BufReader, Read, Seek, SeekFrom};

use brine_guest::Result;
use tar::EntryType;

use crate::host_file::HostFile;
use crate::members::{Kind, MAX_BYTES, MAX_MEMBERS, Member, Owned};

/// Memory of xz's decoder, in KiB: its largest usual dictionary is 64 MiB.
const XZ_MEMORY: u32 = 160 << 10;

/// Passes each member with its content to `each`, in the archive's order.
///
/// # Errors
/// When it is no such archive, has too much in it, or `each` fails.
pub(crate) fn each(file: HostFile, mut each: impl FnMut(Member, &mut dyn Read) -> Result<()>) -> Result<()> {
    let mut archive = tar::Archive::new(decompressed(file)?);
    let (mut count, mut bytes) = (0, 0_u64);
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        count += 1;
        bytes = bytes.saturating_add(entry.size());
        if count > MAX_MEMBERS || bytes > MAX_BYTES {
            return Err(format!("it has more than {MAX_MEMBERS} members, or more than {MAX_BYTES} bytes"));
        }
        let member = member(&entry)?;
        each(member, &mut entry)?;
    }
    Ok(())
}

fn member<R: Read>(entry: &tar::Entry<'_, R>) -> Result<Member> {
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("a name is no text: {}", bytes.escape_ascii()))
    };
    let stored_name = text(&entry.path_bytes())?;
    let target = || text(&entry.link_name_bytes().unwrap_or_default());
    let header = entry.header();
    let kind = match header.entry_type() {
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Link(target()?),
        EntryType::Link => Kind::HardLink(target()?),
        EntryType::Char | EntryType::Block | EntryType::Fifo => Kind::Special,
        // Old archives have no type for directories.
        _ if stored_name.ends_with('/') => Kind::Directory,
        _ => Kind::File,
    };
    let name = match kind {
        Kind::Directory => stored_name.trim_end_matches('/').to_owned(),
        _ => stored_name.clone(),
    };
    let named = |name: Option<&[u8]>| name.map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
    let number = |number: std::io::Result<u64>| number.map_err(|error| format!("{stored_name}: {error}"));
    let owner = Owned {
        user: named(header.username_bytes()),
        group: named(header.groupname_bytes()),
        uid: number(header.uid())?,
        gid: number(header.gid())?,
    };
    let mode = header.mode().map_err(|error| format!("{stored_name}: {error}"))?;
    let mtime = header.mtime().ok().and_then(|mtime| i64::try_from(mtime).ok());
    Ok(Member { name, kind, mode: Some(mode & 0o7777), owner: Some(owner), mtime, stored_name })
}

/// The tar archive, by what the file begins with.
fn decompressed(mut file: HostFile) -> Result<Box<dyn Read>> {
    let mut start = [0; 6];
    let mut filled = 0;
    while filled < start.len() {
        match file.read(&mut start[filled..]).map_err(|error| error.to_string())? {
            0 => break,
            count => filled += count,
        }
    }
    file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
    let file = BufReader::new(file);
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(file)),
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::read::MultiBzDecoder::new(file)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, XZ_MEMORY)),
        [0x5d, 0, 0, ..] => {
            Box::new(lzma_rust2::LzmaReader::new_mem_limit(file, XZ_MEMORY, None).map_err(|error| error.to_string())?)
        }
        _ => Box::new(file),
    })
}
