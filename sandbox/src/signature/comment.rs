//! The trusted comment of a signature, which the signature covers:
//! `timestamp:1633700835<TAB>file:deploy.wasm<TAB>hashed`, as minisign writes it. An author may have written anything
//! else there.

/// The fields that are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comment {
    /// Signing time in seconds since 1970.
    pub(super) time: Option<u64>,
    /// The names of the signed file.
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

    /// Returns a signed name that differs from `file`, in a printable form.
    pub(super) fn other_than(&self, file: &str) -> Option<String> {
        const SHOWN: usize = 80;
        let other = self.files.iter().find(|signed| *signed != file)?;
        Some(brine_text::short(other, SHOWN))
    }
}
