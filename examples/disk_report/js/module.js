// The module disk_report: how full file systems are. Its functions and their documentation are in wit/world.wit.
import { mounts, usage } from 'brine:host/disks@1.0.0';

export function report(mount) {
  const all = mounts();
  // What is mounted over another hides it.
  const last = new Map(all.map((m, i) => [m.mountPoint, i]));
  const seen = all.filter((m, i) => last.get(m.mountPoint) === i);
  if (mount !== undefined) {
    const found = seen.find((m) => m.mountPoint === mount);
    if (!found) throw `nothing is mounted at ${mount}`;
    return [fileSystem(found, usage(mount))];
  }
  const rows = [];
  for (const m of seen) {
    let space;
    try {
      space = usage(m.mountPoint);
    } catch {
      // One that does not answer is left out, as df does.
      continue;
    }
    if (space.blocks > 0n) rows.push(fileSystem(m, space));
  }
  return rows;
}

function fileSystem(mount, space) {
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
