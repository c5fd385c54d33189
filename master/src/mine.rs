//! The mine (§6.1): data that minions share with each other. One file for each minion, `cachedir/mine/<id>.p`, as in
//! Salt 3008.
//!
//! The channel proves the sender, and a minion writes only its own file. An entry can restrict its readers
//! (`allow_tgt`), and the master's `mine_get` restricts which minions may read which names.
//!
//! Both kinds of target are resolved with the data that the master has. Unknown data matches no minion. Pillar of other
//! minions is compared exactly, without patterns; otherwise a minion could find out pillar values with a few requests.

use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use brine_protocol::config::settings;
use brine_protocol::ids::MinionId;
use brine_protocol::msgpack;
use brine_protocol::options;
use brine_protocol::target::{Known, Nodegroups, Regex, Target, TargetType};
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use tokio::sync::Semaphore;

use crate::files;
use crate::of_one::OfOne;

/// Bound on the packed data of one minion.
const MINION_BYTES_MAX: usize = 4 << 20;
/// Bound on the names of one minion.
const NAMES_MAX: usize = 1_024;
const NAME_BYTES_MAX: usize = 256;
/// Bound on the names in one request.
const ASKED_MAX: usize = 64;
/// Bound on the packed size of an answer, which is one message.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Bound on concurrent requests, because each may read the files of all minions. One minion gets one of them at a time, whatever it asks:
/// otherwise it could keep all others waiting until they give up.
const AT_A_TIME: usize = 4;

/// Marks an entry with restricted readers.
const ACL: &str = "__saltmine_acl__";
const ACL_DATA: &str = "__data__";

options! {
    /// The settings of the mine.
    #[derive(Debug)]
    pub(crate) struct MineOpts from c {
        /// `minion_data_cache`; if false, nothing is kept, as in Salt.
        on: bool = c.get(settings::MINION_DATA_CACHE)?,
        /// `mine_get`: which minions may read which names; `None`: all minions may read all names.
        may_get: Option<Value> = c.find(settings::MINE_GET)?,
        groups: Nodegroups = Nodegroups::new(&c.get(settings::NODEGROUPS)?),
    }
}

/// The mine.
pub(crate) struct Mine {
    inner: Arc<Inner>,
    at_a_time: Arc<Semaphore>,
    of_one: OfOne,
}

struct Inner {
    /// The folder with the minions' grains and pillar.
    cachedir: PathBuf,
    dir: PathBuf,
    /// `minion_data_cache`; if false, nothing is kept, as in Salt.
    on: bool,
    rules: ArcSwap<MineRules>,
    /// Held while one request reads, changes and writes a file.
    writing: Mutex<()>,
}

/// The rules about which minions may read which names.
pub(crate) struct MineRules {
    groups: Nodegroups,
    /// `mine_get`: patterns of minions with the patterns of names that they may read; `None`: no restriction.
    may_get: Option<Vec<(Regex, Vec<Regex>)>>,
}

impl MineRules {
    /// Reads the rules. The error is a text for the operator.
    pub(crate) fn read(opts: &MineOpts) -> Result<Self, String> {
        Ok(Self { groups: opts.groups.clone(), may_get: opts.may_get.as_ref().map(permissions).transpose()? })
    }
}

/// A change that a minion requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MineRequest {
    Put,
    Delete,
    Flush,
}

impl Mine {
    /// Makes the mine below `cachedir`. The error is a text for the operator.
    pub(crate) fn new(cachedir: &std::path::Path, opts: &MineOpts) -> Result<Self, String> {
        let rules = ArcSwap::from_pointee(MineRules::read(opts)?);
        let dir = cachedir.join("mine");
        let inner = Inner { cachedir: cachedir.to_owned(), dir, on: opts.on, rules, writing: Mutex::new(()) };
        Ok(Self { inner: Arc::new(inner), at_a_time: Arc::new(Semaphore::new(AT_A_TIME)), of_one: OfOne::new(1) })
    }

