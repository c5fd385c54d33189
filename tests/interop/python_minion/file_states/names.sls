{% set d = pillar.dir %}
dir:
  file.directory:
    - name: {{ d }}/d1/
    - mode: '0750'
    - user: nobody
nested:
  file.directory:
    - name: {{ d }}/d2/e/f
    - makedirs: True
    - dir_mode: '0755'
nested_no:
  file.directory:
    - name: {{ d }}/d3/e/f
recursive:
  file.directory:
    - name: {{ d }}/rec
    - user: nobody
    - group: nogroup
    - dir_mode: '0700'
    - file_mode: '0600'
    - recurse: [user, group, mode]
recurse_bad:
  file.directory:
    - name: {{ d }}/rec2
    - recurse: [users]
recurse_bad2:
  file.directory:
    - name: {{ d }}/rec2
    - user: nobody
    - recurse: user
recurse_ign:
  file.directory:
    - name: {{ d }}/rec3
    - user: nobody
    - recurse: [user, ignore_files]
recurse_depth:
  file.directory:
    - name: {{ d }}/rec4
    - file_mode: '0600'
    - dir_mode: '0700'
    - max_depth: 1
    - recurse: [mode]
childrenonly:
  file.directory:
    - name: {{ d }}/rec5
    - file_mode: '0600'
    - dir_mode: '0700'
    - children_only: True
    - recurse: [mode]
isfile:
  file.directory:
    - name: {{ d }}/existing
isfile_force:
  file.directory:
    - name: {{ d }}/existing6
    - force: True
islink:
  file.directory:
    - name: {{ d }}/dlink
islink_no:
  file.directory:
    - name: {{ d }}/dlink
    - allow_symlink: False
clean:
  file.directory:
    - name: {{ d }}/cl
    - clean: True
    - exclude_pat: 'keep*'
absent_file:
  file.absent:
    - name: {{ d }}/existing7
absent_dir:
  file.absent:
    - name: {{ d }}/rec6
absent_link:
  file.absent:
    - name: {{ d }}/clink
absent_none:
  file.absent:
    - name: {{ d }}/nothere
absent_root:
  file.absent:
    - name: /
absent_rel:
  file.absent:
    - name: a/b
symlink:
  file.symlink:
    - name: {{ d }}/s1
    - target: /etc/hosts
symlink_change:
  file.symlink:
    - name: {{ d }}/s2
    - target: /etc/hosts
symlink_file:
  file.symlink:
    - name: {{ d }}/existing8
    - target: /etc/hosts
symlink_force:
  file.symlink:
    - name: {{ d }}/existing9
    - target: /etc/hosts
    - force: True
symlink_makedirs:
  file.symlink:
    - name: {{ d }}/sm/a/b
    - target: /etc/hosts
    - makedirs: True
symlink_nodir:
  file.symlink:
    - name: {{ d }}/sn/a/b
    - target: /etc/hosts
symlink_owner:
  file.symlink:
    - name: {{ d }}/s3
    - target: /etc/hosts
    - user: nobody
    - group: nogroup
symlink_owner2:
  file.symlink:
    - name: {{ d }}/s2
    - target: /etc/hosts
    - user: nobody
symlink_backup:
  file.symlink:
    - name: {{ d }}/existing10
    - target: /etc/hosts
    - backupname: existing10.bak
symlink_dangling:
  file.symlink:
    - name: {{ d }}/s4
    - target: {{ d }}/nowhere
hardlink:
  file.hardlink:
    - name: {{ d }}/h1
    - target: {{ d }}/existing
hardlink_none:
  file.hardlink:
    - name: {{ d }}/h2
    - target: {{ d }}/nothere
hardlink_file:
  file.hardlink:
    - name: {{ d }}/existing2
    - target: {{ d }}/existing
exists:
  file.exists:
    - name: {{ d }}/existing
exists_no:
  file.exists:
    - name: {{ d }}/nothere
missing:
  file.missing:
    - name: {{ d }}/existing
missing_yes:
  file.missing:
    - name: {{ d }}/nothere
touch:
  file.touch:
    - name: {{ d }}/touched
touch_again:
  file.touch:
    - name: {{ d }}/existing
touch_dirs:
  file.touch:
    - name: {{ d }}/td/a/b
    - makedirs: True
touch_nodirs:
  file.touch:
    - name: {{ d }}/te/a/b
rename:
  file.rename:
    - name: {{ d }}/renamed
    - source: {{ d }}/existing11
rename_gone:
  file.rename:
    - name: {{ d }}/renamed2
    - source: {{ d }}/nothere
rename_exists:
  file.rename:
    - name: {{ d }}/existing
    - source: {{ d }}/existing12
rename_force:
  file.rename:
    - name: {{ d }}/existing13
    - source: {{ d }}/existing12
    - force: True
rename_makedirs:
  file.rename:
    - name: {{ d }}/rm/a/b
    - source: {{ d }}/existing14
    - makedirs: True
copy:
  file.copy:
    - name: {{ d }}/copied
    - source: {{ d }}/existing
copy_mode:
  file.copy:
    - name: {{ d }}/copied2
    - source: {{ d }}/existing
    - mode: '0600'
    - user: nobody
copy_exists:
  file.copy:
    - name: {{ d }}/existing3
    - source: {{ d }}/existing
copy_force:
  file.copy:
    - name: {{ d }}/existing4
    - source: {{ d }}/existing
    - force: True
copy_missing:
  file.copy:
    - name: {{ d }}/copied3
    - source: {{ d }}/nothere
copy_preserve:
  file.copy:
    - name: {{ d }}/copied4
    - source: {{ d }}/existing5
    - preserve: True
recurse:
  file.recurse:
    - name: {{ d }}/r1
    - source: salt://tree
    - file_mode: '0640'
    - dir_mode: '0750'
    - template: jinja
    - context: {who: rec}
recurse_excl:
  file.recurse:
    - name: {{ d }}/r2
    - source: salt://tree
    - exclude_pat: '*.skip'
    - context: {who: rec}
recurse_clean:
  file.recurse:
    - name: {{ d }}/r3
    - source: salt://tree
    - clean: True
recurse_none:
  file.recurse:
    - name: {{ d }}/r4
    - source: salt://nothere
recurse_mode:
  file.recurse:
    - name: {{ d }}/r5
    - source: salt://tree
    - mode: '0600'
kept:
  file.managed:
    - name: {{ d }}/cl2/x/managed
    - contents: x
clean_kept:
  file.directory:
    - name: {{ d }}/cl2
    - clean: True
    - require:
      - file: kept
      - file: {{ d }}/rec
