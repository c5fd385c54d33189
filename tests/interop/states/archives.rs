//! Unpacked archives.

use brine_tests::salt::python;

use super::Side;

/// Makes archives of all kinds, and folders in which something is in the way.
const MADE: &str = "
mkdir -p /srv/t/top/sub /srv/dest2; cd /srv/t
echo hello > top/a; echo x > top/sub/b; chmod 750 top/sub/b; ln -s a top/link; ln top/a top/hard; ln -s /etc top/etc
mkdir top/empty; chmod 700 top/empty; chown -R 1:1 top/sub; chmod 2755 top/sub; chmod 4755 top/a
find . -exec touch -h -d @1700000000 {} +
tar czf /srv/a.tar.gz top; tar cf /srv/plain.tar top/a top/sub; tar cf /srv/two.tar -C top a sub
tar cf /srv/dot.tar -C top .; cp /srv/a.tar.gz /srv/noext; echo junk > /srv/junk.zip; echo old > /srv/dest2/x
mkdir -p /srv/w/top/a /srv/w2; touch /srv/w2/top
";

/// By Python: what this host may lack programs for.
const MORE: &str = r#"
import io, tarfile, zipfile
for kind, name in (("xz", "a.tar.xz"), ("bz2", "a.tbz2")):
    with tarfile.open("/srv/" + name, "w:" + kind) as archive:
        archive.add("/srv/t/top", "top")
with tarfile.open("/srv/owned.tar", "w") as archive:
    for name, owner, mode in (("top/f", "news", 0o640), ("top/g", "nosuch", 0o600)):
        member = tarfile.TarInfo(name)
        member.size, member.uid, member.gid, member.mode = 1, 4242, 4243, mode
        member.uname = member.gname = owner
        archive.addfile(member, io.BytesIO(b"x"))
