//! The branch of the remote repository that a local branch follows.

/// Which one it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Upstream {
    /// Whatever it is.
    Any,
    None,
    Is(String),
}

/// What has to be done for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Options of `git branch`; none where a checkout does it.
    pub(super) options: Option<Vec<String>>,
    verb: &'static str,
    to: Option<String>,
}

impl Change {
    /// Compares. `is_new` says that the branch is one that a checkout makes.
    pub(super) fn of(now: Option<&str>, wanted: &Upstream, is_new: bool) -> Option<Self> {
        let now = now.filter(|now| !now.is_empty());
        let (verb, to) = match (now, wanted) {
            (None, Upstream::Is(to)) => ("set", Some(to.clone())),
            (Some(_), Upstream::None) => ("unset", None),
            (Some(now), Upstream::Is(to)) if now != to => ("updated", Some(to.clone())),
            _ => return None,
        };
        let options = match &to {
            Some(_) if is_new => None,
            Some(to) => Some(vec!["--set-upstream-to".into(), to.clone()]),
            None => Some(vec!["--unset-upstream".into()]),
        };
        Some(Self { options, verb, to })
    }

    /// A sentence; `when` is `was` or `would be`.
    pub(super) fn said(&self, when: &str) -> String {
        let to = self.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        format!("Tracking branch {when} {}{to}", self.verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_difference_is_changed() {
        let to = |to: &str| Upstream::Is(to.into());
        let said = |now, wanted: &Upstream| Change::of(now, wanted, false).map(|change| change.said("was"));
        assert_eq!(said(None, &to("o/a")), Some("Tracking branch was set to o/a".into()));
        assert_eq!(said(Some("o/b"), &to("o/a")), Some("Tracking branch was updated to o/a".into()));
        assert_eq!(said(Some("o/b"), &Upstream::None), Some("Tracking branch was unset".into()));
        assert_eq!(said(Some("o/a"), &to("o/a")), None);
        assert_eq!(said(Some("o/a"), &Upstream::Any), None);
        assert_eq!(said(None, &Upstream::None), None);
        assert_eq!(Change::of(None, &to("o/a"), true).and_then(|change| change.options), None);
    }
}
