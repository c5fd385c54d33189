//! Hosts files, as `dnsutil` reads and writes them: a line is an address and its names.

use brine_guest::Value;

/// What Python says of a line of blanks.
const NO_WORD: &str = "list index out of range";

fn lines(text: &str) -> impl Iterator<Item = Result<(&str, Vec<&str>), String>> {
    let meant = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    meant.map(|line| {
        let mut words = line.split_whitespace();
        Ok((words.next().ok_or(NO_WORD)?, words.collect()))
    })
}

/// The names of each address, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut all: Vec<(Value, Vec<Value>)> = Vec::new();
    for line in lines(text) {
        let (ip, names) = line?;
        let names = names.into_iter().map(Value::from);
        match all.iter_mut().find(|(known, _)| known.text() == Some(ip)) {
            Some((_, known)) => known.extend(names),
            None => all.push((ip.into(), names.collect())),
        }
    }
    Ok(Value::Dict(all.into_iter().map(|(ip, names)| (ip, Value::List(names))).collect()))
}

/// The names of one address.
pub(crate) fn names_of(text: &str, ip: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for line in lines(text) {
        let (other, names) = line?;
        if other == ip {
            all.extend(names.into_iter().map(str::to_owned));
        }
    }
    Ok(all)
}

/// The text without some names, and without the lines that have no name then.
pub(crate) fn without(text: &str, names: &[String]) -> String {
    let mut new = String::new();
    for line in text.lines() {
        if line.is_empty() || line.trim_start().starts_with('#') {
            new.push_str(line);
            new.push('\n');
            continue;
        }
        let mut words: Vec<&str> = line.split_whitespace().collect();
        for name in names {
            // As Salt: the first of equal names.
            if let Some(at) = words.iter().skip(1).position(|word| word == name) {
                words.remove(at + 1);
            }
        }
        if words.len() > 1 {
            new.push_str(&words.join(" "));
            new.push('\n');
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# hosts\n127.0.0.1 localhost\n\n10.0.0.1\tweb1 web\n10.0.0.1 www\n";

    #[test]
    fn addresses_have_all_their_names() {
        let list = |names: &[&'static str]| Value::List(names.iter().map(|name| Value::from(*name)).collect());
        let expected = [("127.0.0.1", list(&["localhost"])), ("10.0.0.1", list(&["web1", "web", "www"]))];
        assert_eq!(parse(FILE).unwrap(), Value::dict(expected));
        assert_eq!(names_of(FILE, "10.0.0.1").unwrap(), ["web1", "web", "www"]);
        assert!(parse("   \n").is_err());
    }

    #[test]
    fn names_go_and_comments_stay() {
        let gone = ["www".to_owned(), "web".to_owned()];
        assert_eq!(without(FILE, &gone), "# hosts\n127.0.0.1 localhost\n\n10.0.0.1 web1\n");
    }
}
