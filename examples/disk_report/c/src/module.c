// The module disk_report. Its functions, their types and their documentation are in wit/world.wit.
#include <stdlib.h>

#include "disk_report.h"

typedef disk_report_string_t string;
typedef brine_host_disks_file_system_t file_system_t;

// A copy in the arguments' words: what is returned is freed by the bindings once the host has it.
static string copy(string from) {
  string to;
  disk_report_string_dup_n(&to, (const char *)from.ptr, from.len);
  return to;
}

static disk_report_file_system_t row(const file_system_t *one) {
  const brine_host_disks_space_t *space = &one->space;
  uint64_t used = space->blocks - space->blocks_free, total = used + space->blocks_available;
  return (disk_report_file_system_t){
      .mount_point = copy(one->mount.mount_point),
      .device = copy(one->mount.device),
      .fstype = copy(one->mount.fstype),
      .size = space->blocks * space->block_size,
      .used = used * space->block_size,
      .available = space->blocks_available * space->block_size,
      .percent = total ? (uint8_t)((used * 100 + total - 1) / total) : 0,
  };
}

static bool one(string *mount, disk_report_list_file_system_t *rows, string *err) {
  file_system_t found;
  if (!brine_host_disks_file_system_at(mount, &found, err)) return false;
  rows->ptr[rows->len++] = row(&found);
  brine_host_disks_file_system_free(&found);
  return true;
}

static disk_report_file_system_t *room(size_t rows) {
  disk_report_file_system_t *room = calloc(rows + 1, sizeof *room);
  if (!room) abort();
  return room;
}

bool exports_disk_report_report(string *mount, disk_report_list_file_system_t *rows, string *err) {
  rows->len = 0;
  if (mount) {
    rows->ptr = room(1);
    return one(mount, rows, err);
  }
  brine_host_disks_list_file_system_t all;
  if (!brine_host_disks_file_systems(&all, err)) return false;
  rows->ptr = room(all.len);
  for (size_t i = 0; i < all.len; i++)
    if (all.ptr[i].space.blocks > 0) rows->ptr[rows->len++] = row(&all.ptr[i]);
  brine_host_disks_list_file_system_free(&all);
  return true;
}
