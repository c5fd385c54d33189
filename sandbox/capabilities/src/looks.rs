//! Programs that only look: in plan mode (a job with `test=True`) these run, and no others do.
//!
//! A look is one command line, word by word: `/usr/bin/systemctl is-active *`. Its wildcards stand for names, because one
//! argument can make a program that looks one that changes: `sysctl -n NAME=VALUE` writes, `systemctl --host=H is-active`
//! connects, `service ../../srv/x status` runs a file that is no init script.
//!
//! - `*` and `?` stand for characters other than `/` and `=`. A word that begins with one of them stands for no option:
//!   nothing that begins with `-`, unless `--` stands before it.
//! - `**` in a word stands for any characters: `/**` is an absolute path.
//! - `**` as the last word stands for any further arguments, options too. Looks of standard modules have it after `--`, or
//!   with what it does not stand for.
//! - `!WORD` before that last `**`: no further argument may be like WORD. `iptables -C * !--modp** **` takes any option but these.

use std::fmt;

use crate::names::{MAX_NAME, glob, is_glob};

/// Command lines that standard modules come with. They grant nothing: the program still has to be granted.
const STANDARD: &[(&str, &[&str])] = &[
    ("debconf", &["/usr/bin/debconf-get-selections"]),
    // What looks at a repository is a probe, because git may run what the repository's configuration names. Behind `--`, no
    // word is an option.
    (
        "git",
        &[
            "/usr/local/bin/git --version",
            "/usr/local/bin/git ls-remote -- **",
            "/usr/local/bin/git ls-remote --heads -- **",
            "/usr/local/bin/git ls-remote --tags -- **",
            "/usr/local/bin/git config --global --get-all -- **",
            "/usr/local/bin/git config --global --get-regexp -- **",
            "/usr/bin/git --version",
            "/usr/bin/git ls-remote -- **",
            "/usr/bin/git ls-remote --heads -- **",
            "/usr/bin/git ls-remote --tags -- **",
            "/usr/bin/git config --global --get-all -- **",
            "/usr/bin/git config --global --get-regexp -- **",
        ],
    ),
    ("group", ACCOUNTS),
    ("user", ACCOUNTS),
    ("shadow", ACCOUNTS),
    ("archive", ACCOUNTS),
    (
        "alternatives",
        &[
            "/usr/bin/update-alternatives --display *",
            "/usr/bin/update-alternatives --query *",
            "/usr/sbin/alternatives --display *",
        ],
    ),
    ("cron", &["/usr/bin/crontab -l", "/usr/bin/crontab -u * -l"]),
    (
        "dig",
        &[
            "/usr/bin/dig +short * *",
            "/usr/bin/dig +short * * @*",
            "/usr/bin/dig +short -x *",
            "/usr/bin/dig +short -x * @*",
        ],
    ),
    (
        "iptables",
        &[
            "/usr/sbin/iptables --help",
            "/usr/sbin/iptables --version",
            // `--modprobe`, which may be cut short, and `-M` name a program that runs.
            "/usr/sbin/iptables -t * -C * !-*M** !--m !--m=** !--mo !--mo=** !--mod !--mod=** !--modp** **",
            "/usr/sbin/iptables-save",
            "/usr/sbin/iptables-save -t *",
            "/usr/sbin/ip6tables --help",
            "/usr/sbin/ip6tables --version",
            "/usr/sbin/ip6tables -t * -C * !-*M** !--m !--m=** !--mo !--mo=** !--mod !--mod=** !--modp** **",
            "/usr/sbin/ip6tables-save",
            "/usr/sbin/ip6tables-save -t *",
        ],
    ),
    ("kmod", &["/usr/sbin/lsmod"]),
    ("locale", &["/usr/bin/locale -a", "/usr/bin/localectl status"]),
    (
        "mount",
        &[
            "/usr/bin/cat /proc/self/mountinfo",
            "/usr/bin/cat /proc/swaps",
            "/usr/bin/mount -l",
            // Without the cache that it would write.
            "/usr/sbin/blkid -c /dev/null",
            "/usr/sbin/blkid -c /dev/null /*",
            "/usr/sbin/blkid -c /dev/null -t *",
        ],
    ),
    (
        "pkg",
        &[
            "/usr/bin/dpkg-query --showformat ** -W",
            "/usr/bin/dpkg-query --showformat ** --show -- **",
            "/usr/bin/dpkg-query --search -- **",
            "/usr/bin/dpkg-query --listfiles -- **",
            "/usr/bin/dpkg --print-architecture",
            "/usr/bin/dpkg-deb --field /** Package Version Architecture",
            // Without files of their own: with these options, apt keeps what it knows in memory. After `--`, no word is an option.
            "/usr/bin/apt-cache -q -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= policy -- **",
            "/usr/bin/apt-cache -q -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Default-Release=* policy -- **",
            "/usr/bin/apt-cache -q -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= show -- **",
            "/usr/bin/apt-cache -q -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= dump",
            "/usr/bin/apt-get --just-print -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=true -o Dir::Log::Planner=/dev/null upgrade",
            "/usr/bin/apt-get --just-print -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=true -o Dir::Log::Planner=/dev/null dist-upgrade",
        ],
    ),
    // Only what looks at this host: the profile `observe` has these lines, and `ping` reaches other hosts.
    (
        "network",
        &[
            "/usr/sbin/ip route get *",
            "/usr/bin/ip route get *",
            "/usr/sbin/ip neigh show",
            "/usr/bin/ip neigh show",
            "/usr/sbin/ethtool -g *",
        ],
    ),
    ("postgres", &["/usr/bin/pg_lsclusters --no-header"]),
    // The signal 0 only tests whether there is such a process.
    ("ps", &["/usr/bin/date --date=@* +**", "/usr/bin/kill -0 *"]),
    (
        "service",
        &[
            "/usr/bin/systemctl status * -n 0",
            "/usr/bin/systemctl is-active *",
            "/usr/bin/systemctl is-enabled *",
            "/usr/bin/systemctl show *",
            "/usr/bin/systemctl show * -P Id",
            "/usr/bin/systemctl --full --no-legend --no-pager",
            "/usr/bin/systemctl --full --no-legend --no-pager list-unit-files",
            "/usr/sbin/service * status",
            "/usr/sbin/runlevel",
            "/usr/bin/ps -efHww",
        ],
    ),
    // `net.ipv4.ip_forward`, which may be written `net/ipv4/ip_forward`. With `=` it would be set.
    (
        "sysctl",
        &[
            "/usr/sbin/sysctl -n *",
            "/usr/bin/sysctl -n *",
            "/usr/sbin/sysctl -n */*",
            "/usr/bin/sysctl -n */*",
            "/usr/sbin/sysctl -n */*/*",
            "/usr/bin/sysctl -n */*/*",
            "/usr/sbin/sysctl -n */*/*/*/*",
            "/usr/bin/sysctl -n */*/*/*/*",
            "/usr/sbin/sysctl -a",
            "/usr/bin/sysctl -a",
        ],
    ),
    ("timezone", &["/usr/bin/date +%Z", "/usr/bin/date +%z", "/usr/bin/timedatectl"]),
];

