"""The module disk_report: how full file systems are. Its functions and their documentation are in wit/world.wit."""

import wit_world
from wit_world import FileSystem
from wit_world.imports import disks


class WitWorld(wit_world.WitWorld):
    def report(self, mount):
        if mount is not None:
            return [row(disks.file_system_at(mount))]
        return [row(one) for one in disks.file_systems() if one.space.blocks > 0]


def row(one):
    mount, space = one.mount, one.space
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