    /// Replaces the rules.
    pub(crate) fn replace(&self, rules: MineRules) {
        self.inner.rules.store(rules.into());
    }

    /// Changes the data of a minion. The error is the reason of a refusal.
    pub(crate) async fn change(&self, id: &MinionId, what: MineRequest, load: &Value) -> Result<(), String> {
        let (by, id, load) = (id, id.clone(), load.clone());
        self.blocking(Some(by), move |inner| inner.change(&id, what, &load))
            .await
            .unwrap_or_else(|| Err("it failed".to_owned()))
    }

    /// Answers `_mine_get` of a minion from the data of the `accepted` minions. The error is the reason of a refusal.
    pub(crate) async fn get(&self, id: &MinionId, load: &Value, accepted: Arc<Vec<MinionId>>) -> Result<Value, String> {
        let (by, id, load) = (id, id.clone(), load.clone());
        self.blocking(Some(by), move |inner| inner.get(&id, &load, &accepted))
            .await
            .unwrap_or_else(|| Err("it failed".to_owned()))
    }

    /// Removes the data of minions without an accepted key, so that another minion with the same id does not inherit
    /// it.
    pub(crate) async fn forget(&self, is_accepted: impl Fn(&MinionId) -> bool + Send + 'static) {
        let forgotten = self.blocking(None, move |inner| inner.forget(is_accepted)).await;
        if let Some(Err(e)) = forgotten {
            tracing::warn!("the mine of minions that are gone cannot be removed: {e}");
        }
    }

    /// Does a minion's work, or the master's own.
    async fn blocking<T: Send + 'static>(
        &self,
        by: Option<&MinionId>,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Option<T> {
        // First its own turn: what waits for one takes no place of the others.
        let own = match by {
            Some(id) => self.of_one.turn(id).await,
            None => None,
        };
        let permit = Arc::clone(&self.at_a_time).acquire_owned().await.ok()?;
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || {
            let done = work(&inner);
            drop((permit, own));
            done
        })
        .await
        .ok()
    }
}