/// Questions to a PostgreSQL server, `NAME: SELECT …` in each line. They are whole: nothing in them is a caller's, and they
/// name what they ask by `pg_catalog`, so that nobody's function of the same name runs. The module `postgres` has the same file.
const POSTGRES: &str = include_str!("looks/postgres.sql");

/// The option of psql that names its server; a folder is one of this host's.
const HOSTS: [&[&str]; 3] = [&[], &["--host", "*"], &["--host", "/**"]];

/// Command lines of psql with each question, wherever the server is and whoever asks. SQL text cannot have a wildcard here:
/// it could do anything.
fn postgres() -> Vec<Look> {
    let users: [&[&str]; 2] = [&[], &["--username", "*"]];
    let ports: [&[&str]; 2] = [&[], &["--port", "*"]];
    let mut looks = Vec::new();
    for query in POSTGRES.lines().filter_map(|line| line.split_once(": ")).map(|(_, query)| query) {
        let copy = format!("COPY ({query}) TO STDOUT WITH CSV HEADER");
        for user in users {
            for host in HOSTS {
                for port in ports {
                    let quiet = ["--no-align", "--no-readline", "--no-psqlrc", "--no-password"];
                    let rest = ["--dbname", "*", "-c", &copy];
                    let arguments = [&quiet[..], user, host, port, &rest].concat();
                    let arguments = arguments.into_iter().map(str::to_owned).collect();
                    looks.push(Look { program: "/usr/bin/psql".into(), arguments, open: false, never: Vec::new() });
                }
            }
        }
    }
    looks
}

