"""The module disk_report: how full file systems are. Its functions and their documentation are in wit/world.wit."""

import wit_world
from componentize_py_types import Err
from wit_world import FileSystem
from wit_world.imports import disks


class WitWorld(wit_world.WitWorld):
    def report(self, mount):
        mounts = disks.mounts()
        # What is mounted over another hides it.
        last = {m.mount_point: i for i, m in enumerate(mounts)}
        mounts = [m for i, m in enumerate(mounts) if last[m.mount_point] == i]
        if mount is not None:
            for m in mounts:
                if m.mount_point == mount:
                    return [file_system(m, disks.usage(mount))]
            raise Err(f"nothing is mounted at {mount}")
        rows = []
        for m in mounts:
            try:
                space = disks.usage(m.mount_point)
            except Err:
                # One that does not answer is left out, as df does.
                continue
            if space.blocks > 0:
                rows.append(file_system(m, space))
        return rows


def file_system(mount, space):
    used = space.blocks - space.blocks_free
    total = used + space.blocks_available
    return FileSystem(
        mount_point=mount.mount_point,
        device=mount.device,
        fstype=mount.fstype,
        size=space.blocks * space.block_size,
        used=used * space.block_size,
        available=space.blocks_available * space.block_size,
        percent=-(-used * 100 // total) if total else 0,
    )
