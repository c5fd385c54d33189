//! `source_hash`: the hash that a source has to have, said in the state or found in a file of hashes.

use brine_guest::Value;
use brine_guest::hash::KINDS;
use brine_guest::url::redacted;

use super::source::{Place, scheme};
use super::{Trouble, body};

/// A hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) kind: String,
    /// In lower case, but for what is searched for in a list.
    pub(crate) hex: String,
}

impl Sum {
    pub(crate) fn sha256(hex: String) -> Self {
        Self { kind: "sha256".into(), hex }
    }

    pub(crate) fn value(&self) -> Value {
        Value::dict([("hsum", self.hex.as_str().into()), ("hash_type", self.kind.as_str().into())])
    }
}

fn kind_of(length: usize) -> Option<&'static str> {
    KINDS.iter().find(|(_, len)| *len == length).map(|(kind, _)| *kind)
}

fn invalid(source_hash: &str) -> String {
    let lengths: Vec<String> = KINDS.iter().map(|(kind, length)| format!("{kind} ({length})")).collect();
    format!(
        "Source hash {} format is invalid. The supported formats are: 1) a hash, 2) an expression in the format \
         <hash_type>=<hash>, or 3) either a path to a local file containing hashes, or a URI of a remote hash file. \
         Supported protocols for remote hash files are: salt, file, http, https, ftp, swift, s3. The hash may also not be \
         of a valid length, the following are supported hash types and lengths: {}.",
        redacted(source_hash),
        lengths.join(", ")
    )
}

/// Salt's `file.get_source_sum`. What cannot be fetched raises an exception.
pub(crate) fn of(
    name: &str,
    source: &str,
    source_hash: &Value,
    source_hash_name: Option<&str>,
    saltenv: &str,
) -> Result<Sum, Trouble> {
    let source_hash = source_hash.to_text();
    let is_file = source_hash.starts_with('/') || !scheme(&source_hash).is_empty();
    if is_file {
        let place = Place::of(&source_hash, saltenv);
        let list = body::load(&place).map_err(Trouble::Raised)?;
        let found = match list {
            Some(list) => {
                let found = search(&String::from_utf8_lossy(&list), None, name, source, source_hash_name);
                found.map(|sum| Sum { hex: sum.hex.to_ascii_lowercase(), ..sum })
            }
            None => return Err(Trouble::Failed(format!("Source hash file {} not found", redacted(&source_hash)))),
        };
        return found.ok_or_else(|| Trouble::Failed(invalid(&source_hash)));
    }
    said(&source_hash).map_err(Trouble::Failed)
}

