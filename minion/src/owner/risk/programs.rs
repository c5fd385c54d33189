//! Programs that are as good as any other.

/// Programs that run whatever they are told, or change who runs it.
const RUN_ANYTHING: &str = "\
    ansible ant aria2c as ash at autossh awk bash batch bazel bpftrace bun busctl busybox bwrap c++ capsh cargo cc chef choom chpst \
    chroot chrt clang clickhouse-client cmake composer cpan crictl crontab csh ctr dash dbus-launch dbus-run-session dbus-send dc \
    debconf deno distrobox doas docker dosbox ed elixir elvish emacs emacsclient env erl ex expect facter find firejail fish flatpak \
    flock ftp g++ gawk gcc gcore gdb gdbserver gdbus ghc ghci gimp git go gosu gradle gtester guile i386 iex ionice ip irb java \
    jjs joe jrunscript julia just knife ksh ksh93 kubectl latex ld ld.so less lftp linux32 linux64 lldb logrotate ltrace lua luajit \
    lualatex luatex lwp-download lxc lxc-attach lxc-execute m4 machinectl mail mailx make man mariadb mawk mc meson mksh mongo mongosh \
    more mosh msgfilter multitime mutt mvn mysql nano nawk nc ncat nerdctl netcat newgrp nice ninja nmap node nodejs nohup \
    npx nroff nsenter nu nushell nvim octave openssl openvpn openvt osh parallel pdflatex pdsh perf perl php pico pkexec \
    pnpm podman podman-remote posh prlimit psql puppet pwsh pypy python R rake rbash rc redis-cli rexec rksh rlwrap rpmquery \
    rpmverify Rscript rsh rsync ruby run-mailcap run-parts runcon runghc runuser rustc rview rvim rzsh s6-setuidgid salt salt-call \
    salt-run salt-ssh scanmem scons screen script sed sendmail service setarch setpriv setsid setuidgid sftp sg sh slsh smbclient snap \
    socat socket softlimit sort split sqlite ssh ssh-agent ssh-keygen sshfs sshpass start-stop-daemon stdbuf strace su su-exec sudo \
    systemd-inhibit systemd-mount systemd-nspawn systemd-run tar taskset tasksh tclsh tcpdump tcsh telnet tex time timeout tmate tmux \
    toolbox torify torsocks toybox troff unbuffer unshare uv vagrant valgrind vi view vim vimdiff virsh w3m wasmtime watch \
    wish xargs xelatex xetex xonsh yarn yash zathura zip zsh";
/// Programs that change files, packages, services or accounts as they are told, and so what runs.
const WRITE_ANYTHING: &str = "\
    7z 7za 7zr aa-disable addgroup adduser apk apparmor_parser apt apt-get apt-key apt-mark aptitude ar axel blkdiscard bootctl bsdtar \
    chage chattr chcon chfn chgrp chkconfig chmod chown chpasswd chsh conda cp cpio cryptsetup curl dd debugfs delgroup deluser depmod \
    dkms dmsetup dnf dpkg dpkg-divert dpkg-reconfigure dpkg-statoverride dracut e2fsck easy_install efibootmgr fdisk flashrom fsck \
    fwupdmgr gem gpasswd groupadd groupdel groupmod grub-install homectl hostnamectl initctl insmod insserv install kexec ldconfig \
    link ln loginctl losetup luarocks lvcreate lvremove mamba mdadm mke2fs mkfs mkinitcpio mknod mkswap modprobe mount mv newusers \
    nmcli npm pacman parted passwd patch pecl pip pipx poetry portablectl pwconv rc-update rename restorecon rm rmdir rmmod rpm rpmdb \
    scp semanage semodule setcap setenforce setfacl setfattr setsebool sfdisk sgdisk shred sponge swapoff swapon sysctl systemctl \
    systemd-firstboot systemd-sysusers systemd-tmpfiles sysusers tee truncate tune2fs umount unlink unrar unsquashfs unzip \
    update-alternatives update-grub update-initramfs update-rc.d useradd userdel usermod vgcreate vgremove vipw virt-customize visudo wget \
    wipefs yarnpkg yum zfs zpool zypper";
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
    // `mkfs.ext4` is one of `mkfs`.
    let kind = name.split_once('.').map_or(name, |(kind, _)| kind);
    all.split_whitespace().any(|known| known == name || known == plain || known == kind)
}
