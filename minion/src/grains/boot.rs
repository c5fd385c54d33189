//! Grains of how the machine was started: the kernel's parameters, EFI.

use std::path::Path;

use brine_protocol::value::Value;

use super::map::Grains;
use crate::text_file::read_text;

/// The kernel keeps a few KiB of its command line.
const MAX_CMDLINE_BYTES: u64 = 64 * 1024;
/// An EFI variable's attributes (4 bytes) and the value of `SecureBoot` (1 byte), with room.
const MAX_VARIABLE_BYTES: usize = 64;

pub(super) fn collect(grains: &mut Grains) {
    if let Some(cmdline) = read_text("/proc/cmdline", MAX_CMDLINE_BYTES) {
        grains.set("kernelparams", Value::Array(kernel_params(&cmdline)));
    }
    let firmware = ["/sys/firmware/efi/efivars", "/sys/firmware/efi/vars"].map(Path::new);
    let variables = firmware.into_iter().find(|folder| folder.exists());
    grains.set("efi", Value::from(variables.is_some()));
    grains.set("efi-secure-boot", Value::from(variables.is_some_and(is_secure_boot)));
}

/// Pairs of name and value. A parameter without a value, or with a second `=`, has none, as in Salt.
fn kernel_params(cmdline: &str) -> Vec<Value> {
    let words = shlex::split(cmdline).unwrap_or_else(|| cmdline.split_whitespace().map(str::to_owned).collect());
    let pair = |word: &String| {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let value = value.filter(|value| !value.contains('=')).map(|value| value.trim_matches('"'));
        Value::Array(vec![Value::from(name), value.map_or(Value::Nil, Value::from)])
    };
    words.iter().map(pair).collect()
}

fn is_secure_boot(variables: &Path) -> bool {
    let Ok(entries) = variables.read_dir() else { return false };
    let named = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("SecureBoot-");
    let mut found = entries.flatten().filter(|entry| named(&entry.file_name())).map(|entry| entry.path());
    let (Some(mut path), None) = (found.next(), found.next()) else { return false };
    if path.is_dir() {
        path.push("data");
    }
    let read = || {
        use std::io::Read as _;
        let mut content = Vec::new();
        std::fs::File::open(&path)?.take(MAX_VARIABLE_BYTES as u64).read_to_end(&mut content)?;
        std::io::Result::Ok(content)
    };
    read().is_ok_and(|content| content.last() == Some(&1))
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::list;

    use super::*;

    #[test]
    fn parameters_are_pairs() {
        let pair = |name: &str, value: Option<&str>| list([Value::from(name), value.map_or(Value::Nil, Value::from)]);
        let params = kernel_params("quiet console=ttyS0,115200 root=UUID=ab \"spaced=a b\" empty=\n");
        let expected = [
            pair("quiet", None),
            pair("console", Some("ttyS0,115200")),
            pair("root", None),
            pair("spaced", Some("a b")),
            pair("empty", Some("")),
        ];
        assert_eq!(params, expected);
        assert_eq!(kernel_params("a='b").len(), 1, "an open quote is only text");
    }

    #[test]
    fn secure_boot_is_the_last_byte() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_secure_boot(folder.path()));
        let variable = folder.path().join("SecureBoot-8be4df61");
        for (content, yes) in [(&[6, 0, 0, 0, 1][..], true), (&[6, 0, 0, 0, 0], false), (&[], false)] {
            std::fs::write(&variable, content).unwrap();
            assert_eq!(is_secure_boot(folder.path()), yes, "{content:?}");
        }
    }
}
