//! What is in an archive, whatever its format: members with names as Python's tarfile and zipfile have them.

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    /// With its target.
    Link(String),
    /// Another name of a member before it.
    HardLink(String),
    /// A device or pipe.
    Special,
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Without the slash at the end.
    pub name: String,
    /// As it is in the archive.
    pub stored_name: String,
    pub kind: Kind,
    /// Permission bits; none if the archive does not say.
    pub mode: Option<u32>,
    pub owner: Option<Owned>,
    pub mtime: Option<i64>,
}

/// Whose a member is: by name where this host has it, else by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub user: String,
    pub group: String,
    pub uid: u64,
    pub gid: u64,
}

/// Upper bound on the members of an archive.
pub(crate) const MAX_MEMBERS: usize = 500_000;
/// Upper bound on the bytes that an archive holds.
pub(crate) const MAX_BYTES: u64 = 64 << 30;

/// The members that `archive.list` tells apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Each with a slash at the end.
    pub dirs: Vec<String>,
    pub files: Vec<String>,
    pub links: Vec<String>,
}

impl Contents {
    /// Of a tar archive.
    pub(crate) fn of_tar<'a>(members: impl IntoIterator<Item = &'a Member>) -> Self {
        let mut contents = Self::default();
        for member in members {
            match member.kind {
                Kind::Link(_) => contents.links.push(member.name.clone()),
                Kind::Directory => contents.dirs.push(format!("{}/", member.name)),
                _ => contents.files.push(member.name.clone()),
            }
        }
        contents
    }

    /// Of a zip archive, in which directories may only be part of names.
    pub(crate) fn of_zip<'a>(members: impl IntoIterator<Item = &'a Member>) -> Self {
        let mut contents = Self::default();
        for member in members {
            match member.kind {
                Kind::Link(_) => contents.links.push(member.stored_name.clone()),
                Kind::Directory => contents.dirs.push(member.stored_name.clone()),
                _ => contents.files.push(member.stored_name.clone()),
            }
        }
        let folders = contents.files.iter().filter_map(|path| path.rfind('/').map(|slash| path[..=slash].to_owned()));
        contents.dirs.extend(folders.collect::<Vec<_>>());
        contents.dirs.sort();
        contents.dirs.dedup();
        contents.files.retain(|path| contents.dirs.binary_search(path).is_err());
        contents
    }

    /// Takes this many names from the front of each path; what is not as deep goes.
    pub(crate) fn strip(&mut self, components: usize) {
        for paths in [&mut self.dirs, &mut self.files, &mut self.links] {
            let strip = |path: &String| path.splitn(components + 1, '/').nth(components).map(str::to_owned);
            *paths = paths.iter().filter_map(strip).filter(|path| !path.is_empty()).collect();
        }
    }

    pub(crate) fn sort(&mut self) {
        [&mut self.dirs, &mut self.files, &mut self.links].into_iter().for_each(|paths| paths.sort());
    }

    /// The directories that have all else in them; one that is only part of names counts.
    pub(crate) fn top_level_dirs(&self) -> Vec<String> {
        let mut top: Vec<String> = self.dirs.iter().filter(|path| path.matches('/').count() == 1).cloned().collect();
        let mut all = self.dirs.iter().chain(&self.files).chain(&self.links);
        let Some(first) = all.next() else { return top };
        let common = all.fold(first.as_str(), |common, path| {
            let same = common.char_indices().zip(path.chars()).find(|((_, a), b)| a != b);
            let end = same.map_or_else(|| common.len().min(path.len()), |((place, _), _)| place);
            &common[..end]
        });
        if let Some((folder, _)) = common.split_once('/') {
            let folder = format!("{folder}/");
            if !top.contains(&folder) {
                top.push(folder);
            }
        }
        top
    }

    pub(crate) fn top_level_files(&self) -> Vec<String> {
        self.files.iter().filter(|path| !path.contains('/')).cloned().collect()
    }

    pub(crate) fn top_level_links(&self) -> Vec<String> {
        self.links.iter().filter(|path| !path.contains('/')).cloned().collect()
    }
}