/// What looks at users and groups, and whether there is a directory.
const ACCOUNTS: &[&str] = &[
    "/usr/bin/getent passwd",
    "/usr/bin/getent passwd *",
    "/usr/bin/getent group",
    "/usr/bin/getent group *",
    "/usr/bin/getent initgroups *",
    "/usr/bin/id -g -n -- *",
    "/usr/bin/test -d /**",
];

/// Upper bound on the words of one command line.
const MAX_WORDS: usize = 64;

/// A command line that only looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The program: an absolute path.
    program: String,
    arguments: Vec<String>,
    /// Whether any further arguments may follow.
    open: bool,
    /// What none of them may be like.
    never: Vec<String>,
}

impl Look {
    /// Parses a command line.
    ///
    /// # Errors
    ///
    /// What is wrong with it: the end of a sentence that begins with the text.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return Err("names no program");
        }
        if words.len() > MAX_WORDS || text.len() > MAX_NAME {
            return Err("has too many words");
        }
        let program = words.remove(0);
        if !program.starts_with('/') {
            return Err("names no program by its absolute path");
        }
        if program == "/" {
            return Err("names no program");
        }
        if program.contains(['*', '?']) {
            return Err("names no one program: * and ? are for arguments");
        }
        let open = words.last() == Some(&"**");
        let mut never = Vec::new();
        if open {
            words.pop();
            let kept = words.iter().rposition(|word| !word.starts_with('!')).map_or(0, |at| at + 1);
            never = words.split_off(kept).into_iter().map(|word| word[1..].to_owned()).collect();
        }
        let arguments = words.into_iter().map(str::to_owned).collect();
        Ok(Self { program: program.to_owned(), arguments, open, never })
    }

    /// Returns the program: an absolute path.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Checks whether a command line is this one: the program by its path or by its bare name. `folder` resolves links
    /// among folders of programs.
    pub(crate) fn is<'a>(&'a self, argv: &'a [String], folder: impl Fn(&'a str) -> &'a str) -> bool {
        let Some((program, arguments)) = argv.split_first() else { return false };
        let (own, name) = self.program.rsplit_once('/').unwrap_or_default();
        let same = match program.rsplit_once('/') {
            None => program == name,
            Some((asked, asked_name)) => asked_name == name && folder(asked) == folder(own),
        };
        let enough = arguments.len() == self.arguments.len() || self.open && arguments.len() > self.arguments.len();
        let options_end = self.arguments.iter().position(|word| word == "--").unwrap_or(usize::MAX);
        let matches =
            |(at, (pattern, argument)): (usize, (&String, &String))| stands_for(pattern, argument, at > options_end);
        let further = arguments.get(self.arguments.len()..).unwrap_or_default();
        let is_refused = |argument: &String| {
            // What is too long to be compared is not known to be harmless.
            argument.len() > MAX_NAME || self.never.iter().any(|pattern| glob(pattern, argument))
        };
        let harmless = self.never.is_empty() || !further.iter().any(is_refused);
        same && enough && harmless && self.arguments.iter().zip(arguments).enumerate().all(matches)
    }
}

