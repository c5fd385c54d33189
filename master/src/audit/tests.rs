use std::path::Path;

use brine_protocol::event::Framing;
use brine_protocol::value::text;

use super::*;

fn audit(path: &Path, required: bool) -> Audit {
    let opts = AuditOpts { path: Some(path.to_owned()), required, hide: Vec::new() };
    Audit::open(opts, Bus::new(Framing::Bare, 1 << 20)).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| brine_protocol::config::yaml::load(line).unwrap()).collect()
}

#[test]
fn lines_are_private_and_bounded() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log/audit");
    let log = audit(&path, true);
    let long = "x".repeat(100_000);
    let record = AuditLine::new("publish", "allowed").whose("fred", "eauth", "192.0.2.1").put("tgt", long.as_str());
    log.write(record.clone().call("test.arg", &[text("a\nb"), text(long.as_str())])).unwrap();
    log.write(record.put("jid", "").call("test.arg", &[text("password=s1")])).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(std::fs::metadata(&path).unwrap().len() < 10_000);
    let lines = lines(&path);
    assert_eq!((lines[0].get_text("user"), lines[0].get_text("fun")), (Some("fred"), Some("test.arg")));
    assert!(lines[0].has("args_cut") && !lines[0].has("args"));
    assert!(lines[1].has("args") && !lines[1].has("jid"));
    assert!(!std::fs::read_to_string(&path).unwrap().contains("s1"));
}

#[test]
fn a_file_that_was_moved_away_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("audit"), dir.path().join("audit.1"));
    let log = audit(&path, true);
    log.write(AuditLine::new("wheel", "allowed")).unwrap();
    std::fs::rename(&path, &old).unwrap();
    log.reopen().unwrap();
    log.write(AuditLine::new("runner", "allowed")).unwrap();
    assert_eq!((lines(&old).len(), lines(&path)[0].get_text("action")), (1, Some("runner")));
    // Without a call of `reopen`, at the next check.
    std::fs::rename(&path, &old).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < end, "the file is not made again");
        log.write(AuditLine::new("runner", "allowed")).unwrap();
    }
}

#[test]
fn a_link_is_nobodys_log() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("other"), "").unwrap();
    std::os::unix::fs::symlink("other", dir.path().join("audit")).unwrap();
    let opts = AuditOpts { path: Some(dir.path().join("audit")), ..AuditOpts::default() };
    assert!(Audit::open(opts, Bus::new(Framing::Bare, 1 << 20)).is_err());
}

#[tokio::test]
async fn a_full_disk_is_told_and_is_the_operators_choice() {
    let dir = tempfile::tempdir().unwrap();
    for required in [true, false] {
        // A device that is always full.
        let mut log = audit(Path::new("/dev/full"), required);
        let events = log.bus.subscribe().unwrap();
        for _ in 0..3 {
            let written = log.write(AuditLine::new("publish", "allowed"));
            assert_eq!(written.is_err(), required);
        }
        let Some(Next::Event(event)) = events.next().await else { panic!() };
        assert_eq!((event.event.tag.as_str(), event.event.data.get_u64("lost")), ("brine/audit/lost", Some(1)));
        assert!(event.event.data.get_text("error").unwrap().contains("No space left"));

        let path = dir.path().join(format!("audit-{required}"));
        log.lock().unwrap().file = AuditFile::open(&path).unwrap();
        log.write(AuditLine::new("publish", "allowed")).unwrap();
        let lines = lines(&path);
        assert_eq!((lines[0].get_text("outcome"), lines[0].get_u64("lost")), (Some("lost"), Some(3)));
        assert_eq!(lines[1].get_text("action"), Some("publish"));
        log.opts.path = None;
    }
}

#[test]
fn strangers_do_not_fill_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit");
    let log = audit(&path, false);
    log.lock().unwrap().room = (Instant::now() + Duration::from_secs(3_600), 2);
    for _ in 0..1_000 {
        log.stranger(AuditLine::new("login", "refused"));
    }
    log.write(AuditLine::new("publish", "allowed")).unwrap();
    assert_eq!(lines(&path).len(), 3, "who proved who it is has no bound here");
    log.lock().unwrap().room = (Instant::now(), 1);
    log.stranger(AuditLine::new("login", "refused"));
    assert_eq!(lines(&path)[3].get_u64("untold"), Some(998));
}
