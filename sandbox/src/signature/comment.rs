//! The trusted comment of a signature, which is signed too: `timestamp:1633700835<TAB>file:deploy.wasm<TAB>hashed`, as minisign
//! itself writes it. An author may have written anything else there.

/// What of it is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comment {
    /// When it was signed, in seconds since 1970.
    pub(super) time: Option<u64>,
    /// The names that the signed file had.
    pub(super) files: Vec<String>,
}

impl Comment {
    pub(super) fn read(text: &str) -> Self {
        let mut comment = Self::default();
        for field in text.split('\t') {
            match field.split_once(':') {
                Some(("timestamp", time)) => comment.time = comment.time.or(time.parse().ok()),
                Some(("file", file)) => comment.files.push(file.to_owned()),
                _ => {}
            }
        }
        comment
    }

    /// A name that was signed and is not this one, as it can be shown.
    pub(super) fn other_than(&self, file: &str) -> Option<String> {
        const SHOWN: usize = 80;
        let other = self.files.iter().find(|signed| *signed != file)?;
        Some(brine_text::short(other, SHOWN))
    }
}