/// A hash that the state itself says.
fn said(source_hash: &str) -> Result<Sum, String> {
    if let Some((kind, hex)) = source_hash.split_once('=') {
        return checked(kind.trim(), hex.trim(), source_hash);
    }
    if source_hash.contains(':') || !is_hex(source_hash) {
        return Err(invalid(source_hash));
    }
    let kind = kind_of(source_hash.len()).ok_or_else(|| invalid(source_hash))?;
    checked(kind, source_hash, source_hash)
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn checked(kind: &str, hex: &str, said: &str) -> Result<Sum, String> {
    let Some((_, length)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        return Err(format!(
            "Invalid hash type '{kind}'. Supported hash types are: {}. Either remove the hash type and simply use '{hex}' as \
             the source_hash, or change the hash type to a supported type.",
            kinds.join(", ")
        ));
    };
    match kind_of(hex.len()) {
        None => Err(invalid(said)),
        Some(_) if hex.len() == *length => Ok(Sum { kind: kind.into(), hex: hex.to_ascii_lowercase() }),
        Some(other) => Err(format!(
            "Invalid length ({}) for hash type '{kind}'. Either remove the hash type and simply use '{hex}' as the \
             source_hash, or change the hash type to '{other}'",
            hex.len()
        )),
    }
}

/// Salt's `file.extract_hash`: as [`search`], of hashes of a kind, or of all if that is no known one.
pub(crate) fn extract(list: &str, kind: &str, name: &str, source: &str, source_hash_name: Option<&str>) -> Option<Sum> {
    let length = KINDS.iter().find(|(known, _)| *known == kind).map(|(_, length)| *length);
    search(list, length, name, source, source_hash_name)
}

/// The hash in a list of hashes, as it is written there: of the line that names `source_hash_name`, the file or the source;
/// else the first. With `length`, hashes of that length alone.
fn search(list: &str, length: Option<usize>, name: &str, source: &str, source_hash_name: Option<&str>) -> Option<Sum> {
    let (mut first, mut by_hash_name, mut by_name, mut by_source) = (None, None, None, None);
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let source_path = source.split(['?', '#']).next().unwrap_or_default();
    let separator = |c: char| c.is_ascii_whitespace() || matches!(c, '\\' | '/' | '*');
    for line in list.lines().map(str::trim) {
        let Some(sum) = hash_in(line, length) else { continue };
        first.get_or_insert_with(|| sum.clone());
        if let Some(wanted) = source_hash_name.filter(|wanted| !wanted.is_empty())
            && (ends(line, wanted, |c| c.is_ascii_whitespace()) || begins(line, wanted))
        {
            by_hash_name.get_or_insert_with(|| sum.clone());
        }
        if !name.is_empty() && (ends(line, &last(name), separator) || begins(line, name)) {
            by_name.get_or_insert_with(|| sum.clone());
        }
        if !source.is_empty() && (ends(line, &last(source_path), separator) || begins(line, source)) {
            by_source.get_or_insert(sum);
        }
    }
    by_hash_name.or(by_name).or(by_source).or(first)
}

fn ends(line: &str, name: &str, separator: impl Fn(char) -> bool) -> bool {
    line.strip_suffix(name).and_then(|before| before.chars().next_back()).is_some_and(separator)
}

fn begins(line: &str, name: &str) -> bool {
    line.strip_prefix(name).and_then(|after| after.chars().next()).is_some_and(char::is_whitespace)
}

/// The first run of hexadecimal digits in a line that is as long as a hash, between characters that are neither letters
/// nor digits.
fn hash_in(line: &str, length: Option<usize>) -> Option<Sum> {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    let fits = |word: &str| match length {
        Some(length) => word.len() == length,
        None => (32..=128).contains(&word.len()),
    };
    let word = words.find(|word| fits(word) && is_hex(word))?;
    Some(Sum { kind: kind_of(word.len())?.into(), hex: word.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(source_hash: &str) -> Result<Sum, String> {
        of("/n", "http://h/s", &source_hash.into(), None, "base").map_err(Trouble::text)
    }

    #[test]
    fn hashes_have_a_kind_and_its_length() {
        let md5 = "D41D8CD98F00B204E9800998ECF8427E";
        let sum = Sum { kind: "md5".into(), hex: md5.to_ascii_lowercase() };
        assert_eq!(hash(md5), Ok(sum.clone()));
        assert_eq!(hash(&format!("md5={md5}")), Ok(sum));
        assert!(hash(&format!("sha1={md5}")).unwrap_err().starts_with("Invalid length (32) for hash type 'sha1'."));
        assert!(hash(&format!("crc={md5}")).unwrap_err().starts_with("Invalid hash type 'crc'."));
        for odd in ["", "abc", "md5=abc", "gopher:x", "zz"] {
            assert!(hash(odd).unwrap_err().contains("format is invalid"), "{odd}");
        }
    }

    #[test]
    fn a_list_of_hashes_is_searched_by_name() {
        let (a, b, c) = ("a".repeat(64), "b".repeat(64), "c".repeat(40));
        let list = format!("# hashes\n{a}  other.tgz\n{b} *dir/app.tgz\napp.conf {c}\n");
        let hex = |name: &str, source: &str, hash_name| search(&list, None, name, source, hash_name).map(|sum| sum.hex);
        assert_eq!(hex("/srv/x", "http://h/app.tgz?x=1", None).as_deref(), Some(&*b));
        assert_eq!(hex("/srv/other.tgz", "http://h/app.tgz", None).as_deref(), Some(&*a));
        assert_eq!(hex("/srv/x", "http://h/app.tgz", Some("app.conf")).as_deref(), Some(&*c));
        assert_eq!(hex("/srv/x", "http://h/y", None).as_deref(), Some(&*a));
        assert_eq!(search("nothing", None, "a", "b", None), None);
    }

    #[test]
    fn hashes_of_a_kind_are_extracted_as_they_are_written() {
        let (long, short) = ("A".repeat(64), "c".repeat(40));
        let list = format!("{long}  x\n{short}  x\n");
        let found = |kind: &str| extract(&list, kind, "/srv/x", "", None).map(|sum| (sum.kind, sum.hex));
        assert_eq!(found("sha1"), Some(("sha1".to_owned(), short)));
        for kind in ["sha256", "", "crc32"] {
            assert_eq!(found(kind), Some(("sha256".to_owned(), long.clone())), "{kind}");
        }
        assert_eq!(found("md5"), None);
    }
}
