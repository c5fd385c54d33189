//! What the remote repository has of what is asked for.

use super::super::asked::is_hash;
use super::super::report::short;
use super::Wanted;
use super::upstream::Upstream;
use crate::repository::{Refs, hash_of};

/// What a name of the remote repository is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Branch,
    Tag,
    Hash,
}

/// The commit to have.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) has_head: bool,
    /// The branch that its HEAD is.
    pub(super) default_branch: Option<String>,
    pub(super) rev: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) upstream: Upstream,
    /// The commit for people.
    pub(super) location: String,
}

impl Remote {
    /// Finds the commit. A hash in `wanted` gets small letters.
    pub(super) fn new(refs: Refs, wanted: &mut Wanted) -> Self {
        let head = hash_of(&refs, "HEAD").map(str::to_owned);
        let branches = refs.iter().filter_map(|(name, hash)| Some((name.strip_prefix("refs/heads/")?, hash)));
        let default = branches.clone().find(|(_, hash)| Some(*hash) == head.as_ref()).map(|(name, _)| name.to_owned());
        let mut found = Self {
            has_head: head.is_some(),
            default_branch: default,
            rev: None,
            kind: None,
            upstream: Upstream::None,
            location: String::new(),
        };
        if wanted.bare {
            return found;
        }
        let rev = wanted.rev.clone();
        let of = |name: String| hash_of(&refs, &name).map(str::to_owned);
        if rev == "HEAD" {
            if head.is_some() {
                found.upstream = Upstream::Any;
                found.kind = Some(Kind::Hash);
            }
            found.rev = head;
        } else if let Some(hash) = of(format!("refs/heads/{rev}")) {
            found.upstream = Upstream::Is(format!("{}/{rev}", wanted.remote));
            (found.rev, found.kind) = (Some(hash), Some(Kind::Branch));
        } else if let Some(hash) = of(format!("refs/tags/{rev}^{{}}")).or_else(|| of(format!("refs/tags/{rev}"))) {
            (found.rev, found.kind) = (Some(hash), Some(Kind::Tag));
        } else if is_hash(&rev) {
            wanted.rev = rev.to_lowercase();
            (found.rev, found.kind) = (Some(wanted.rev.clone()), Some(Kind::Hash));
        }
        if let Some(hash) = found.rev.as_deref().map(short) {
            found.location = match (&found.upstream, found.kind) {
                (_, Some(Kind::Hash)) if wanted.rev == "HEAD" => format!("remote HEAD ({hash})"),
                (_, Some(Kind::Hash)) => hash.into(),
                (Upstream::Is(upstream), _) => format!("{upstream} ({hash})"),
                _ => format!("{rev} ({hash})"),
            };
        }
        found
    }

    /// Whether it is a branch or a tag.
    pub(super) fn is_named(&self) -> bool {
        matches!(self.kind, Some(Kind::Branch | Kind::Tag))
    }

    /// Whether a commit is the one to have, which may be the beginning of a hash.
    pub(super) fn is(&self, commit: Option<&str>) -> bool {
        match (commit, self.rev.as_deref()) {
            (Some(commit), Some(rev)) if self.kind == Some(Kind::Hash) => commit.starts_with(rev),
            (commit, rev) => commit == rev,
        }
    }

    /// The commit at the beginning of a sentence.
    pub(super) fn beginning(&self, rev: &str) -> String {
        // As Python's `capitalize`: what follows gets small letters.
        let lower = self.location.to_lowercase();
        match lower.strip_prefix('r') {
            Some(rest) if rev == "HEAD" => format!("R{rest}"),
            _ => self.location.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(rev: &str) -> Wanted {
        use super::super::super::asked::Reset;
        Wanted {
            name: "/srv/a.git".into(),
            target: "/srv/a".into(),
            rev: rev.into(),
            branch: None,
            git: crate::run::Git::default(),
            login: crate::repository::Login::default(),
            update_head: true,
            force_checkout: false,
            force_clone: false,
            force_fetch: false,
            force_reset: Reset::No,
            submodules: false,
            bare: false,
            mirror: false,
            remote: "origin".into(),
            refspecs: Vec::new(),
            sync_tags: true,
            depth: None,
        }
    }

    #[test]
    fn a_name_is_a_branch_before_it_is_a_tag() {
        let refs = || {
            [
                ("HEAD", "1111111111"),
                ("refs/heads/dev", "2222222222"),
                ("refs/heads/main", "1111111111"),
                ("refs/tags/dev", "3333333333"),
                ("refs/tags/v1", "4444444444"),
                ("refs/tags/v1^{}", "1111111111"),
            ]
            .map(|(name, hash)| (name.to_owned(), hash.to_owned()))
            .to_vec()
        };
        let of = |rev: &str| {
            let found = Remote::new(refs(), &mut wanted(rev));
            (found.rev.unwrap_or_default(), found.kind, found.location)
        };
        assert_eq!(of("HEAD"), ("1111111111".into(), Some(Kind::Hash), "remote HEAD (1111111)".into()));
        assert_eq!(of("dev"), ("2222222222".into(), Some(Kind::Branch), "origin/dev (2222222)".into()));
        assert_eq!(of("v1"), ("1111111111".into(), Some(Kind::Tag), "v1 (1111111)".into()));
        assert_eq!(of("ABC"), ("abc".into(), Some(Kind::Hash), "abc".into()));
        assert_eq!(of("none"), (String::new(), None, String::new()));
        let found = Remote::new(refs(), &mut wanted("HEAD"));
        assert_eq!(found.default_branch.as_deref(), Some("main"));
        assert_eq!(found.beginning("HEAD"), "Remote head (1111111)");
        assert!(found.is(Some("1111111111")) && !found.is(Some("2222222222")) && !found.is(None));
    }
}
