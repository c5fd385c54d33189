# Makes a root for `ThrowawayRoot`, as the first process of a PID namespace and in a mount namespace of its own. Arguments: an empty
# folder, then folders that have to be in the new root, should they be mounts of this host.
set -e
own=$1
shift
mount -t tmpfs -o size=3g,mode=755 tmpfs "$own"
mkdir "$own/upper" "$own/work" "$own/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$own/upper,workdir=$own/work" "$own/root"
root=$own/root
for folder in "$@"; do
  [ "$(stat -c %d "$folder")" = "$(stat -c %d /)" ] || mount --rbind "$folder" "$root$folder"
done
mount -t proc proc "$root/proc"
# The kernel's settings are the host's.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -o bind,ro "$root/proc/sysrq-trigger" "$root/proc/sysrq-trigger" 2>/dev/null || true
mount --rbind /dev "$root/dev"
mount --bind /sys "$root/sys"
mount -o remount,ro,bind "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir "$root/run/lock" "$root/run/changed"
mount --bind "$own/upper" "$root/run/changed"
cd "$root"
pivot_root . .
umount -l .
echo ready
exec sleep infinity
