//! `file.managed`

use brine_guest::changes::{self, Entry, Kind};
use brine_guest::host::{config, grains, job, pillar};
use brine_guest::states::is_dry_run;
use brine_guest::{Data, Value};

use super::{Arguments, Ret};
use crate::change::mode;
use crate::change::permissions::Permissions;
use crate::manage::get::{Asked, Got};
use crate::manage::source::{self, Place};
use crate::manage::{Trouble, body, check, command, contents, file, sums, template};

/// The arguments that Salt names, so that a template does not see them. All others it sees.
const NAMED: [&str; 56] = [
    "allow_empty",
    "attrs",
    "backup",
    "check_cmd",
    "contents",
    "contents_delimiter",
    "contents_grains",
    "contents_newline",
    "contents_pillar",
    "context",
    "create",
    "defaults",
    "dir_mode",
    "encoding",
    "encoding_errors",
    "env",
    "follow_symlinks",
    "gnupghome",
    "group",
    "ignore_comment_characters",
    "ignore_ordering",
    "ignore_whitespace",
    "keep_source",
    "keyring",
    "makedirs",
    "mode",
    "name",
    "new_file_diff",
    "replace",
    "selinux",
    "show_changes",
    "sig_backend",
    "signature",
    "signed_by_all",
    "signed_by_any",
    "skip_verify",
    "source",
    "source_hash",
    "source_hash_name",
    "source_hash_sig",
    "template",
    "tmp_dir",
    "tmp_ext",
    "use_etag",
    "user",
    "verify_ssl",
    "win_deny_perms",
    "win_inheritance",
    "win_owner",
    "win_perms",
    "win_perms_reset",
    "contents_delimiter",
    "saltenv",
    "pillar",
    "grains",
    "opts",
];
/// What cannot be done here. It is refused, because a file without it is not what was asked for.
const REFUSED: [&str; 4] = ["attrs", "selinux", "signature", "source_hash_sig"];
/// Salt's note under what a dry run says.
const NOTE: &str = "\nNote: No changes made, actual changes may\nbe different due to other states.";

pub(crate) fn managed(name: &str, args: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Destination file name is required"));
    }
    if let Some(what) = REFUSED.iter().find(|what| args.get(what).is_some_and(Value::truthy)) {
        return Ok(Ret::bad(format!("The argument '{what}' is not supported here")));
    }
    let keeps_mode = args.get("mode").and_then(Value::text).is_some_and(|mode| mode.eq_ignore_ascii_case("keep"));
    let said =
        ["contents", "contents_pillar", "contents_grains"].iter().filter(|name| args.get(name).is_some()).count();
    let source = args.get("source").filter(|source| source.truthy());
    if source.is_some() && said > 0 {
        return Ok(Ret::bad(
            "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'",
        ));
    }
    if keeps_mode && said > 0 {
        return Ok(Ret::bad(
            "Mode preservation cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'",
        ));
    }
    if said > 1 {
        return Ok(Ret::bad("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted"));
    }
    let mut ret = Ret::new();
    if args.get("file_mode").is_some() {
        ret.warnings.push(
            "The 'file_mode' argument will be ignored.  Please use 'mode' instead to set file permissions.".into(),
        );
    }
    let managing = Managing {
        name,
        args,
        saltenv: job::state().map_or_else(|| "base".into(), |state| state.saltenv),
        dry: is_dry_run(),
        follow: args.flag("follow_symlinks", true),
        replaces: args.flag("replace", true) && (source.is_some() || said > 0),
        template: args.named("template"),
        permissions: Permissions { owner: args.owner(), mode: if keeps_mode { None } else { args.mode("mode") } },
        keeps_mode,
    };
    managing.run(ret)
}

struct Managing<'a> {
    name: &'a str,
    args: &'a Arguments,
    saltenv: String,
    dry: bool,
    follow: bool,
    replaces: bool,
    template: Option<String>,
    permissions: Permissions,
    keeps_mode: bool,
}

