//! Another name for this host: now, in `/etc/hosts`, and for the next start.

use brine_guest::Value;
use brine_guest::changes::{self, Put};
use brine_guest::host::grains;
use brine_guest::program::{self, Program};

const HOSTS: &str = "/etc/hosts";
/// Debian's file of the name.
const NAME: &str = "/etc/hostname";
/// Red Hat's.
const NETWORK: &str = "/etc/sysconfig/network";
/// Upper bound on the bytes of a name (RFC 1035).
const MAX_NAME: usize = 253;

/// Returns false if the host did not take the name.
pub(crate) fn set(hostname: &Value) -> Result<bool, String> {
    if *hostname == Value::None {
        return Ok(false);
    }
    let name = hostname.to_text();
    if !is_name(&name) {
        return Err(format!("{name:?} is no name for a host"));
    }
    let old = if program::exists("hostnamectl")? {
        let old = match Program::new(["hostnamectl", "status"]).run()? {
            done if done.succeeded() => static_name(&done.stdout),
            _ => None,
        };
        if !Program::new(["hostnamectl", "set-hostname", name.as_str()]).run()?.succeeded() {
            return Ok(false);
        }
        old.unwrap_or_else(|| grain("localhost"))
    } else {
        Program::new(["hostname", name.as_str()]).run()?.ok()?;
        grain("fqdn")
    };
    replace(HOSTS, |text| hosts(text, &old, &name))?;
    match grain("os_family").as_str() {
        "RedHat" => replace(NETWORK, |text| network(text, &name))?,
        "Debian" => _ = Put::new(NAME).text(&format!("{name}\n"))?,
        _ => {}
    }
    Ok(true)
}

fn grain(name: &str) -> String {
    grains::get(name, None).and_then(|value| value.value().ok()).map(|value| value.to_text()).unwrap_or_default()
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !label.is_empty() && !label.starts_with('-') && label.chars().all(is_inside)
    };
    name.len() <= MAX_NAME && name.split('.').all(is_label)
}

/// What `hostnamectl status` says of the name.
fn static_name(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("Static hostname"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Edits a file, if it is there and its text changes; not if it is another one by now.
fn replace(path: &str, edit: impl Fn(&str) -> String) -> Result<(), String> {
    let Some(old) = changes::read_text(path)? else { return Ok(()) };
    let new = edit(&old);
    if new != old {
        Put::new(path).instead_of(Some(old.as_bytes())).text(&new)?;
    }
    Ok(())
}

/// `/etc/hosts` with the new name in the place of the old one. Other lines stay as they are.
fn hosts(text: &str, old: &str, new: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        match words.iter().position(|word| *word == old) {
            Some(at) if !old.is_empty() && !line.trim_start().starts_with('#') => {
                words[at] = new;
                words.join("\t") + "\n"
            }
            _ => line.to_owned(),
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// The same for Red Hat's file, with the quotes that are there.
fn network(text: &str, new: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some((key, value)) if key.starts_with("HOSTNAME") => {
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'')).map(String::from).unwrap_or_default();
            format!("HOSTNAME={quote}{new}{quote}\n")
        }
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["web1", "web1.example.com", "a_b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "a b", "a\nb", "a..b", "a/b", "--static", "é", &"a".repeat(254)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn files_have_the_new_name() {
        let text = "127.0.0.1 localhost\n127.0.1.1   old.example old\n# old\n192.0.2.1 older";
        let expect = "127.0.0.1 localhost\n127.0.1.1\told.example\tnew\n# old\n192.0.2.1 older";
        assert_eq!(hosts(text, "old", "new"), expect);
        assert_eq!(hosts(text, "", "new"), text);
        assert_eq!(network("A=b\nHOSTNAME=\"old\"\n", "new"), "A=b\nHOSTNAME=\"new\"\n");
        assert_eq!(network("HOSTNAME=old\n", "new"), "HOSTNAME=new\n");
        assert_eq!(static_name(" Static hostname: old\n Icon name: x\n").as_deref(), Some("old"));
    }
}
