{% set d = pillar.dir %}
plain:
  file.managed:
    - name: {{ d }}/plain.conf
    - source: salt://files/plain.conf
    - mode: '0640'
    - user: nobody
    - group: nogroup
keep:
  file.managed:
    - name: {{ d }}/keep.conf
    - source: salt://files/plain.conf
    - mode: keep
template:
  file.managed:
    - name: {{ d }}/sub1/sub2/t.conf
    - source: salt://files/t.jinja
    - template: jinja
    - makedirs: True
    - mode: 644
    - context: {who: ctx}
    - defaults: {who: def}
listsource:
  file.managed:
    - name: {{ d }}/list.conf
    - source:
      - salt://files/nothere
      - salt://files/plain.conf
nosource:
  file.managed:
    - name: {{ d }}/none.conf
    - source: salt://files/nothere
nosources:
  file.managed:
    - name: {{ d }}/none2.conf
    - source: [salt://files/nothere, salt://files/nope]
dotdot:
  file.managed:
    - name: {{ d }}/none3.conf
    - source: salt://../secret
badtemplate:
  file.managed:
    - name: {{ d }}/bad.conf
    - source: salt://files/bad.jinja
    - template: jinja
nodir:
  file.managed:
    - name: {{ d }}/no/such/dir
    - contents: x
contents:
  file.managed:
    - name: {{ d }}/c1
    - contents: |
        one
        two
    - mode: '0600'
contents_list:
  file.managed:
    - name: {{ d }}/c2
    - contents: [a, b, 3]
    - contents_newline: False
contents_pillar:
  file.managed:
    - name: {{ d }}/c3
    - contents_pillar: text
    - mode: '0644'
contents_nopillar:
  file.managed:
    - name: {{ d }}/c4
    - contents_pillar: nothere
contents_grains:
  file.managed:
    - name: {{ d }}/c5
    - contents_grains: id
contents_template:
  file.managed:
    - name: {{ d }}/c6
    - contents: 'x {{ '{{' }} who {{ '}}' }}'
    - template: jinja
    - context: {who: me}
empty:
  file.managed:
    - name: {{ d }}/empty
    - mode: '0600'
empty_plain:
  file.managed:
    - name: {{ d }}/empty2
    - replace: False
notcreated:
  file.managed:
    - name: {{ d }}/notcreated
    - create: False
    - contents: x
existing:
  file.managed:
    - name: {{ d }}/existing
    - contents: |
        new one
        same
    - backup: minion
existing_noshow:
  file.managed:
    - name: {{ d }}/existing2
    - contents: |
        new one
        same
    - show_changes: False
existing_mode:
  file.managed:
    - name: {{ d }}/existing3
    - replace: False
    - mode: '0600'
    - user: nobody
binary:
  file.managed:
    - name: {{ d }}/existing4
    - source: salt://files/bin
isdir:
  file.managed:
    - name: {{ d }}/adir
    - contents: x
baduser:
  file.managed:
    - name: {{ d }}/baduser
    - contents: x
    - user: nosuchuser
    - group: nosuchgroup
relative:
  file.managed:
    - name: rel/ative
    - contents: x
link:
  file.managed:
    - name: {{ d }}/alink
    - contents: through
linknofollow:
  file.managed:
    - name: {{ d }}/blink
    - source: salt://files/plain.conf
    - follow_symlinks: False
both:
  file.managed:
    - name: {{ d }}/both
    - source: salt://files/plain.conf
    - contents: x
localsource:
  file.managed:
    - name: {{ d }}/localcopy
    - source: {{ d }}/existing5
localmissing:
  file.managed:
    - name: {{ d }}/localcopy2
    - source: {{ d }}/nothere
allowempty:
  file.managed:
    - name: {{ d }}/ae
    - contents: ''
    - allow_empty: False
badcontext:
  file.managed:
    - name: {{ d }}/bc
    - source: salt://files/t.jinja
    - template: jinja
    - context: [a]
badengine:
  file.managed:
    - name: {{ d }}/be
    - source: salt://files/t.jinja
    - template: nosuch
filemode:
  file.managed:
    - name: {{ d }}/fm
    - contents: x
    - file_mode: '0600'
newfilediff:
  file.managed:
    - name: {{ d }}/nfd
    - contents: x
    - new_file_diff: True
nohash:
  file.managed:
    - name: {{ d }}/nohash
    - source: http://127.0.0.1:9/x
encoding:
  file.managed:
    - name: {{ d }}/enc
    - contents: 'grün'
    - encoding: latin-1
wronghash:
  file.managed:
    - name: {{ d }}/wronghash
    - source: {{ d }}/existing5
    - source_hash: sha256=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
badhash:
  file.managed:
    - name: {{ d }}/badhash
    - source: {{ d }}/existing5
    - source_hash: md5=aaaa
hashfile:
  file.managed:
    - name: {{ d }}/hashfile
    - source: {{ d }}/existing5
    - source_hash: {{ d }}/hashes
checked:
  file.managed:
    - name: {{ d }}/checked
    - contents: x
    - makedirs: True
    - dir_mode: '0700'
dirmode:
  file.managed:
    - name: {{ d }}/dm/a/b
    - contents: x
    - makedirs: True
    - mode: '0640'
    - user: nobody