impl Inner {
    fn change(&self, id: &MinionId, what: MineRequest, load: &Value) -> Result<(), String> {
        if !self.on {
            return Ok(());
        }
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let said = |e: io::Error| format!("its file: {e}");
        let mut shown = match what {
            MineRequest::Flush => empty_map(),
            _ => self.read(id).map_err(said)?,
        };
        match what {
            MineRequest::Put => {
                let data = load.get("data").and_then(ValueExt::entries).ok_or("its data is no dict")?;
                // Each is searched among the others.
                if data.len() > NAMES_MAX {
                    return Err(format!("it would have more than {NAMES_MAX} names"));
                }
                if load.get("clear").is_some_and(ValueExt::truthy) {
                    shown = empty_map();
                }
                for (name, value) in data {
                    let name = name.text().filter(|name| is_name(name)).ok_or("a name in it is none")?;
                    shown.insert(name, value.clone());
                }
            }
            MineRequest::Delete => {
                let name = load.get_text("fun").ok_or("it names nothing")?;
                if shown.remove(name).is_none() {
                    return Ok(());
                }
            }
            MineRequest::Flush => {}
        }
        let path = self.path(id);
        let count = shown.entries().map_or(0, <[_]>::len);
        if count == 0 {
            return match std::fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(said(e)),
                _ => Ok(()),
            };
        }
        if count > NAMES_MAX {
            return Err(format!("it would have more than {NAMES_MAX} names"));
        }
        let packed = msgpack::encode_disk(&shown);
        if packed.len() > MINION_BYTES_MAX {
            return Err(format!("it would have more than {MINION_BYTES_MAX} bytes"));
        }
        files::make_private_dir(&self.dir).and_then(|()| files::write_atomic(&path, &packed, 0o600)).map_err(said)
    }

    fn get(&self, id: &MinionId, load: &Value, accepted: &[MinionId]) -> Result<Value, String> {
        let (names, several) = match load.get("fun") {
            Some(Value::Array(names)) => (names.iter().filter_map(ValueExt::text).collect::<Vec<_>>(), true),
            Some(fun) => {
                let names: Vec<&str> = fun.text().unwrap_or_default().split(',').collect();
                let several = names.iter().any(|name| name != &names[0]);
                (names, several)
            }
            None => return Ok(empty_map()),
        };
        if names.len() > ASKED_MAX {
            return Err(format!("more than {ASKED_MAX} names are asked for"));
        }
        let names: Vec<&str> = names.into_iter().filter(|name| is_name(name) && self.may(id, name)).collect();
        if names.is_empty() {
            return Ok(empty_map());
        }
        let kind = load.get_text("tgt_type").or_else(|| load.get_text("expr_form")).unwrap_or("glob");
        // Pillar targets of minions are always exact.
        let kind = match kind {
            "pillar" | "pillar_pcre" => "pillar_exact",
            "compound" => "compound_pillar_exact",
            other => other,
        };
        let Some(target) = self.target(kind, load.get("tgt")) else { return Ok(empty_map()) };
        let asks = OnceCell::new();
        // Each name with the minions that have it, of which there are none twice.
        let mut found: Vec<(&str, Vec<(Value, Value)>)> = Vec::new();
        let mut bytes = 0;
        for minion in accepted {
            if !target.matches(&Known::read(&self.cachedir, minion, &target).strictly().facts()) {
                continue;
            }
            // A file that cannot be read is skipped, and the data of the other minions is still returned.
            let Ok(shown) = self.read(minion) else { continue };
            for name in &names {
                let asks = || asks.get_or_init(|| Known::read_all(&self.cachedir, id).strictly());
                let Some(value) = shown.get(name).and_then(|entry| self.visible(entry, asks)) else { continue };
                bytes += msgpack::encode_disk(value).len();
                if bytes > ANSWER_BYTES_MAX {
                    return Err(format!("the answer would have more than {ANSWER_BYTES_MAX} bytes"));
                }
                let entry = (Value::from(minion.as_str()), value.clone());
                match found.iter_mut().find(|(known, _)| known == name) {
                    Some((_, minions)) => minions.push(entry),
                    None => found.push((name, vec![entry])),
                }
            }
        }
        let mut found = found.into_iter().map(|(name, minions)| (name, Value::Map(minions)));
        if several {
            return Ok(map(found));
        }
        Ok(found.next().map_or_else(empty_map, |(_, minions)| minions))
    }

    /// Returns the value of an entry if the requesting minion may read it. An invalid `allow_tgt` allows no minion.
    fn visible<'a, 'b>(&self, entry: &'a Value, asks: impl FnOnce() -> &'b Known<'b>) -> Option<&'a Value> {
        if !entry.has(ACL) {
            return Some(entry);
        }
        let value = entry.get(ACL_DATA)?;
        match entry.get("allow_tgt").filter(|tgt| tgt.truthy()) {
            None => Some(value),
            Some(tgt) => {
                let kind = entry.get_text("allow_tgt_type").unwrap_or("glob");
                self.target(kind, Some(tgt))?.matches(&asks().facts()).then_some(value)
            }
        }
    }

    fn target(&self, kind: &str, tgt: Option<&Value>) -> Option<Target> {
        Target::parse_with(kind.parse::<TargetType>().ok()?, tgt?, ":", &self.rules.load().groups).ok()
    }

    fn may(&self, id: &MinionId, name: &str) -> bool {
        let rules = self.rules.load();
        let Some(rules) = &rules.may_get else { return true };
        let of_this = rules.iter().filter(|(who, _)| who.matches(id.as_str()));
        of_this.flat_map(|(_, what)| what).any(|what| what.matches(name))
    }

    fn forget(&self, is_accepted: impl Fn(&MinionId) -> bool) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| MinionId::try_from(name.strip_suffix(".p")?).ok());
            if id.is_some_and(|id| !is_accepted(&id)) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Reads the data of a minion. Invalid content counts as no data.
    fn read(&self, id: &MinionId) -> io::Result<Value> {
        let Some((packed, _)) = files::read_regular(&self.path(id), MINION_BYTES_MAX as u64)? else {
            return Ok(empty_map());
        };
        let shown =
            msgpack::decode_disk(&packed, &msgpack::Limits::DISK).ok().filter(|shown| shown.entries().is_some());
        Ok(shown.unwrap_or_else(empty_map))
    }

    fn path(&self, id: &MinionId) -> PathBuf {
        self.dir.join(format!("{id}.p"))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control)
}

