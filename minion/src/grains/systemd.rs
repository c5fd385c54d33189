//! The grain `systemd`: its version and what it was built with, as `systemctl --version` says. Both are read from its
//! library, because the minion starts no programs by itself.

use std::path::{Path, PathBuf};

use brine_protocol::value::map;

use super::map::Grains;

/// The library has some 4 MiB.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The first of the features, with or without it.
const FIRST: &[u8] = b"PAM ";
/// Longest list of features.
const FEATURES_MAX: usize = 4096;

pub(super) fn collect(grains: &mut Grains) {
    if !["/usr/bin/systemctl", "/bin/systemctl"].iter().any(|path| Path::new(path).exists()) {
        return;
    }
    let Some((path, version)) = library() else { return };
    let content = || {
        use std::io::Read as _;
        let mut content = Vec::new();
        std::fs::File::open(&path)?.take(MAX_BYTES).read_to_end(&mut content)?;
        std::io::Result::Ok(content)
    };
    let features = content().ok().and_then(|content| features(&content)).unwrap_or_default();
    grains.set("systemd", map([("version", version), ("features", features)]));
}

/// Finds `libsystemd-shared-VERSION.so`, below the folder of this architecture on Debian.
fn library() -> Option<(PathBuf, String)> {
    let machine = std::env::consts::ARCH;
    let folders = [format!("/usr/lib/{machine}-linux-gnu/systemd"), "/usr/lib/systemd".into(), "/lib/systemd".into()];
    folders.iter().find_map(|folder| {
        Path::new(folder).read_dir().ok()?.flatten().take(FEATURES_MAX).find_map(|entry| {
            let version = version(entry.file_name().to_str()?)?;
            Some((entry.path(), version))
        })
    })
}

/// `libsystemd-shared-256.4-1.fc41.so` is of 256.
fn version(name: &str) -> Option<String> {
    let rest = name.strip_prefix("libsystemd-shared-")?.strip_suffix(".so")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// Finds the text that begins with `+PAM ` or `-PAM `.
fn features(content: &[u8]) -> Option<String> {
    for at in memchr::memmem::find_iter(content, FIRST) {
        let Some(start) = at.checked_sub(1).filter(|start| matches!(content[*start], b'+' | b'-')) else { continue };
        let text: Vec<u8> = content[start..]
            .iter()
            .copied()
            .take(FEATURES_MAX)
            .take_while(|byte| matches!(byte, b' '..=b'~'))
            .collect();
        return String::from_utf8(text).ok();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_versions() {
        assert_eq!(version("libsystemd-shared-252.so").as_deref(), Some("252"));
        assert_eq!(version("libsystemd-shared-256.4-1.fc41.so").as_deref(), Some("256"));
        assert_eq!(version("libsystemd-shared-.so"), None);
        assert_eq!(version("libsystemd-core-252.so"), None);
    }

    #[test]
    fn features_are_one_text() {
        assert_eq!(features(b"xPAM y\0\0+PAM +AUDIT default\0z").as_deref(), Some("+PAM +AUDIT default"));
        assert_eq!(features(b"PAM "), None);
    }
}