/// The path of a member below the folder that it is unpacked in: names without `.`.
///
/// # Errors
/// When it leads out of that folder.
pub(crate) fn inside(name: &str) -> Result<String, String> {
    let parts = name.split('/').filter(|part| !part.is_empty() && *part != ".");
    if name.starts_with('/') || name.contains('\0') || parts.clone().any(|part| part == "..") {
        return Err(format!("The archive's member {name:?} leads out of the folder that it is unpacked in"));
    }
    Ok(parts.collect::<Vec<_>>().join("/"))
}

/// Checks that all members stay within the folder that they are unpacked in: none leads out by its name, none lies
/// beneath a link of the same archive, and each hard link is of a member.
///
/// # Errors
/// Which of them does not.
pub(crate) fn check(members: &[Member]) -> Result<(), String> {
    let paths = members.iter().map(|member| inside(&member.name)).collect::<Result<Vec<_>, _>>()?;
    let links: std::collections::BTreeSet<&str> = members
        .iter()
        .zip(&paths)
        .filter(|(member, _)| matches!(member.kind, Kind::Link(_)))
        .map(|(_, path)| path.as_str())
        .collect();
    for (member, path) in members.iter().zip(&paths) {
        let mut around = path.as_str();
        while let Some((parent, _)) = around.rsplit_once('/') {
            if links.contains(parent) {
                return Err(format!(
                    "The archive's member {:?} lies beneath the archive's link {parent:?}",
                    member.name
                ));
            }
            around = parent;
        }
        match &member.kind {
            Kind::HardLink(target) => {
                let target = inside(target)?;
                let mut around = Some(target.as_str());
                while let Some(path) = around {
                    if links.contains(path) && path != target {
                        return Err(format!("The archive's member {:?} is a hard link through a link", member.name));
                    }
                    around = path.rsplit_once('/').map(|(parent, _)| parent);
                }
            }
            Kind::Special => {
                return Err(format!(
                    "The archive's member {:?} is a device or a pipe, which is not unpacked",
                    member.name
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, kind: Kind) -> Member {
        let stored_name = if kind == Kind::Directory { format!("{name}/") } else { name.to_owned() };
        Member { name: name.into(), stored_name, kind, mode: None, owner: None, mtime: None }
    }

    #[test]
    fn members_that_lead_out_are_refused() {
        for (name, path) in [("a/b", Some("a/b")), ("./a//b/.", Some("a/b")), (".", Some("")), ("..a", Some("..a"))] {
            assert_eq!(inside(name).ok().as_deref(), path, "{name}");
        }
        for name in ["/etc/passwd", "../a", "a/../../b", "a/..", "a\0b"] {
            assert!(inside(name).is_err(), "{name}");
        }
        let link = |target: &str| Kind::Link(target.into());
        let good =
            [member("a", Kind::Directory), member("a/l", link("/etc")), member("b", Kind::HardLink("a/f".into()))];
        assert_eq!(check(&good), Ok(()));
        for bad in [
            vec![member("l", link("/etc")), member("l/passwd", Kind::File)],
            vec![member("l/passwd", Kind::File), member("./l", link("/etc"))],
            vec![member("b", Kind::HardLink("../../etc/shadow".into()))],
            vec![member("l", link("/etc")), member("b", Kind::HardLink("l/shadow".into()))],
            vec![member("pipe", Kind::Special)],
            vec![member("../x", Kind::File)],
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn contents_are_told_apart_as_salt_does() {
        let members = [
            member("top", Kind::Directory),
            member("top/a", Kind::File),
            member("top/b", Kind::Link("a".into())),
            member("other", Kind::File),
        ];
        let mut contents = Contents::of_tar(&members);
        assert_eq!(
            (contents.top_level_dirs(), contents.top_level_files()),
            (vec!["top/".into()], vec!["other".into()])
        );
        contents.strip(1);
        assert_eq!(contents, Contents { dirs: vec![], files: vec!["a".into()], links: vec!["b".into()] });
        let zip = Contents::of_zip(&[member("x/y/a", Kind::File), member("x/b", Kind::File)]);
        assert_eq!(zip.dirs, ["x/", "x/y/"]);
        assert_eq!(zip.top_level_dirs(), ["x/"]);
        let jdk = Contents::of_tar(&[member("jdk/bin/java", Kind::File), member("jdk/lib/x", Kind::File)]);
        assert_eq!(jdk.top_level_dirs(), ["jdk/"]);
        assert!(Contents::of_tar(&[]).top_level_dirs().is_empty());
    }
}
