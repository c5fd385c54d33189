//! Files that a module reads or changes.

use brine_sandbox::{Access, Capability, Directory, Entry, Grant, Tree, innermost};

use super::accounts::is_root;
use super::words::{Risk, some};

/// Directories whose files decide what the host runs.
const DECIDE: [&str; 52] = [
    "/bin",
    "/boot",
    "/dev",
    "/efi",
    "/etc",
    "/gnu",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/ostree",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/snap",
    // What a minion without a master takes its states, modules and pillar from.
    "/srv/pillar",
    "/srv/salt",
    "/srv/spm",
    "/sys",
    "/sysroot",
    "/usr",
    "/var/cache/apt",
    "/var/cache/dnf",
    "/var/cache/yum",
    "/var/lib/AccountsService",
    "/var/lib/alternatives",
    "/var/lib/apt",
    "/var/lib/cloud",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/dpkg",
    "/var/lib/flatpak",
    "/var/lib/incus",
    "/var/lib/kubelet",
    "/var/lib/libvirt",
    "/var/lib/lxc",
    "/var/lib/lxd",
    "/var/lib/machines",
    "/var/lib/polkit-1",
    "/var/lib/portables",
    "/var/lib/rpm",
    "/var/lib/snapd",
    "/var/lib/systemd",
    "/var/opt",
    "/var/spool/anacron",
    "/var/spool/at",
    "/var/spool/cron",
];
/// Where a host has passwords and keys, which its programs keep from others.
const SECRET: [&str; 44] = [
    "/boot",
    "/dev",
    "/etc/NetworkManager",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/bind",
    "/etc/ceph",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/cryptsetup-keys.d",
    "/etc/dovecot",
    "/etc/exim4",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ipsec.d",
    "/etc/ipsec.secrets",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/mysql",
    "/etc/netplan",
    "/etc/openvpn",
    "/etc/pki",
    "/etc/ppp",
    "/etc/rancher",
    "/etc/salt",
    "/etc/security",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl",
    "/etc/sssd",
    "/etc/sudoers",
    "/etc/wireguard",
    "/etc/wpa_supplicant",
    "/home",
    "/proc",
    "/root",
    "/run",
    "/srv/pillar",
    "/srv/salt",
    "/var/backups",
    "/var/lib",
    "/var/spool",
];
/// Folders and files of users with keys in them, which also decide who may log in.
const OF_USERS: [&str; 8] = [".aws", ".docker", ".gnupg", ".kube", ".netrc", ".pgpass", ".ssh", ".vault-token"];

/// The files of a whole entry: what is written by one grant can be what another one runs.
pub(super) struct Files<'a> {
    directories: &'a [Directory],
    trees: &'a [Tree],
    /// `filesystem` is by this user, not by the sandbox's own.
    as_root: bool,
}

impl<'a> Files<'a> {
    pub(super) fn of(entry: &'a Entry) -> Self {
        let directories = match entry.says.get(&Capability::Filesystem) {
            Some(Grant::Directories(directories)) => directories,
            _ => &[][..],
        };
        let trees = match entry.says.get(&Capability::Changes) {
            Some(Grant::Changes(trees)) => trees,
            _ => &[][..],
        };
        let as_root = entry.user.as_deref().is_some_and(is_root);
        Self { directories, trees, as_root }
    }

    /// Whether the module can change this file.
    pub(super) fn writes(&self, path: &str) -> bool {
        let around = self.directories.iter().filter(|directory| is_within(path, &directory.path));
        around.max_by_key(|directory| directory.path.len()).is_some_and(|directory| directory.writable)
            || innermost(self.trees, path).is_some_and(|tree| tree.access != Access::Look)
    }

    /// `filesystem`
    pub(super) fn directories(&self, directories: &[Directory]) -> Vec<Risk> {
        let paths = |writable: bool| -> Vec<&str> {
            directories.iter().filter(|one| one.writable == writable).map(|one| one.path.as_str()).collect()
        };
        let mut all = changing(&paths(true));
        all.extend(reading(&paths(false), self.as_root, ""));
        or_nothing(all)
    }

    /// `changes`, which is by the minion itself.
    pub(super) fn changes(&self, trees: &[Tree]) -> Vec<Risk> {
        let of = |access: &[Access]| -> Vec<&str> {
            trees.iter().filter(|tree| access.contains(&tree.access)).map(|tree| tree.path.as_str()).collect()
        };
        let mut all = changing(&of(&[Access::Change, Access::ChangeSetId]));
        let set_id = of(&[Access::ChangeSetId]);
        if !set_id.is_empty() {
            let paths = some(set_id.into_iter());
            all.push(Risk::high(format!(
                "make programs in {paths} that run with another user's rights, root's included"
            )));
        }
        all.extend(reading(&of(&[Access::Look]), true, " with the minion's rights"));
        or_nothing(all)
    }
}

fn or_nothing(all: Vec<Risk>) -> Vec<Risk> {
    if all.is_empty() { vec![Risk::low("ask for files, and get nothing yet")] } else { all }
}

fn changing(paths: &[&str]) -> Vec<Risk> {
    let (strong, others): (Vec<&str>, Vec<&str>) =
        paths.iter().copied().partition(|path| touches(path, &DECIDE) || is_of_users(path));
    let mut all = Vec::new();
    if !strong.is_empty() {
        let paths = some(strong.into_iter());
        all.push(Risk::high(format!("change what is in {paths}, which decides what this host runs")));
    }
    if !others.is_empty() {
        all.push(Risk::medium(format!("change files in {}", some(others.into_iter()))));
    }
    all
}

/// `strong`: with rights before which secrets are not closed.
fn reading(paths: &[&str], strong: bool, how: &str) -> Vec<Risk> {
    let is_secret = |path: &&str| strong && (touches(path, &SECRET) || is_of_users(path));
    let (secret, others): (Vec<&str>, Vec<&str>) = paths.iter().copied().partition(is_secret);
    let mut all = Vec::new();
    if !secret.is_empty() {
        let paths = some(secret.into_iter());
        all.push(Risk::high(format!("read what is in {paths}{how}, and so passwords and keys of this host")));
    }
    if !others.is_empty() {
        all.push(Risk::medium(format!("read what is in {}{how}, whatever that is", some(others.into_iter()))));
    }
    all
}

/// Whether a path is in one of these or around one.
fn touches(path: &str, directories: &[&str]) -> bool {
    directories.iter().any(|directory| is_within(path, directory) || is_within(directory, path))
}

fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_of_users(path: &str) -> bool {
    path.split('/').any(|part| OF_USERS.contains(&part))
}
