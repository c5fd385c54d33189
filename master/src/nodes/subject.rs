//! Which job or run an event is about.

use brine_protocol::ids::Jid;

/// What an event is about, by its tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A job: `salt/job/JID/…`.
    Job(Jid),
    /// A run of a runner: `salt/run/JID/…`.
    Run(Jid),
    /// A call of the wheel: `salt/wheel/JID/…`.
    Wheel(Jid),
    /// Anything else.
    Other,
}

impl Subject {
    /// Reads a tag, or the beginning of one.
    pub(super) fn of(tag: &str) -> Self {
        let mut parts = tag.split('/');
        let (Some("salt"), Some(kind), Some(jid)) = (parts.next(), parts.next(), parts.next()) else {
            return Self::Other;
        };
        match (kind, Jid::try_from(jid)) {
            ("job", Ok(jid)) => Self::Job(jid),
            ("run", Ok(jid)) => Self::Run(jid),
            ("wheel", Ok(jid)) => Self::Wheel(jid),
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_about_jobs() {
        let jid = || Jid::try_from("20261120134740245008").unwrap();
        assert_eq!(Subject::of("salt/job/20261120134740245008/ret/m1"), Subject::Job(jid()));
        assert_eq!(Subject::of("salt/job/20261120134740245008"), Subject::Job(jid()));
        assert_eq!(Subject::of("salt/run/20261120134740245008/new"), Subject::Run(jid()));
        assert_eq!(Subject::of("salt/wheel/20261120134740245008/ret"), Subject::Wheel(jid()));
        for other in ["salt/auth", "salt/job/error", "salt/job/nocache/ret/m", "xsalt/job/20261120134740245008", ""] {
            assert_eq!(Subject::of(other), Subject::Other, "{other}");
        }
    }
}