impl Managing<'_> {
    fn run(mut self, mut ret: Ret) -> Result<Ret, String> {
        let (name, args) = (self.name, self.args);
        let contents = match self.contents()? {
            Ok(contents) => contents,
            Err(comment) => return Ok(ret.failed(comment)),
        };
        if !name.starts_with('/') {
            let missing = !args.flag("create", true);
            let comment = match missing {
                true => return Ok(Ret::good(format!("File {name} is not present and is not set for creation"))),
                false => format!("Specified file {name} is not an absolute path"),
            };
            return Ok(ret.failed(comment));
        }
        let entry = self.look()?;
        // What a link leads to, where the link itself is what is looked at.
        let target = match &entry {
            Some(entry) if entry.kind == Kind::Symlink => changes::look(name, true)?,
            other => other.clone(),
        };
        let is_file = target.as_ref().is_some_and(|target| target.kind == Kind::Regular);
        if !args.flag("create", true) && !is_file {
            ret.comment = format!("File {name} is not present and is not set for creation");
            return Ok(ret);
        }
        if let Some(missing) = self.permissions.owner.missing(entry.as_ref())
            && !self.dry
        {
            return Ok(ret.failed(missing));
        }
        if target.as_ref().is_some_and(|target| target.kind == Kind::Directory) {
            return Ok(ret.failed(format!("Specified target {name} is a directory")));
        }
        for (what, word) in [("context", "Context"), ("defaults", "Defaults")] {
            let given = args.get(what).filter(|given| what == "context" || given.truthy());
            if given.is_some_and(|given| !matches!(given, Value::Dict(_))) {
                return Ok(ret.failed(format!("{word} must be formed as a dict")));
            }
        }
        let asked = self.asked();
        let mut replaces = self.replaces;
        if contents.is_none() && replaces && self.template.is_none() && self.has_hash(&asked, target.as_ref()) {
            replaces = false;
        }
        if !replaces && let Some(entry) = entry.as_ref().filter(|_| target.is_some()) {
            return Ok(self.only_permissions(entry, ret));
        }
        let chosen = source::choose(&asked.0, &asked.1, &self.saltenv);
        let (source, source_hash) = match chosen {
            Ok(chosen) => chosen,
            Err(why) => return Ok(ret.failed(format!("Unable to manage file: {why}"))),
        };
        let source = source.truthy().then(|| source.to_text());
        let got = match contents.is_none() {
            true => self.get(source.clone(), source_hash),
            false => Ok(None),
        };
        if self.keeps_mode
            && let Some(source) = &source
        {
            self.permissions.mode = self.mode_of(source);
        }
        // Values of the pillar are secrets, whoever reads the return.
        let shown = args.flag("show_changes", true) && args.get("contents_pillar").is_none();
        if self.dry {
            return self.check(got, contents.as_deref(), entry.as_ref(), shown, ret);
        }
        let got = match got {
            Ok(got) => got,
            Err(trouble) => return Ok(ret.failed(format!("Unable to manage file: {}", trouble.text()))),
        };
        let contents = match (contents, args.named("encoding")) {
            (Some(contents), Some(encoding)) => {
                let errors = args.named("encoding_errors").unwrap_or_default();
                match contents::encoded(&contents, &encoding, &errors) {
                    Ok(contents) => Some(contents),
                    Err(why) => return Ok(ret.failed(format!("Unable to manage file: {why}"))),
                }
            }
            (contents, _) => contents,
        };
        let skips = args.flag("skip_verify", false) || args.flag("use_etag", false);
        let mut wish = file::Wish {
            name: name.to_owned(),
            checked: source.is_some() && !skips,
            source,
            got,
            contents,
            permissions: self.permissions.clone(),
            backup: false,
            makedirs: args.flag("makedirs", false),
            dir_mode: args.text("dir_mode").and_then(|text| mode::normal(&text.into())),
            shown,
            follow: self.follow,
            new_file_diff: args.flag("new_file_diff", false),
        };
        if let Some(command) = args.named("check_cmd")
            && let Some(failed) = self.judge(&command, &mut wish, entry.as_ref())?
        {
            return Ok(failed);
        }
        wish.backup = self.keeps_backup();
        let warnings = ret.warnings.clone();
        Ok(match file::make(wish, entry.as_ref(), ret) {
            Ok(ret) => ret,
            Err(why) => Ret { warnings, ..Ret::bad(format!("Unable to manage file: {why}")) },
        })
    }

    /// What is at the path, with a file's hash where its content counts.
    fn look(&self) -> Result<Option<Entry>, String> {
        match self.replaces {
            true => changes::look_with_hash(self.name, self.follow),
            false => changes::look(self.name, self.follow),
        }
    }

    /// Salt's form of the content that is said. The inner error is a comment.
    fn contents(&self) -> Result<Result<Option<Vec<u8>>, String>, String> {
        let args = self.args;
        let value = match self.said()? {
            Ok(Some(value)) => value,
            Ok(None) => return Ok(Ok(None)),
            Err(comment) => return Ok(Err(comment)),
        };
        if !args.flag("allow_empty", true) && !value.truthy() {
            let what = ["contents_pillar", "contents_grains"].iter().find_map(|name| {
                args.get(name).filter(|named| named.truthy()).map(|named| format!("{name} {}", named.to_text()))
            });
            return Ok(Err(format!(
                "{} value would result in empty contents. Set allow_empty to True to allow the managed file to be empty.",
                what.unwrap_or_else(|| "'contents'".into())
            )));
        }
        let text = match contents::of(&value, args.flag("contents_newline", true)) {
            Ok(text) => text,
            Err(comment) => return Ok(Err(comment)),
        };
        let Some(engine) = &self.template else { return Ok(Ok(Some(text))) };
        let mut names = Vec::new();
        template::add_context(&mut names, &args.value("defaults"), &args.value("context"));
        match template::render(engine, &text, &self.saltenv, &names) {
            Ok(text) => Ok(Ok(Some(text))),
            Err(Trouble::Said(comment)) => Ok(Err(comment)),
            Err(trouble) => Err(trouble.text()),
        }
    }

    /// The value of `contents`, or of what names it.
    fn said(&self) -> Result<Result<Option<Value>, String>, String> {
        let args = self.args;
        let delimiter = args.text("contents_delimiter").unwrap_or_else(|| ":".into());
        let by_key = |what: &str, word: &str, get: &dyn Fn(&str) -> Result<Option<Data>, String>| {
            let mut found = Vec::new();
            for key in args.list(what) {
                match get(&key.to_text())? {
                    Some(data) => found.push(data.value()?),
                    None => return Ok(Err(format!("{word} {} does not exist", key.to_text()))),
                }
            }
            let joined = |found: &[Value]| found.iter().map(Value::to_text).collect::<Vec<_>>().join("\n").into();
            Ok(Ok(Some(match args.get(what) {
                Some(Value::List(_)) => joined(&found),
                _ => found.pop().unwrap_or_default(),
            })))
        };
        if args.get("contents_pillar").is_some() {
            return by_key("contents_pillar", "Pillar", &|key| pillar::get(key, Some(&delimiter)));
        }
        if args.get("contents_grains").is_some() {
            return by_key("contents_grains", "Grain", &|key| Ok(grains::get(key, Some(&delimiter))));
        }
        Ok(Ok(args.get("contents").cloned()))
    }

    /// The source and its hash, as they were given.
    fn asked(&self) -> (Value, Value) {
        (self.args.value("source"), self.args.value("source_hash"))
    }

    /// Whether the file has the hash that its source on the web has to have, so that nothing has to be fetched.
    fn has_hash(&self, (source, source_hash): &(Value, Value), target: Option<&Entry>) -> bool {
        let Some(target) = target.filter(|target| target.kind == Kind::Regular) else { return false };
        let is_web = |source: &str| matches!(Place::of(source, &self.saltenv), Place::Web(_));
        let named = match source {
            Value::List(sources) => sources.iter().any(|source| match source {
                Value::Dict(entries) => entries.iter().any(|(source, _)| is_web(&source.to_text())),
                source => is_web(&source.to_text()),
            }),
            source => is_web(&source.to_text()),
        };
        if !named || self.args.flag("skip_verify", false) {
            return false;
        }
        let Ok((source, source_hash)) = source::choose(source, source_hash, &self.saltenv) else { return false };
        let source = source.to_text();
        if !source_hash.truthy() || !is_web(&source) {
            return false;
        }
        let hash_name = self.args.named("source_hash_name");
        let sum = sums::of(self.name, &source, &source_hash, hash_name.as_deref(), &self.saltenv);
        sum.is_ok_and(|sum| body::hash_of(self.name, target, &sum.kind).is_ok_and(|is| is == sum.hex))
    }

    /// What is left of the state where the content stays.
    fn only_permissions(&self, entry: &Entry, mut ret: Ret) -> Ret {
        self.permissions.apply(self.name, entry, self.follow, self.dry, &mut ret);
        let (name, is) = (self.name, mode::of(entry));
        if self.dry {
            ret.comment = match self.permissions.mode.as_ref().filter(|mode| **mode != is) {
                Some(mode) => {
                    format!("File {name} will be updated with permissions {mode} from its current state of {is}")
                }
                None => format!("File {name} not updated"),
            };
        } else if ret.changes.is_empty() && ret.result == Some(true) {
            ret.comment = format!("File {name} exists with proper permissions. No changes made.");
        }
        ret
    }

    fn get(&self, source: Option<String>, source_hash: Value) -> Result<Option<Got>, Trouble> {
        let args = self.args;
        let mut asked = Asked {
            name: self.name.to_owned(),
            source,
            source_hash,
            source_hash_name: args.named("source_hash_name"),
            skip_verify: args.flag("skip_verify", false),
            use_etag: args.flag("use_etag", false),
            template: self.template.clone(),
            saltenv: self.saltenv.clone(),
            names: Vec::new(),
        };
        if asked.template.is_some() {
            let mut name = |name: &str, value: Value| asked.names.push((name.to_owned(), value.into()));
            name("name", self.name.into());
            name("source", asked.source.clone().into());
            name("user", self.permissions.owner.user.clone());
            name("group", self.permissions.owner.group.clone());
            name("mode", self.permissions.mode.clone().into());
            name("attrs", Value::None);
            for (key, value) in args.others(&NAMED) {
                asked.names.push((key.to_text(), value.clone().into()));
            }
            template::add_context(&mut asked.names, &args.value("defaults"), &args.value("context"));
        }
        asked.get()
    }

    /// The mode of the source; none if it has none that is known.
    fn mode_of(&self, source: &str) -> Option<String> {
        let bits = match Place::of(source, &self.saltenv) {
            Place::Master { path, saltenv } => brine_guest::host::files::mode(&path, &saltenv).ok().flatten(),
            Place::Local(path) => changes::look(&path, true).ok().flatten().map(|entry| entry.mode),
            _ => None,
        };
        bits.map(|bits| format!("{:04o}", bits & 0o7777))
    }

    /// The result of a dry run.
    fn check(
        &self,
        got: Result<Option<Got>, Trouble>,
        contents: Option<&[u8]>,
        entry: Option<&Entry>,
        shown: bool,
        mut ret: Ret,
    ) -> Result<Ret, String> {
        let got = match got {
            Ok(got) => got,
            Err(Trouble::Said(comment)) => return Ok(ret.failed(comment)),
            Err(Trouble::Failed(why)) => return Ok(ret.failed(format!("Unable to manage file: {why}"))),
            Err(Trouble::Raised(why)) => return Err(why),
        };
        let wish = check::Wish {
            name: self.name,
            got: got.as_ref(),
            contents,
            permissions: &self.permissions,
            new_file_diff: self.args.flag("new_file_diff", false),
            shown,
        };
        ret.changes = check::changes(&wish, entry)?;
        if ret.changes.is_empty() {
            ret.comment = format!("The file {} is in the correct state", self.name);
        } else {
            ret.result = None;
            ret.comment = format!("The file {} is set to be changed{NOTE}", self.name);
        }
        Ok(ret)
    }

    /// Has a program judge the content, if there is to be a change. Returns the result if it refuses.
    fn judge(&self, command: &str, wish: &mut file::Wish, entry: Option<&Entry>) -> Result<Option<Ret>, String> {
        if let Some(got) = wish.got.take() {
            match got.fetched() {
                Ok(got) => wish.got = Some(got),
                Err(trouble) => return Ok(Some(Ret::bad(format!("Unable to manage file: {}", trouble.text())))),
            }
        }
        let looked = check::Wish {
            name: self.name,
            got: wish.got.as_ref(),
            contents: wish.contents.as_deref(),
            permissions: &self.permissions,
            new_file_diff: false,
            shown: false,
        };
        if check::changes(&looked, entry)?.is_empty() {
            return Ok(None);
        }
        let content = match (&wish.contents, &wish.got) {
            (Some(contents), _) => body::Body::Bytes(contents.clone()),
            (None, Some(got)) => got.body.clone(),
            (None, None) => body::Body::Bytes(Vec::new()),
        };
        let sum = wish.got.as_ref().and_then(|got| got.sum.clone());
        let content = content.content(sum.as_ref())?;
        let dir = self.args.named("tmp_dir");
        let end = self.args.named("tmp_ext").unwrap_or_default();
        Ok(match command::refused(command, &content, dir.as_deref(), &end) {
            Ok(None) => None,
            Ok(Some(comment)) => Some(Ret::bad(comment)),
            Err(why) => Some(Ret::bad(format!("Unable to check_cmd file: {why}"))),
        })
    }

    /// Whether what is there is kept: Salt's `backup`, or the minion's setting.
    fn keeps_backup(&self) -> bool {
        let by_setting = || {
            let settings = config::items().value().unwrap_or_default();
            settings.get("backup_mode").map(Value::to_text).unwrap_or_default()
        };
        let backup = self.args.named("backup").unwrap_or_else(by_setting);
        matches!(backup.as_str(), "minion" | "both")
    }
}
