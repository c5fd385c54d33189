//! Grants and revokes lines: in the owner's own file, checked as the minion will read it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_patterns::Glob;
use brine_protocol::config::{SCHEDULE_FILE, settings, yaml};
use brine_protocol::files::replace_durable;
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::Settings;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use similar::{ChangeTag, TextDiff};

use super::line::OwnersLine;
use super::value::{at, put, same, take};
use super::{edit, risk};
use crate::config::MinionOpts;

/// The file that is made where no file has a section `sandbox`, among those that are included.
const OWN_FILE: &str = "sandbox.conf";
const SECTION: &str = "sandbox";
/// How long others may have the configuration, who read and write one small file each.
const PATIENCE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(5);

/// What is to become of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Its entry is granted beside what is there.
    Grant,
    /// What it names is taken away.
    Revoke,
}

/// Grants or revokes a line, or with `test` says what would change. Returns a map: the file, the changed lines, and a word on the risk.
/// Blocks on the disk.
///
/// # Errors
/// One line: nothing was changed.
pub(crate) fn carry_out(opts: &MinionOpts, deed: Deed, text: &str, test: bool) -> Result<Value, String> {
    let line = OwnersLine::parse(text)?;
    let _lock = lock(&opts.conf_dir, PATIENCE)?;
    // This program may have read its configuration before another one granted.
    let said_now = opts.sandbox_on_disk()?;
    let file = File::find(opts, &said_now)?;
    let by_hand = |why: &str| {
        let path = file.path.display();
        format!("{why}; nothing was changed: write it into {path} by hand, below sandbox: modules:  {text}")
    };
    let added = |line: &OwnersLine, to: Option<&Value>| {
        let why = |why: String| {
            line.not_its_content(to).map_or_else(|| by_hand(&why), |why| format!("nothing was changed: {why}"))
        };
        line.added_to(to).map_err(why)
    };
    let present = at(&file.value, &line.path).cloned();
    let (new, changed) = match deed {
        Deed::Grant => {
            let new = added(&line, present.as_ref())?;
            let changed = present.as_ref() != Some(&new);
            (Some(new), changed)
        }
        Deed::Revoke => {
            let Some(mut left) = present.clone() else {
                return Err(format!("{} has no such entry: {}", file.path.display(), line.path.join(":")));
            };
            let empty = take(&mut left, &line.entry);
            let changed = empty || present.as_ref() != Some(&left);
            ((!empty).then_some(left), changed)
        }
    };
    if !changed {
        let already = if deed == Deed::Grant { "says this already" } else { "does not say this" };
        return Err(format!("{} {already}", file.path.display()));
    }
    // What the minion will read, before anything is written.
    let mut expected = file.value.clone();
    put(&mut expected, &line.path, new.clone()).map_err(|why| by_hand(&why))?;
    let mut whole = said_now;
    if file.is_all {
        whole = expected.get(SECTION).cloned().unwrap_or(Value::Nil);
    } else if let (Deed::Grant, Some(entry)) = (deed, new) {
        let merged = added(&OwnersLine { path: line.path.clone(), entry }, at(&whole, &line.path[1..]))?;
        put(&mut whole, &line.path[1..], Some(merged)).map_err(|why| by_hand(&why))?;
    }
    Settings::load(&whole, &opts.conf_dir).map_err(|why| format!("{why}; nothing was changed"))?;
    let style = "the file is not in the style that this can change";
    let edited = edit::edit(&file.text, &line.path, &file.value, &expected).ok_or_else(|| by_hand(style))?;
    let read = yaml::load(&edited).map_err(|_| by_hand(style))?;
    if !same(&read, &expected) {
        return Err(by_hand(style));
    }
    let changes = diff(&file.text, &edited);
    if !test {
        file.write(&edited).map_err(|error| format!("{}: {error}; nothing was changed", file.path.display()))?;
    }
    let mut said = vec![
        ("file", Value::from(file.path.display().to_string())),
        ("diff", Value::from(changes)),
        ("written", Value::from(!test)),
    ];
    if deed == Deed::Grant {
        // The line can make stronger what the entry says already, in this file or in another one.
        let entry = at(&whole, &line.path[1..]).unwrap_or(&line.entry);
        said.push(("risk", Value::from(risk::of(line.key(), entry))));
    }
    if !test {
        said.push((
            "next",
            Value::from(
                "a running minion takes it up when it reads its configuration again: systemctl reload salt-minion",
            ),
        ));
    }
    Ok(map(said))
}

