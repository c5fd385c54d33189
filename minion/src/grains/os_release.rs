//! Grains of the operating system, from `/etc/os-release`, under the names Salt gives systems.

use super::map::Grains;
use crate::text_file::read_text;
use brine_protocol::value::Value;

const MAX_BYTES: u64 = 64 * 1024;

pub(super) fn collect(grains: &mut Grains) {
    let text = read_text("/etc/os-release", MAX_BYTES).or_else(|| read_text("/usr/lib/os-release", MAX_BYTES));
    describe(&text.unwrap_or_default(), grains);
}

/// `ID` in os-release, Salt's `os`, Salt's `os_family`.
const SYSTEMS: &[(&str, &str, &str)] = &[
    ("debian", "Debian", "Debian"),
    ("ubuntu", "Ubuntu", "Debian"),
    ("raspbian", "Raspbian", "Debian"),
    ("linuxmint", "Mint", "Debian"),
    ("pop", "Pop", "Debian"),
    ("kali", "Kali", "Debian"),
    ("devuan", "Devuan", "Debian"),
    ("neon", "neon", "Debian"),
    ("elementary", "elementary", "Debian"),
    ("fedora", "Fedora", "RedHat"),
    ("rhel", "RedHat", "RedHat"),
    ("centos", "CentOS", "RedHat"),
    ("rocky", "Rocky", "RedHat"),
    ("almalinux", "AlmaLinux", "RedHat"),
    ("amzn", "Amazon", "RedHat"),
    ("ol", "OEL", "RedHat"),
    ("photon", "VMware Photon OS", "RedHat"),
    ("openEuler", "openEuler", "RedHat"),
    ("sles", "SUSE", "Suse"),
    ("sled", "SUSE", "Suse"),
    ("opensuse-leap", "SUSE", "Suse"),
    ("opensuse-tumbleweed", "SUSE", "Suse"),
    ("arch", "Arch", "Arch"),
    ("archarm", "Arch ARM", "Arch"),
    ("manjaro", "Manjaro", "Arch"),
    ("endeavouros", "EndeavourOS", "Arch"),
    ("alpine", "Alpine", "Alpine"),
    ("gentoo", "Gentoo", "Gentoo"),
    ("void", "Void", "Void"),
    ("slackware", "Slackware", "Slackware"),
    ("nixos", "NixOS", "NixOS"),
];

fn describe(text: &str, grains: &mut Grains) {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))
            .map(unquote)
            .filter(|v| !v.is_empty())
    };
    let id = field("ID").unwrap_or_else(|| "linux".to_owned());
    let full = field("NAME").unwrap_or_else(|| "Linux".to_owned());
    let release = field("VERSION_ID").unwrap_or_default();

    let known = SYSTEMS.iter().find(|(known, ..)| *known == id);
    let os = known.map_or(full.as_str(), |(_, os, _)| *os);
    let family = match known {
        Some((_, _, family)) => (*family).to_owned(),
        None => family_of_kin(field("ID_LIKE").as_deref(), os),
    };
    grains.text("os", os);
    grains.text("os_family", &family);
    grains.text("osfullname", &full);
    grains.text("osrelease", &release);
    let codename = field("VERSION_CODENAME").or_else(|| codename_in_version(&field("VERSION")?)).unwrap_or_default();
    grains.text("oscodename", &codename);
    grains.text("lsb_distrib_id", &full);
    grains.text("lsb_distrib_release", &release);
    grains.text("lsb_distrib_codename", &codename);

    let parts: Vec<Value> = release
        .split('.')
        .filter(|p| !p.is_empty())
        .map(|p| p.parse::<u64>().map_or_else(|_| Value::from(p), Value::from))
        .collect();
    let named = if matches!(os, "Debian" | "Raspbian") { os } else { &full };
    if let Some(major) = parts.first().cloned() {
        let finger_release =
            if named == "Ubuntu" { release.clone() } else { release.split('.').next().unwrap_or("").to_owned() };
        grains.text("osfinger", &format!("{named}-{finger_release}"));
        grains.set("osmajorrelease", major);
    }
    grains.set("osrelease_info", Value::Array(parts));
}

/// The family of a system that is not in the table: the family of the first known system in `ID_LIKE`, else the system's own name.
fn family_of_kin(like: Option<&str>, os: &str) -> String {
    like.and_then(|like| {
        like.split_whitespace()
            .find_map(|id| SYSTEMS.iter().find(|(known, ..)| *known == id).map(|(_, _, f)| (*f).to_owned()))
    })
    .unwrap_or_else(|| os.to_owned())
}

/// `12 (bookworm)` → `bookworm`.
fn codename_in_version(version: &str) -> Option<String> {
    let open = version.find('(')?;
    let close = version[open..].find(')')? + open;
    Some(version[open + 1..close].to_owned())
}

/// The value of an assignment in os-release. Quotes are removed, and a backslash within them escapes.
fn unquote(raw: &str) -> String {
    let raw = raw.trim();
    let quoted =
        raw.len() >= 2 && matches!((raw.as_bytes()[0], raw.as_bytes()[raw.len() - 1]), (b'"', b'"') | (b'\'', b'\''));
    let inner = if quoted { &raw[1..raw.len() - 1] } else { raw };
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_get_salts_names() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\nVERSION=\"12 (bookworm)\"";
        let ubuntu = "NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble";
        let rocky = "NAME=\"Rocky Linux\"\nVERSION_ID=\"9.4\"\nID=\"rocky\"";
        let kin = "NAME=\"Some Linux\"\nID=some\nID_LIKE=\"rhel fedora\"\nVERSION_ID=3";
        for (text, os, family, finger, codename) in [
            (debian, "Debian", "Debian", Some("Debian-12"), "bookworm"),
            (ubuntu, "Ubuntu", "Debian", Some("Ubuntu-24.04"), "noble"),
            (rocky, "Rocky", "RedHat", Some("Rocky Linux-9"), ""),
            (kin, "Some Linux", "RedHat", Some("Some Linux-3"), ""),
            ("", "Linux", "Linux", None, ""),
        ] {
            let mut grains = Grains::default();
            describe(text, &mut grains);
            assert_eq!(grains.get_text("os"), Some(os));
            assert_eq!(grains.get_text("os_family"), Some(family));
            assert_eq!(grains.get_text("osfinger"), finger);
            assert_eq!(grains.get_text("oscodename"), Some(codename));
        }
    }

    #[test]
    fn hostile_text_is_only_text() {
        for text in ["ID=\"", "ID=\\", "VERSION=)(", "NAME='\u{0}'", "VERSION_ID=....", "=\n==\n"] {
            describe(text, &mut Grains::default());
        }
        assert_eq!(unquote(r#""a\"b""#), "a\"b");
        assert_eq!(unquote("\""), "\"");
    }
}