/// Checks one argument. `named`: whether it is no option, whatever it begins with.
fn stands_for(pattern: &str, argument: &str, named: bool) -> bool {
    if !is_glob(pattern) {
        return pattern == argument;
    }
    if pattern.starts_with(['*', '?']) && argument.starts_with('-') && !named {
        return false;
    }
    // Without `**`, the pattern has each `=` of the argument.
    let equals = |text: &str| text.matches('=').count();
    glob(pattern, argument) && (pattern.contains("**") || equals(pattern) == equals(argument))
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        for argument in &self.arguments {
            write!(f, " {argument}")?;
        }
        for word in &self.never {
            write!(f, " !{word}")?;
        }
        if self.open { f.write_str(" **") } else { Ok(()) }
    }
}

/// Returns the looks that a standard module comes with.
pub fn standard_looks(module: &str) -> Vec<Look> {
    let found = STANDARD.iter().find(|(name, _)| *name == module).map_or(&[][..], |(_, looks)| *looks);
    let mut looks: Vec<Look> = found.iter().filter_map(|text| Look::read(text).ok()).collect();
    if module == "postgres" {
        looks.extend(postgres());
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(patterns: &[&str], argv: &str) -> Option<String> {
        let looks: Vec<Look> = patterns.iter().map(|text| Look::read(text).unwrap()).collect();
        let folder = |folder| if folder == "/bin" { "/usr/bin" } else { folder };
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        looks.iter().find(|look| look.is(&argv, folder)).map(|look| look.program().to_owned())
    }

    #[test]
    fn a_command_line_looks_word_by_word() {
        let list = [
            "/usr/bin/systemctl is-active *",
            "/usr/bin/dpkg-query **",
            "/opt/x -f /**.conf **",
            "/opt/y -C * !--run** !!** **",
        ];
        let systemctl = Some("/usr/bin/systemctl".to_owned());
        for (argv, expect) in [
            ("/usr/bin/systemctl is-active nginx", &systemctl),
            ("systemctl is-active nginx", &systemctl),
            ("/bin/systemctl is-active a/b", &None),
            ("/bin/systemctl is-active --host=example", &None),
            ("/bin/systemctl is-active a=b", &None),
            ("/home/u/systemctl is-active nginx", &None),
            ("./systemctl is-active nginx", &None),
            ("systemctl is-active", &None),
            ("systemctl is-active a b", &None),
            ("systemctl stop nginx", &None),
            ("systemctl is-active-x nginx", &None),
            ("dpkg-query", &Some("/usr/bin/dpkg-query".to_owned())),
            ("dpkg-query -W -f x", &Some("/usr/bin/dpkg-query".to_owned())),
            ("/opt/x -f /etc/a.conf", &Some("/opt/x".to_owned())),
            ("/opt/x -f /etc/a.conf more", &Some("/opt/x".to_owned())),
            ("/opt/x -f /etc/a.txt", &None),
            ("/opt/x", &None),
            ("/opt/y -C a -b /c", &Some("/opt/y".to_owned())),
            ("/opt/y -C a -b --run=/x/y", &None),
            ("/opt/y -C --run", &None),
            ("/opt/y -C a !x", &None),
        ] {
            assert_eq!(&looks(&list, argv), expect, "{argv}");
        }
    }

    #[test]
    fn what_is_no_command_line_is_refused() {
        for bad in ["", "   ", "systemctl is-active *", "/usr/bin/*", "/"] {
            assert!(Look::read(bad).is_err(), "{bad}");
        }
        assert_eq!(Look::read("/bin/a  b   **").unwrap().to_string(), "/bin/a b **");
        for (_, looks) in STANDARD {
            looks.iter().for_each(|text| assert_eq!(Look::read(text).unwrap().to_string(), *text));
        }
    }

    /// Looks of standard modules, with what a master can make of their arguments.
    #[test]
    fn no_argument_makes_a_standard_look_change_something() {
        let looked = |module: &str, argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            standard_looks(module).iter().any(|look| look.is(&argv, |folder| folder))
        };
        for (module, argv) in [
            ("sysctl", &["sysctl", "-n", "net.ipv4.ip_forward"][..]),
            ("sysctl", &["sysctl", "-n", "net/ipv4/ip_forward"]),
            ("service", &["systemctl", "status", "a@b-c.service", "-n", "0"]),
            ("service", &["systemctl", "show", "a.service", "-P", "Id"]),
            ("service", &["service", "ssh", "status"]),
            ("user", &["getent", "passwd", "a"]),
            ("user", &["getent", "initgroups", "a"]),
            ("user", &["id", "-g", "-n", "--", "-x"]),
            ("network", &["ip", "route", "get", "2001:db8::1"]),
            ("network", &["ethtool", "-g", "eth0"]),
            ("git", &["/usr/bin/git", "ls-remote", "--", "https://git.example/a.git?b=c"]),
            ("git", &["/usr/bin/git", "config", "--global", "--get-all", "--", "url.https://.insteadOf"]),
            ("user", &["test", "-d", "/home/a=b/c"]),
            (
                "iptables",
                &["iptables", "-t", "nat", "-C", "INPUT", "!", "-s", "10.0.0.0/8", "-j", "MARK", "--mode", "x"],
            ),
            (
                "iptables",
                &["ip6tables", "-t", "filter", "-C", "INPUT", "--monthdays", "1", "-m", "comment", "--comment", "a M"],
            ),
            ("iptables", &["iptables-save", "-t", "filter"]),
            ("pkg", &["dpkg-query", "--showformat", "${Package}=${Version}\n", "-W"]),
            ("pkg", &["dpkg-query", "--showformat", "x", "--show", "--", "a", "-b"]),
            ("pkg", &["dpkg-deb", "--field", "/tmp/a=b.deb", "Package", "Version", "Architecture"]),
        ] {
            assert!(looked(module, argv), "{argv:?}");
        }
        for (module, argv) in [
            // Each of these writes.
            ("sysctl", &["sysctl", "-n", "kernel.core_pattern=|/tmp/x"][..]),
            ("sysctl", &["sysctl", "-n", "net/ipv4/ip_forward=1"]),
            ("sysctl", &["sysctl", "-n", "--system"]),
            ("sysctl", &["sysctl", "-n", "-p/tmp/x"]),
            // These connect to another host, or run something there.
            ("service", &["systemctl", "status", "--host=root@example", "-n", "0"]),
            ("service", &["systemctl", "is-active", "-Hroot@example"]),
            ("service", &["systemctl", "is-active", "--host", "example"]),
            ("service", &["systemctl", "show", "-Mcontainer"]),
            // A file that is no init script.
            ("service", &["service", "../../srv/x", "status"]),
            ("service", &["service", "--status-all", "status"]),
            // These change routes and buffers, or reach another host.
            ("network", &["ip", "route", "add", "10.0.0.0"]),
            ("network", &["ip", "route", "get", "-batch"]),
            ("network", &["ethtool", "-G", "eth0", "rx", "1"]),
            ("network", &["ethtool", "-g", "-G"]),
            ("network", &["ping", "-c", "4", "example"]),
            // Code or files of the caller's choice.
            ("user", &["getent", "passwd", "--service=x"]),
            ("git", &["/usr/bin/git", "ls-remote", "--upload-pack=/tmp/x", "origin"]),
            ("git", &["/usr/bin/git", "config", "--global", "--get-all", "--unset-all", "a.b"]),
            ("git", &["/usr/bin/git", "-c", "alias.x=!touch /tmp/x", "ls-remote", "--", "origin"]),
            ("user", &["test", "-d", "relative"]),
            // A program that loads modules; cut short, in one word, after other options.
            ("iptables", &["iptables", "-t", "filter", "-C", "INPUT", "-j", "DROP", "--modprobe=/tmp/x"]),
            ("iptables", &["iptables", "-t", "filter", "-C", "INPUT", "--modp", "/tmp/x"]),
            ("iptables", &["iptables", "-t", "filter", "-C", "INPUT", "--mod=/tmp/x"]),
            ("iptables", &["iptables", "-t", "filter", "-C", "INPUT", "-M", "/tmp/x"]),
            ("iptables", &["iptables", "-t", "filter", "-C", "INPUT", "-nvM/tmp/x"]),
            ("iptables", &["iptables", "-t", "filter", "-C", "--modprobe=/tmp/x"]),
            ("iptables", &["iptables", "-t", "filter", "-A", "INPUT", "-j", "DROP"]),
            ("iptables", &["iptables-save", "-f", "/etc/passwd"]),
            ("iptables", &["iptables-save", "-t", "-f"]),
            ("pkg", &["dpkg", "--compare-versions", "--command-fd=0", "lt", "1"]),
            ("pkg", &["dpkg-query", "--admindir=/srv/x", "-W"]),
            ("pkg", &["dpkg-query", "--showformat", "x", "--load-avail", "--show", "--", "a"]),
            ("pkg", &["dpkg-deb", "--field", "-x", "Package", "Version", "Architecture"]),
            (
                "pkg",
                &[
                    "apt-cache",
                    "-q",
                    "-o",
                    "Dir::Cache::pkgcache=",
                    "-o",
                    "Dir::Cache::srcpkgcache=",
                    "-o",
                    "Dir::Bin::dpkg=/x",
                    "dump",
                ],
            ),
        ] {
            assert!(!looked(module, argv), "{argv:?}");
        }
        // The questions to PostgreSQL: those and no other SQL, to a database and not an address.
        let databases = POSTGRES.lines().nth(1).and_then(|line| line.strip_prefix("databases: ")).unwrap();
        let copy = format!("COPY ({databases}) TO STDOUT WITH CSV HEADER");
        let quiet = ["psql", "--no-align", "--no-readline", "--no-psqlrc", "--no-password"];
        let psql = |more: &[&str]| looked("postgres", &[&quiet[..], more].concat());
        assert!(psql(&["--dbname", "postgres", "-c", &copy]));
        assert!(psql(&[
            "--username",
            "u",
            "--host",
            "/run/postgresql",
            "--port",
            "5432",
            "--dbname",
            "a b",
            "-c",
            &copy
        ]));
        for more in [
            &["--dbname", "postgres", "-c", "COPY (SELECT lo_unlink(1)) TO STDOUT WITH CSV HEADER"][..],
            &["--dbname", "postgres", "-c", &copy.replace("datname", "datname, lo_unlink(1)")],
            &["--dbname", "postgres", "-c", &copy, "-c", "DROP DATABASE a"],
            &["--dbname", "postgres", "-f", "/tmp/x"],
            &["--dbname", "postgres"],
            &["--dbname", "host=/tmp/x options=-csession_preload_libraries=x", "-c", &copy],
            &["--dbname", "postgresql://example/x", "-c", &copy],
            &["--dbname", "-f/tmp/x", "-c", &copy],
            &["--username", "--output=/tmp/x", "--dbname", "postgres", "-c", &copy],
            &["--log-file", "/tmp/x", "--dbname", "postgres", "-c", &copy],
        ] {
            assert!(!psql(more), "{more:?}");
        }
        assert!(!looked("psql", &[&quiet[..], &["--dbname", "postgres", "-c", &copy]].concat()));
        for query in POSTGRES.lines() {
            let (name, sql) = query.split_once(": ").unwrap();
            assert!(sql.starts_with("SELECT ") && !is_glob(sql) && !sql.contains(';'), "{name}");
            // No table or function is one of whoever comes first in a search path.
            let words: Vec<&str> = sql.split([' ', ',', '(', ')']).collect();
            let tables = words.windows(2).filter(|pair| matches!(pair[0], "FROM" | "JOIN")).map(|pair| pair[1]);
            assert!(tables.into_iter().all(|table| table.starts_with("pg_catalog.")), "{name}");
        }
        for (module, looks) in STANDARD {
            for look in looks.iter().filter(|look| look.ends_with(" **")) {
                assert!(look.contains(" -- ") || look.contains(" !-"), "{module}: {look} takes any option");
            }
        }
    }
}
