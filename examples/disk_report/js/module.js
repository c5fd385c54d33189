// The module disk_report: how full file systems are. Its functions and their documentation are in wit/world.wit.
import { fileSystemAt, fileSystems } from 'brine:host/disks@1.0.0';

export function report(mount) {
  if (mount !== undefined) return [row(fileSystemAt(mount))];
  return fileSystems().filter(({ space }) => space.blocks > 0n).map(row);
}

function row({ mount, space }) {
  const used = space.blocks - space.blocksFree;
  const total = used + space.blocksAvailable;
  return {
    mountPoint: mount.mountPoint,
    device: mount.device,
    fstype: mount.fstype,
    size: space.blocks * space.blockSize,
    used: used * space.blockSize,
    available: space.blocksAvailable * space.blockSize,
    percent: total ? Number((used * 100n + total - 1n) / total) : 0,
  };
}