/// Keeps other programs that grant or revoke away until it is dropped: each reads what the one before it wrote. The folder is locked, so that
/// no file beside the configuration is needed.
fn lock(folder: &Path, patience: Duration) -> Result<OwnedFd, String> {
    let failed = |error: Errno| format!("{}: {error}; nothing was changed", folder.display());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder_fd = rustix::fs::open(folder, flags, Mode::empty()).map_err(failed)?;
    let since = Instant::now();
    loop {
        match rustix::fs::flock(&folder_fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder_fd),
            Err(Errno::WOULDBLOCK | Errno::INTR) if since.elapsed() < patience => std::thread::sleep(TICK),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                return Err(format!(
                    "another sandbox.grant or sandbox.revoke has kept {} for {} s; nothing was changed: try again",
                    folder.display(),
                    patience.as_secs()
                ));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The file with the owner's section.
struct File {
    path: PathBuf,
    text: String,
    /// Its content.
    value: Value,
    /// No other file has a section that is merged with this one.
    is_all: bool,
}

impl File {
    /// Finds the file: an included one takes the place of the main one, as when the configuration is read.
    fn find(opts: &MinionOpts, all: &Value) -> Result<Self, String> {
        let file = Self::find_own(opts)?;
        let said = file.value.get(SECTION).unwrap_or(&Value::Nil);
        if file.is_all && (said.truthy() || all.truthy()) && !same(said, all) {
            return Err(format!(
                "{} is not all that the configuration says of sandbox, so the line has to be written by hand",
                file.path.display()
            ));
        }
        Ok(file)
    }

    fn find_own(opts: &MinionOpts) -> Result<Self, String> {
        let pattern = opts.config.get(settings::DEFAULT_INCLUDE).map_err(|error| error.to_string())?;
        let (folder, names) = pattern.rsplit_once('/').unwrap_or(("", &pattern));
        let glob = Glob::new(names);
        if folder.contains(['*', '?', '[']) || !glob.matches(OWN_FILE) {
            return Err(format!("default_include is {pattern}, so the line has to be written by hand"));
        }
        let is_read = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            glob.matches(name) && !name.starts_with('.') && name != SCHEDULE_FILE
        };
        let included = opts.conf_dir.join(folder);
        let mut paths: Vec<PathBuf> = match fs::read_dir(&included) {
            Ok(items) => items.flatten().map(|item| item.path()).filter(is_read).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(format!("{}: {error}", included.display())),
        };
        paths.sort();
        let mut found = Vec::new();
        for path in paths {
            let (text, value) = read(&path)?;
            if value.get(SECTION).is_some() {
                found.push(Self { path, text, value, is_all: true });
            }
        }
        if found.len() > 1 {
            let own = found.iter().position(|file| file.path.file_name().is_some_and(|name| name == OWN_FILE));
            let Some(own) = own else {
                let names: Vec<String> = found.iter().map(|file| file.path.display().to_string()).collect();
                return Err(format!(
                    "{} each have a section sandbox, so the line has to be written by hand",
                    names.join(" and ")
                ));
            };
            let mut own = found.swap_remove(own);
            own.is_all = false;
            return Ok(own);
        }
        if let Some(file) = found.pop() {
            return Ok(file);
        }
        let main = opts.conf_dir.join("minion");
        let (text, value) = read(&main)?;
        if value.get(SECTION).is_some() {
            return Ok(Self { path: main, text, value, is_all: true });
        }
        let path = included.join(OWN_FILE);
        let (text, value) = read(&path)?;
        Ok(Self { path, text, value, is_all: true })
    }

    /// Replaces the file at once, with its mode and owner. A symbolic link stays one.
    fn write(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new("/")))?;
        match read(&self.path) {
            Ok((now, _)) if now == self.text => replace_durable(&self.path, text.as_bytes(), 0o600),
            _ => Err(io::Error::other("somebody else has just changed it")),
        }
    }
}

/// The text and the content of a file; empty ones if it is not there.
fn read(path: &Path) -> Result<(String, Value), String> {
    let failed = |why: String| format!("{}: {why}", path.display());
    let text = match brine_files::read_named_text(path, yaml::MAX_TEXT as u64) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The new file would take the link's place.
            if path.is_symlink() {
                return Err(failed("it is a link to what is not there".to_owned()));
            }
            String::new()
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    let value = yaml::load(&text).map_err(|error| failed(error.to_string()))?;
    match value {
        map @ Value::Map(_) => Ok((text, map)),
        Value::Nil => Ok((text, Value::Map(Vec::new()))),
        _ => Err(failed("it is no map".to_owned())),
    }
}

