//! The names of this host.

use crate::text_file::read_text;

/// Upper bound on the bytes of `/etc/hosts`.
const MAX_BYTES: u64 = 1024 * 1024;

/// The names of this host.
pub(crate) struct HostNames {
    /// The kernel's name of the host.
    pub(crate) host_name: String,
    /// The name with its domain if the hosts file has it, else the same name.
    pub(crate) fqdn: String,
}

pub(crate) fn host_names() -> HostNames {
    let system = rustix::system::uname();
    let host_name = system.nodename().to_str().ok().filter(|name| !name.is_empty()).unwrap_or("localhost").to_owned();
    let hosts = read_text("/etc/hosts", MAX_BYTES).unwrap_or_default();
    let fqdn = find_fqdn(&host_name, &hosts);
    HostNames { host_name, fqdn }
}

/// The canonical name of `host`: the first name on its line of the hosts file, if that is a full name.
fn find_fqdn(host: &str, hosts: &str) -> String {
    if host.contains('.') {
        return host.to_owned();
    }
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().skip(1);
        let Some(first) = words.next() else { continue };
        let named = first == host || first.split('.').next() == Some(host) || words.any(|w| w == host);
        if named && first.contains('.') && !first.starts_with("localhost") {
            return first.to_owned();
        }
    }
    host.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_name_comes_from_the_hosts_file() {
        let hosts =
            "127.0.0.1 localhost\n127.0.1.1 web1.example.org web1 # us\n::1 localhost6.localdomain6 localhost6\n";
        for (host, expected) in
            [("web1", "web1.example.org"), ("web2", "web2"), ("a.b", "a.b"), ("localhost", "localhost")]
        {
            assert_eq!(find_fqdn(host, hosts), expected);
        }
        assert_eq!(find_fqdn("web1", "#\n127.0.0.1\n\u{0}"), "web1");
    }
}
