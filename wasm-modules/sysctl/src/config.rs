//! A file of kernel parameters: `NAME = VALUE`.

/// The start of a new file.
pub(crate) const HEADER: &str = "#\n# Kernel sysctl configuration\n#\n";

/// A parameter's value as it is compared: white space is one tab.
pub(crate) fn plain(value: &str) -> String {
    value.split(char::is_whitespace).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\t")
}

/// The parameters of a file.
pub(crate) fn parameters(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().map(str::trim).filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        Some((name.trim_end(), value.trim_start()))
    })
}

/// What a file says of a parameter that is to be set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has the value.
    Same,
    /// The text that the file is to have.
    Other(String),
}

/// Compares a file with a parameter that is to be set.
pub(crate) fn set(text: &str, name: &str, value: &str) -> Found {
    let mut new = String::new();
    let mut is_there = false;
    for line in text.split_inclusive('\n') {
        let known = line.split_once('=').map(|(known, old)| (known.trim(), old.trim()));
        match known.filter(|(known, _)| *known == name && !known.starts_with('#')) {
            Some((_, old)) if plain(old) == plain(value) => return Found::Same,
            Some(_) => {
                new.push_str(&format!("{name} = {value}\n"));
                is_there = true;
            }
            None => new.push_str(line),
        }
    }
    if !is_there {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&format!("{name} = {value}\n"));
    }
    Found::Other(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from `sysctl.persist` and `sysctl.show` of Salt 3008.3.
    #[test]
    fn parameters_are_set_as_salt_does() {
        let text = "# kernel\n#a = 1\nb=2\n c  =  3  4\n";
        assert_eq!(parameters(text).collect::<Vec<_>>(), [("b", "2"), ("c", "3  4")]);
        assert_eq!(set(text, "b", "2"), Found::Same);
        assert_eq!(set(text, "c", "3\t4"), Found::Same);
        assert_eq!(set(text, "b", "5"), Found::Other("# kernel\n#a = 1\nb = 5\n c  =  3  4\n".into()));
        assert_eq!(set(text, "a", "1"), Found::Other(format!("{text}a = 1\n")));
        assert_eq!(set("x=1", "a", "1"), Found::Other("x=1\na = 1\n".into()));
    }
}