/// Reads `mine_get: {minion: [function, …]}`; all texts are regular expressions.
fn permissions(value: &Value) -> Result<Vec<(Regex, Vec<Regex>)>, String> {
    let wrong = || "mine_get must be a map of minions to lists of names, all regular expressions".to_owned();
    let regex = |value: &Value| {
        let text = value.text().ok_or_else(wrong)?;
        Regex::new(text).map_err(|e| format!("mine_get has {text:?}, which is no regular expression: {e}"))
    };
    let rule = |(who, what): &(Value, Value)| {
        let names = what.list().ok_or_else(wrong)?.iter().map(regex).collect::<Result<_, _>>()?;
        Ok((regex(who)?, names))
    };
    value.entries().ok_or_else(wrong)?.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, text};

    fn id(text: &str) -> MinionId {
        text.parse().unwrap()
    }

    fn inner(dir: &tempfile::TempDir, may_get: Option<&Value>) -> Inner {
        let groups = Nodegroups::new(&map([("pair", text("b other"))]));
        let mine = Mine::new(dir.path(), &MineOpts { on: true, may_get: may_get.cloned(), groups }).unwrap();
        Arc::into_inner(mine.inner).unwrap()
    }

    #[tokio::test]
    async fn one_minion_does_not_keep_the_others_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let groups = Nodegroups::new(&empty_map());
        let mine = Mine::new(dir.path(), &MineOpts { on: true, may_get: None, groups }).unwrap();
        let (a, b) = (id("a"), id("b"));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let long = (0..2 * AT_A_TIME).map(|_| {
            let ended = Arc::clone(&ended);
            mine.blocking(Some(&a), move |_| ended.lock().unwrap().recv().unwrap_or(()))
        });
        let other = async {
            let done = tokio::time::timeout(std::time::Duration::from_secs(20), mine.blocking(Some(&b), |_| ())).await;
            drop(end);
            done
        };
        let (long, other) = tokio::join!(futures_util::future::join_all(long), other);
        assert_eq!((long.len(), other), (2 * AT_A_TIME, Ok(Some(()))));
    }

    fn put(mine: &Inner, who: &str, entries: Value) -> Result<(), String> {
        mine.change(&id(who), MineRequest::Put, &map([("data", entries)]))
    }

    fn get(mine: &Inner, who: &str, tgt: &str, kind: &str, fun: impl Into<Value>) -> Value {
        let load = map([("tgt", text(tgt)), ("tgt_type", text(kind)), ("fun", fun.into())]);
        mine.get(&id(who), &load, &[id("a"), id("b"), id("web1")]).unwrap()
    }

    #[test]
    fn what_is_put_is_got_until_it_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let mine = inner(&dir, None);
        put(&mine, "a", map([("ip", text("1")), ("os", text("x"))])).unwrap();
        put(&mine, "b", map([("ip", text("2"))])).unwrap();
        put(&mine, "b", map([("up", true)])).unwrap();
        assert_eq!(get(&mine, "web1", "*", "glob", "ip"), map([("a", "1"), ("b", "2")]));
        assert_eq!(get(&mine, "web1", "b", "glob", "ip"), map([("b", "2")]));
        assert_eq!(get(&mine, "web1", "a,b", "list", "up"), map([("b", true)]));
        let both = map([("ip", map([("a", "1"), ("b", "2")])), ("os", map([("a", "x")]))]);
        assert_eq!(get(&mine, "web1", "*", "glob", "ip,os"), both);
        assert_eq!(get(&mine, "web1", "*", "glob", list(["ip", "os"])), both);
        assert_eq!(get(&mine, "web1", "[ab]", "pcre", list(["os"])), map([("os", map([("a", "x")]))]));
        for (tgt, kind, fun) in [("*", "glob", "none"), ("c", "glob", "ip"), ("x:y", "grain", "ip"), ("*", "odd", "ip")]
        {
            assert_eq!(get(&mine, "web1", tgt, kind, fun), empty_map(), "{tgt} {kind} {fun}");
        }
        mine.change(&id("a"), MineRequest::Delete, &map([("fun", "ip")])).unwrap();
        mine.change(&id("a"), MineRequest::Delete, &map([("fun", "ip")])).unwrap();
        mine.change(&id("b"), MineRequest::Flush, &empty_map()).unwrap();
        assert_eq!(get(&mine, "web1", "*", "glob", "ip"), empty_map());
        assert_eq!(get(&mine, "web1", "*", "glob", "os"), map([("a", "x")]));
        let clear = map([("data", map([("new", 1)])), ("clear", Value::from(true))]);
        mine.change(&id("a"), MineRequest::Put, &clear).unwrap();
        assert_eq!(get(&mine, "web1", "*", "glob", "os"), empty_map());
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&dir.path().join("mine/a.p").metadata().unwrap().permissions());
        assert_eq!(mode & 0o7777, 0o600);
    }

    #[test]
    fn who_has_no_key_any_more_shows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mine = inner(&dir, None);
        for who in ["a", "gone"] {
            put(&mine, who, map([("ip", who)])).unwrap();
        }
        assert_eq!(get(&mine, "a", "*", "glob", "ip"), map([("a", "a")]));
        mine.forget(|id| id.as_str() == "a").unwrap();
        assert!(dir.path().join("mine/a.p").exists() && !dir.path().join("mine/gone.p").exists());
    }

    /// Writes grains and pillar of `b` to the master's cache.
    fn know_b(dir: &tempfile::TempDir) {
        let known = [
            ("grains", map([("os", text("x")), ("ipv4", list(["10.0.0.1"]))])),
            ("pillar", map([("role", text("front"))])),
        ];
        for (bank, data) in known {
            std::fs::create_dir(dir.path().join(bank)).unwrap();
            std::fs::write(dir.path().join(bank).join("b.p"), msgpack::encode_disk(&data)).unwrap();
        }
    }

    #[test]
    fn whom_is_asked_by_all_types_but_pillar_without_patterns() {
        let dir = tempfile::tempdir().unwrap();
        let mine = inner(&dir, None);
        know_b(&dir);
        for who in ["a", "b"] {
            put(&mine, who, map([("ip", who)])).unwrap();
        }
        for (tgt, kind, found) in [
            ("os:x", "grain", true),
            ("os:.", "grain_pcre", true),
            ("10.0.0.0/8", "ipcidr", true),
            ("role:front", "pillar", true),
            ("role:front", "pillar_exact", true),
            ("role:f*", "pillar", false),
            ("role:f.*", "pillar_pcre", false),
            ("I@role:front and G@os:*", "compound", true),
            ("I@role:f*", "compound", false),
            ("J@role:f.*", "compound", false),
            ("N@pair and not a", "compound", true),
        ] {
            let expected = if found { map([("b", "b")]) } else { empty_map() };
            assert_eq!(get(&mine, "web1", tgt, kind, "ip"), expected, "{tgt} {kind}");
        }
    }

    #[test]
    fn entries_can_be_for_some_only() {
        let dir = tempfile::tempdir().unwrap();
        let mine = inner(&dir, None);
        know_b(&dir);
        let wrapped = |tgt: Value, kind: &str| {
            map([(ACL, Value::from(1)), (ACL_DATA, text("s")), ("allow_tgt", tgt), ("allow_tgt_type", text(kind))])
        };
        for (tgt, kind, who, seen) in [
            (text("web*"), "glob", "web1", true),
            (text("web*"), "glob", "b", false),
            (text("b,web1"), "list", "b", true),
            (text("nobody"), "glob", "b", false), // Salt returns the value to every minion
            (text("os:x"), "grain", "b", true),
            (text("os:x"), "grain", "web1", false),
            (text("os:x"), "pillar", "b", false),
            (text("role:f*"), "pillar", "b", true),
            (text("10.0.0.0/8"), "ipcidr", "b", true),
            (text("10.0.0.0/8"), "ipcidr", "web1", false), // the master has no data of web1
            (text("not G@os:x"), "compound", "b", false),
            (text("web* or b"), "compound", "b", true),
            (text("N@pair and I@role:f*"), "compound", "b", true),
            (text("pair"), "nodegroup", "web1", false),
            (text("*"), "odd", "b", false),
            (text(""), "glob", "b", true),
        ] {
            put(&mine, "a", map([("f", wrapped(tgt.clone(), kind))])).unwrap();
            let expected = if seen { map([("a", "s")]) } else { empty_map() };
            assert_eq!(get(&mine, who, "*", "glob", "f"), expected, "{tgt} {kind} {who}");
        }
    }

    #[test]
    fn the_operator_says_who_may_ask() {
        let dir = tempfile::tempdir().unwrap();
        let mine = inner(&dir, Some(&map([("web.*", list(["network.*", "ip"]))])));
        put(&mine, "a", map([("ip", "1"), ("network.x", "2"), ("secret", "3"), ("xip", "4")])).unwrap();
        assert_eq!(get(&mine, "web1", "*", "glob", "network.x"), map([("a", "2")]));
        for (who, fun) in [("web1", "secret"), ("web1", "xip"), ("b", "ip"), ("aweb", "ip")] {
            assert_eq!(get(&mine, who, "*", "glob", fun), empty_map(), "{who} {fun}");
        }
        for wrong in [text("all"), map([("a", "x")]), map([("(", list(["x"]))]), map([("a", list([1]))])] {
            let opts = MineOpts { on: true, may_get: Some(wrong), groups: Nodegroups::default() };
            assert!(Mine::new(dir.path(), &opts).is_err(), "{opts:?}");
        }
    }

    #[test]
    fn a_minion_shows_so_much_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let mine = inner(&dir, None);
        put(&mine, "a", map([("ip", "1")])).unwrap();
        // So many would take minutes if each were searched among those before.
        let many = map((0..200_000).map(|n| (n.to_string(), true)));
        let large = map([("x", "y".repeat(MINION_BYTES_MAX))]);
        let long = map([("n".repeat(NAME_BYTES_MAX + 1), "x")]);
        for data in [many, large, long, text("x"), list([1]), map([(1, 2)]), map([("a\nb", 1)]), map([("", 1)])] {
            assert!(put(&mine, "a", data).is_err());
        }
        assert_eq!(get(&mine, "b", "*", "glob", "ip"), map([("a", "1")]));
        // Two entries that are too large together are refused as well.
        put(&mine, "a", map([("half", "y".repeat(MINION_BYTES_MAX / 2))])).unwrap();
        assert!(put(&mine, "a", map([("other", "y".repeat(MINION_BYTES_MAX / 2))])).is_err());
        let load = map([("tgt", text("*")), ("fun", list(vec!["x"; ASKED_MAX + 1]))]);
        assert!(mine.get(&id("a"), &load, &[]).is_err());
        // A damaged file counts as no data.
        std::fs::write(dir.path().join("mine/a.p"), b"\xc1").unwrap();
        put(&mine, "a", map([("ip", "2")])).unwrap();
        assert_eq!(get(&mine, "b", "*", "glob", "ip"), map([("a", "2")]));
    }
}
