//! Users, groups and passwords.

const HASH: &str = "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1";

const MADE: &str = "
g1: {group.present: [{gid: 7001}]}
g2: {group.present: [{system: True}]}
g3: {group.present: [{members: [daemon, bin]}]}
g4: {group.present: [{addusers: [daemon]}]}
taken: {group.present: [{gid: 7001}]}
no number: {group.present: [{name: g5}, {gid: abc}]}
no member: {group.present: [{name: g6}, {members: [nosuch]}]}
--x: {group.present: []}
ada:
  user.present:
    - uid: 5001
    - fullname: Ada L
    - roomnumber: 7
    - shell: /bin/bash
    - groups: [g1, g2]
    - optional_groups: [g3, nope]
    - password: 'HASH'
    - mindays: 1
    - maxdays: 90
    - warndays: 5
    - inactdays: 3
    - expire: 30000
    - date: 19000
bob: {user.present: [{system: True}, {createhome: False}, {home: /nonexistent}, {usergroup: False}]}
cyd: {user.present: [{empty_password: True}, {usergroup: True}, {other: 'a,b,c'}]}
dan: {user.present: [{groups: [nosuchgroup]}]}
eve: {user.present: [{fullname: 'a,b'}]}
-R: {user.present: []}
fay: {user.present: [{password: 'HASH'}]}
sync: {user.present: [{uid: 77}]}
games: {user.present: [{fullname: Game Player}, {shell: /bin/false}, {remove_groups: False}, {groups: [g1]}]}
news: {user.present: [{password: '!x'}, {groups: []}, {home: /srv/newshome}]}
by name: {user.present: [{gid: g1}, {name: man}, {allow_gid_change: True}]}
by number: {user.present: [{gid: 7001}, {name: lp}]}
no group: {user.present: [{name: hal}, {gid: nosuch}]}
";

pub(super) const CHANGED: &str = "
g1: {group.present: [{gid: 7002}]}
g3: {group.present: [{delusers: [daemon, nobody]}]}
g4: {group.present: [{addusers: [bin]}, {delusers: [daemon]}]}
conflict: {group.present: [{name: g4}, {addusers: [bin]}, {members: [daemon]}]}
both: {group.present: [{name: g4}, {addusers: [bin]}, {delusers: [bin]}]}
g2: {group.absent: []}
g2 again: {group.absent: [{name: g2}]}
root: {group.absent: []}
ada:
  user.present:
    - uid: 5002
    - allow_uid_change: True
    - fullname: Ada X
    - workphone: 123
    - groups: [g1]
    - shell: /bin/sh
    - home: /home/ada2
    - persist_home: True
    - password_lock: True
    - maxdays: 99
bob: {user.present: [{createhome: True}, {home: /srv/bobs/deep/bob}]}
cyd: {user.present: [{password: '$6$x$y'}, {enforce_password: False}]}
hashed: {user.present: [{name: fay}, {password: secret}, {hash_password: True}]}
other hash: {user.present: [{name: fay}, {password: '$5$new'}]}
nobody2: {user.absent: []}
games: {user.absent: [{purge: True}]}
cyd is gone: {user.absent: [{name: cyd}]}
";

pub(super) const THERE: &str =
    "cat /etc/passwd /etc/group /etc/gshadow; cut -d: -f1,2,4- /etc/shadow; ls -lanR --time-style=+ /home /srv";

pub(super) fn made() -> String {
    MADE.replace("HASH", HASH)
}
