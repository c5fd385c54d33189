//! Programs that are as good as any other.

/// Programs that run whatever they are told, or change who runs it.
const RUN_ANYTHING: &str = "\
    ansible ant as ash at autossh awk bash batch bazel bpftrace bun busctl busybox bwrap c++ capsh cargo cc chef choom chroot \
    chrt clang cmake composer crictl crontab csh ctr dash dbus-run-session dbus-send dc deno doas docker ed elixir elvish emacs \
    emacsclient env erl expect find firejail fish flatpak flock ftp g++ gawk gcc gdb gdbus git go gradle guile i386 ionice irb java \
    just kubectl ksh ld ld.so less linux32 linux64 logrotate ltrace lua luajit lxc lxc-attach m4 machinectl mail make man mawk \
    meson mksh more mosh mutt mvn mysql nano nawk nc ncat nerdctl netcat newgrp nice ninja nmap node nodejs nohup npx nsenter nu \
    nvim octave openssl osh parallel pdsh perf perl php pico pkexec pnpm podman prlimit psql puppet pwsh pypy python R rake rbash \
    rlwrap Rscript rsync ruby run-parts runghc runuser rustc rvim salt salt-call salt-run salt-ssh scons screen script sed setarch \
    setpriv setsid sftp sg sh snap socat sort split sqlite ssh ssh-agent sshpass start-stop-daemon stdbuf strace su sudo \
    systemd-nspawn systemd-run tar taskset tclsh tcpdump tcsh telnet time timeout tmux toybox unbuffer unshare uv valgrind vi view \
    vim vimdiff virsh wasmtime watch xargs xonsh yarn yash zip zsh";
/// Programs that change files, packages, services or accounts as they are told, and so what runs.
const WRITE_ANYTHING: &str = "\
    apk apt apt-get aptitude chattr chgrp chmod chown chpasswd cp cpio curl dd debugfs dnf dpkg gem gpasswd groupadd groupmod insmod \
    install kexec ln losetup mkfs mknod modprobe mount mv npm pacman passwd patch pip pipx rm rpm scp setcap setfacl shred sysctl \
    systemctl tee truncate unzip update-alternatives useradd userdel usermod vipw visudo wget yum zypper";
/// The loaders of programs, each of which runs the file that it is given.
const LOADERS: [&str; 2] = ["ld-linux", "ld-musl"];

/// Whether the program runs whatever it is told.
pub(super) fn runs_anything(path: &str) -> bool {
    is_of(path, RUN_ANYTHING) || LOADERS.iter().any(|loader| name(path).starts_with(loader))
}

/// Whether the program can change whatever the host runs.
pub(super) fn changes_anything(path: &str) -> bool {
    is_of(path, WRITE_ANYTHING)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Compares the name, also without a version at its end.
fn is_of(path: &str, all: &str) -> bool {
    let name = name(path);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    all.split_whitespace().any(|known| known == name || known == plain)
}