/// The lines that differ: those that go with `-`, those that come with `+`.
fn diff(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let changes = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    changes.map(|change| format!("{}{}", change.tag(), change.value().trim_end())).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Each reads the configuration before any has written, as programs that are started together do.
    #[test]
    fn lines_of_many_at_once_all_arrive() {
        const MANY: usize = 24;
        let dir = tempfile::tempdir().unwrap();
        let own = "# mine\nsandbox:\n  modules:\n    # ours\n    cmd: {process: [/bin/0]}   # the first\n";
        fs::write(dir.path().join("minion"), own).unwrap();
        let at_once = |deed: Deed, line: &(dyn Fn(usize) -> String + Sync)| {
            let barrier = Barrier::new(MANY);
            std::thread::scope(|scope| {
                for nth in 1..=MANY {
                    let (barrier, folder) = (&barrier, dir.path());
                    scope.spawn(move || {
                        let opts = MinionOpts::load(folder, Some("web1")).unwrap();
                        barrier.wait();
                        carry_out(&opts, deed, &line(nth), false).unwrap();
                    });
                }
            });
            fs::read_to_string(dir.path().join("minion")).unwrap()
        };
        // One entry, and entries of their own.
        let line = |nth: usize| match nth % 2 {
            0 => format!("cmd: {{process: [/bin/{nth}]}}"),
            _ => format!("m{nth}: {{grains: true}}"),
        };
        let text = at_once(Deed::Grant, &line);
        let value = yaml::load(&text).unwrap();
        let modules = value.get(SECTION).and_then(|section| section.get("modules")).unwrap();
        let programs = modules.get("cmd").and_then(|cmd| cmd.get_list("process")).unwrap();
        assert_eq!((modules.entries().unwrap().len(), programs.len()), (1 + MANY / 2, 1 + MANY / 2), "{text}");
        for comment in ["# mine", "# ours", "# the first"] {
            assert!(text.contains(comment), "{comment}: {text}");
        }
        assert_eq!(at_once(Deed::Revoke, &line), own);
    }

    #[test]
    fn who_waits_too_long_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(dir.path(), Duration::ZERO).unwrap();
        let error = lock(dir.path(), Duration::ZERO).unwrap_err();
        assert!(error.contains("another sandbox.grant") && error.contains("nothing was changed"), "{error}");
        drop(held);
        lock(dir.path(), Duration::ZERO).unwrap();
    }

    /// A configuration folder with these files, the included ones as `minion.d/NAME`.
    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, MinionOpts) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("minion.d")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let opts = MinionOpts::load(dir.path(), Some("web1")).unwrap();
        (dir, opts)
    }

    const LINE: &str = "cmd: {process: [/bin/x]}";
    const OWN: &str = "sandbox:\n  modules:\n    cmd: {process: [/bin/x]}\n";

    #[test]
    fn the_file_is_the_one_with_the_section() {
        let other = "sandbox:\n  learn: true   # l\n";
        let with = "sandbox:\n  learn: true   # l\n  modules:\n    cmd: {process: [/bin/x]}\n";
        let (main, own, a, b) = ("minion", "minion.d/sandbox.conf", "minion.d/a.conf", "minion.d/b.conf");
        for (files, changed) in [
            (&[][..], Ok((own, OWN))),
            (&[(main, "user: root\n")], Ok((own, OWN))),
            (&[(main, other)], Ok((main, with))),
            (&[(a, other), (main, "user: root\n")], Ok((a, with))),
            (&[(a, other), (own, other)], Ok((own, with))),
            (&[(a, other), (b, other)], Err("each have a section sandbox")),
            // What is not included is not read.
            (&[("minion.d/a.txt", "sandbox: {x: [\n"), ("minion.d/.a.conf", other)], Ok((own, OWN))),
            (&[(main, "sandbox: {modules: {cmd: {process: false}}}\n")], Err("would replace")),
        ] {
            let (dir, opts) = folder(files);
            let done = carry_out(&opts, Deed::Grant, LINE, false);
            match changed {
                Ok((file, text)) => {
                    let done = done.unwrap();
                    assert!(done.get_text("file").unwrap().ends_with(file), "{files:?}: {done}");
                    assert_eq!(fs::read_to_string(dir.path().join(file)).unwrap(), text, "{files:?}");
                }
                Err(why) => assert!(done.unwrap_err().contains(why), "{files:?}"),
            }
            for (name, text) in files.iter().filter(|(name, _)| changed.is_err() || changed.unwrap().0 != *name) {
                assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), *text, "{files:?}");
            }
        }
    }

    /// What the owner granted to one content is not another's because a line for that one is granted.
    #[test]
    fn a_new_content_gets_what_the_line_says_and_nothing_else() {
        let hash = |byte: &str| format!("\"{}\"", byte.repeat(32));
        let (old, new) = (hash("0a"), hash("0b"));
        let entry = format!("st: {{sha256: {old}, filesystem: {{/srv: rw}}, pillar: [secrets], states: []}}");
        let text = format!("sandbox:\n  modules:\n    x: {{grains: true}}\n    {entry}   # mine\n");
        let line = format!("st: {{sha256: {new}, states: [st.slow]}}");
        let (main, other, own) = ("minion", "minion.d/a.conf", "minion.d/sandbox.conf");
        for files in [&[(main, text.as_str())][..], &[(other, &text), (own, "sandbox: {learn: true}\n")]] {
            let (dir, opts) = folder(files);
            let why = carry_out(&opts, Deed::Grant, &line, false).unwrap_err();
            assert!(why.contains("nothing was changed") && why.contains("sandbox.revoke 'st: "), "{why}");
            for (file, text) in files {
                assert_eq!(fs::read_to_string(dir.path().join(file)).unwrap(), *text);
            }
        }
        // The command that it names, and then the line.
        let (dir, opts) = folder(&[(main, &text)]);
        let why = carry_out(&opts, Deed::Grant, &line, false).unwrap_err();
        let revoke = why.split_once("sandbox.revoke '").unwrap().1.strip_suffix('\'').unwrap();
        carry_out(&opts, Deed::Revoke, revoke, false).unwrap();
        carry_out(&opts, Deed::Grant, &line, false).unwrap();
        let now = fs::read_to_string(dir.path().join(main)).unwrap();
        assert!(now.contains("st.slow") && !now.contains("secrets") && !now.contains("/srv"), "{now}");
    }

    /// Harmless by itself, and with what is there as good as the whole host.
    #[test]
    fn the_risk_is_that_of_the_entry_as_it_will_be() {
        let own = "sandbox:\n  modules:\n    m: {process: [/srv/app/run]}\n";
        for files in
            [&[("minion", own)][..], &[("minion.d/a.conf", own), ("minion.d/sandbox.conf", "sandbox: {learn: true}\n")]]
        {
            let (_dir, opts) = folder(files);
            let done = carry_out(&opts, Deed::Grant, "m: {filesystem: {/srv/app: rw}}", true).unwrap();
            let risk = done.get_text("risk").unwrap();
            assert!(risk.starts_with("high: m could run anything as /srv/app/run"), "{files:?}: {risk}");
        }
    }

    /// A file that became something else since the configuration was read.
    #[test]
    fn links_stay_and_what_is_no_file_of_the_owner_is_left() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let elsewhere = tempfile::tempdir().unwrap();
        let real = elsewhere.path().join("real");
        fs::write(&real, "# r\nsandbox:\n  learn: true\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        let (dir, opts) = folder(&[]);
        let own = dir.path().join("minion.d/sandbox.conf");
        symlink(&real, &own).unwrap();
        carry_out(&opts, Deed::Grant, LINE, false).unwrap();
        assert!(own.is_symlink() && fs::read_to_string(&real).unwrap().contains("/bin/x"));
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o640);

        let refused = |make: &dyn Fn(&Path), why: &str| {
            let (dir, opts) = folder(&[]);
            let own = dir.path().join("minion.d/sandbox.conf");
            make(&own);
            let error = carry_out(&opts, Deed::Grant, LINE, false).unwrap_err();
            assert!(error.contains(why) && error.contains("sandbox.conf"), "{error}");
            assert!(fs::symlink_metadata(&own).is_ok_and(|it| !it.is_file() || it.len() != OWN.len() as u64));
        };
        refused(&|own| symlink("/nowhere/at/all", own).unwrap(), "");
        refused(&|own| fs::create_dir(own).unwrap(), "");
        refused(
            &|own| rustix::fs::mknodat(rustix::fs::CWD, own, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap(),
            "",
        );
        refused(&|own| fs::write(own, b"sandbox: \xff").unwrap(), "");
        refused(&|own| fs::write(own, "a: 1\na: 2\n").unwrap(), "twice");
        refused(&|own| fs::write(own, "a: 1\n---\nb: 2\n").unwrap(), "single document");
        refused(&|own| fs::write(own, "- a\n").unwrap(), "");
        // Somebody else could write it, and so grant by himself.
        let others = |own: &Path| {
            fs::write(own, "user: root\n").unwrap();
            fs::set_permissions(own, fs::Permissions::from_mode(0o666)).unwrap();
        };
        refused(&others, "");
        if rustix::process::geteuid().is_root() {
            refused(
                &|own| {
                    fs::write(own, "user: root\n").unwrap();
                    std::os::unix::fs::chown(own, Some(65_534), None).unwrap();
                },
                "",
            );
        }
    }
}
