// The module disk_report. Its functions, their types and their documentation are in wit/world.wit.
#include <stdlib.h>
#include <string.h>

#include "disk_report.h"

typedef disk_report_string_t string;
typedef brine_host_disks_mount_t mount_t;
typedef brine_host_disks_space_t space_t;

static bool same(string a, string b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

// A copy in the arguments' words: what is returned is freed by the bindings once the host has it.
static string copy(string from) {
  string to;
  disk_report_string_dup_n(&to, (const char *)from.ptr, from.len);
  return to;
}

// What is mounted over another hides it.
static bool hidden(const brine_host_disks_list_mount_t *mounts, size_t at) {
  for (size_t later = at + 1; later < mounts->len; later++)
    if (same(mounts->ptr[later].mount_point, mounts->ptr[at].mount_point)) return true;
  return false;
}

static disk_report_file_system_t file_system(const mount_t *mount, const space_t *space) {
  uint64_t used = space->blocks - space->blocks_free, total = used + space->blocks_available;
  return (disk_report_file_system_t){
      .mount_point = copy(mount->mount_point),
      .device = copy(mount->device),
      .fstype = copy(mount->fstype),
      .size = space->blocks * space->block_size,
      .used = used * space->block_size,
      .available = space->blocks_available * space->block_size,
      .percent = total ? (uint8_t)((used * 100 + total - 1) / total) : 0,
  };
}

bool exports_disk_report_report(string *mount, disk_report_list_file_system_t *rows, string *err) {
  brine_host_disks_list_mount_t mounts;
  if (!brine_host_disks_mounts(&mounts, err)) return false;
  rows->ptr = calloc(mounts.len + 1, sizeof *rows->ptr);
  if (!rows->ptr) abort();
  rows->len = 0;
  for (size_t i = 0; i < mounts.len; i++) {
    mount_t *at = &mounts.ptr[i];
    space_t space;
    if (hidden(&mounts, i) || (mount && !same(at->mount_point, *mount))) continue;
    if (!brine_host_disks_usage(&at->mount_point, &space, err)) {
      if (mount) return false;
      // One that does not answer is left out, as df does.
      disk_report_string_free(err);
      continue;
    }
    if (mount || space.blocks > 0) rows->ptr[rows->len++] = file_system(at, &space);
  }
  brine_host_disks_list_mount_free(&mounts);
  if (mount && rows->len == 0) {
    static const char what[] = "nothing is mounted at ";
    err->len = sizeof what - 1 + mount->len;
    err->ptr = malloc(err->len);
    if (!err->ptr) abort();
    memcpy(err->ptr, what, sizeof what - 1);
    memcpy(err->ptr + sizeof what - 1, mount->ptr, mount->len);
    return false;
  }
  return true;
}