with zipfile.ZipFile("/srv/a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name in ("top/", "top/a", "top/sub/", "top/sub/b"):
        archive.write("/srv/t/" + name, name)
    link = zipfile.ZipInfo("top/link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    archive.writestr(link, "a")
with zipfile.ZipFile("/srv/nodirs.zip", "w") as archive:
    archive.write("/srv/t/top/a", "top/a")
    archive.write("/srv/t/top/sub/b", "top/sub/b")
"#;

pub(super) const STATES: &str = "
/srv/o1: {archive.extracted: [{source: /srv/a.tar.gz}]}
/srv/o2: {archive.extracted: [{source: /srv/a.tar.xz}, {user: news}, {group: daemon}]}
/srv/o3/deep/x: {archive.extracted: [{source: /srv/a.tbz2}, {trim_output: 2}, {user: news}]}
/srv/o4: {archive.extracted: [{source: /srv/plain.tar}]}
/srv/o5: {archive.extracted: [{source: /srv/two.tar}]}
/srv/o6: {archive.extracted: [{source: /srv/two.tar}, {enforce_toplevel: False}]}
/srv/o7: {archive.extracted: [{source: /srv/dot.tar}, {enforce_toplevel: False}]}
/srv/z1: {archive.extracted: [{source: /srv/a.zip}]}
/srv/z4: {archive.extracted: [{source: /srv/nodirs.zip}, {trim_output: 1}]}
/srv/j1: {archive.extracted: [{source: /srv/junk.zip}]}
/srv/j3: {archive.extracted: [{source: /srv/nosuch.tar}]}
/srv/j4: {archive.extracted: [{source: /srv/noext}]}
/srv/j5: {archive.extracted: [{source: /srv/noext}, {archive_format: cpio}]}
/srv/h1: {archive.extracted: [{source: /srv/noext}, {archive_format: tar}, {skip_verify: True}]}
/srv/h2: {archive.extracted: [{source: [/srv/nosuch.tar, /srv/a.tar.gz]}]}
/srv/h3: {archive.extracted: [{source: /srv/a.tar.gz}, {source_hash: md5=00000000000000000000000000000000}]}
/srv/h4: {archive.extracted: [{source: /srv/a.tar.gz}, {source_hash: xx}]}
/srv/m1: {archive.extracted: [{source: /srv/a.tar.gz}, {if_missing: /etc/passwd}]}
/srv/m2: {archive.extracted: [{source: /srv/a.tar.gz}, {if_missing: /srv/m2/nope}, {overwrite: True}]}
relative: {archive.extracted: [{source: /srv/a.tar.gz}]}
/etc/passwd: {archive.extracted: [{source: /srv/a.tar.gz}]}
/srv/w: {archive.extracted: [{source: /srv/a.tar.gz}]}
/srv/u1: {archive.extracted: [{source: /srv/owned.tar}]}
/srv/u2: {archive.extracted: [{source: /srv/owned.tar}, {user: nosuchuser}]}
/srv/p1: {archive.extracted: [{source: /srv/a.tar.gz}, {options: --strip-components=1}, {enforce_toplevel: False}]}
/srv/p2: {archive.extracted: [{source: /srv/a.tar.gz}, {options: v}]}
/srv/dest2: {archive.extracted: [{source: /srv/a.tar.gz}, {clean: True}, {overwrite: True}]}
/srv/dest3: {archive.extracted: [{source: /srv/a.tar.gz}, {enforce_ownership_on: /srv/dest3/top/sub}, {user: news}]}
/srv/dest4: {archive.extracted: [{source: /srv/a.tar.gz}, {clean_parent: True}]}
";

/// Names, types, modes, owners, links and contents of what there is, and the times of what a tar archive has.
pub(super) const THERE: &str = "
cd /srv; find o? m? z? w dest? u? p? -printf '%p %y %m %U %G %l %n\\n' | sort; find o? m? z? w dest? u? p? -type f | sort | xargs sha256sum; find o1 u1 p1 -type f -printf '%p %Ts\\n' | sort";

/// Archives that would write outside of their folder. Python's tarfile lets them, so there is nothing to compare with.
const HOSTILE: &str = r#"
import io, tarfile, zipfile
def add(archive, name, kind=tarfile.REGTYPE, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, 2 if kind == tarfile.REGTYPE else 0
    archive.addfile(member, io.BytesIO(b"no") if member.size else None)
def tar(path, *members):
    with tarfile.open(path, "w") as archive:
        for member in members:
            add(archive, *member)
tar("/srv/up.tar", ("../escaped",))
tar("/srv/deep.tar", ("a/../../escaped",))
tar("/srv/root.tar", ("/srv/escaped",))
tar("/srv/link.tar", ("out", tarfile.SYMTYPE, "/srv/outside"), ("out/escaped",))
tar("/srv/hard.tar", ("shadow", tarfile.LNKTYPE, "../../etc/shadow"))
tar("/srv/pipe.tar", ("pipe", tarfile.FIFOTYPE))
tar("/srv/first.tar", ("out", tarfile.SYMTYPE, "/srv/outside"))
tar("/srv/second.tar", ("out/escaped",))
with zipfile.ZipFile("/srv/up.zip", "w") as archive:
    archive.writestr("../escaped", "no")
"#;

/// A line of shell that makes the archives.
pub(super) fn made() -> String {
    format!("mkdir -p /srv/outside\n{MADE}\n'{}' - <<'MORE'\n{MORE}{HOSTILE}\nMORE\n", python().display())
}

/// No archive writes outside of its folder.
pub(super) fn none_leads_out(side: &Side) {
    let states: String = ["up.tar", "deep.tar", "root.tar", "link.tar", "hard.tar", "pipe.tar", "first.tar", "second.tar", "up.zip"]
        .iter()
        .map(|name| {
            let folder = if name.starts_with("first") || name.starts_with("second") { "both" } else { name };
            format!("{name}:\n  archive.extracted: [{{name: /srv/in/{folder}}}, {{source: /srv/{name}}}, {{enforce_toplevel: False}}]\n")
        })
        .collect();
    let applied = side.apply(&states, false);
    for (id, state) in applied.as_object().expect("states") {
        assert_eq!(state["result"], id.contains("first.tar"), "{id}: {state}");
    }
    assert_eq!(side.root.shell("cd /srv; find . -name escaped; find in ! -type d; ls outside"), "in/both/out\n");
}
