//! `options` of `archive.extracted` for tar: Salt gives them to the host's tar. Here they are few, and none runs a program.

/// What the options say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TarOptions {
    /// Names that are taken from the front of each path.
    pub strip: usize,
    /// Whether members keep their owner; by default they do.
    pub no_owner: bool,
}

/// Reads options.
///
/// # Errors
/// The option that is not known here.
pub(crate) fn read(options: &str) -> Result<TarOptions, String> {
    let mut read = TarOptions::default();
    let mut words = options.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
    let mut first = true;
    while let Some(word) = words.next() {
        let unknown = || Err(format!("The option '{word}' of tar is not known here"));
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        match name {
            "--strip" | "--strip-components" => {
                let value = value.or_else(|| words.next()).map(|value| value.trim_matches(['\'', '"']));
                match value.and_then(|value| value.parse().ok()) {
                    Some(strip) => read.strip = strip,
                    None => return unknown(),
                }
            }
            "--no-same-owner" => read.no_owner = true,
            "--same-owner" => read.no_owner = false,
            "--verbose"
            | "--gzip"
            | "--gunzip"
            | "--bzip2"
            | "--xz"
            | "--lzma"
            | "--extract"
            | "--overwrite"
            | "--preserve-permissions"
            | "--same-permissions"
            | "--auto-compress" => {}
            _ => {
                let letters = word.strip_prefix('-').or(first.then_some(word));
                let known = |letters: &str| letters.chars().all(|letter| "xvzjJapf".contains(letter));
                if !letters.is_some_and(|letters| !letters.is_empty() && known(letters)) {
                    return unknown();
                }
            }
        }
        first = false;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        for (options, strip) in [
            ("", 0),
            ("v", 0),
            ("zxf", 0),
            ("--strip-components=1", 1),
            ("--strip-components 2 -v", 2),
            ("--strip=3", 3),
            ("-z --strip-components='1'", 1),
            ("xvf --strip 1", 1),
        ] {
            assert_eq!(read(options).map(|read| read.strip), Ok(strip), "{options}");
        }
        assert!(read("--no-same-owner").unwrap().no_owner);
        for options in
            ["-I sh", "--to-command=sh", "--checkpoint-action=exec=sh", "-C /", "v file", "--strip", "-", "P"]
        {
            assert!(read(options).is_err(), "{options}");
        }
    }
}
