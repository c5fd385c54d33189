//! `file_tree`: a file for each value, in folders named for minions and node groups.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_protocol::target::{Facts, Glob, Target, TargetType};
use brine_protocol::value::Value as Wire;
use brine_render::data::Budget;
use brine_render::data::merge::merge;
use brine_render::{Dict, Key, Value, jinja};
use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use super::{Arguments, Asked, ExternalPillar, Fetch};
use crate::opts::Rendering;
use crate::roots::PillarFile;
use crate::template::Renderer;
use brine_fileserver::Root;

/// Bound on folders within each other.
const DEPTH_MAX: usize = 32;
/// Bound on the files and folders of one minion.
const ENTRIES_MAX: usize = 10_000;

/// The configured source.
struct FileTree {
    root: PathBuf,
    follow_dir_links: bool,
    keep_newline: Keep,
    /// With `template`: how files are rendered.
    template: Option<Template>,
}

/// Which files keep the line break at their end.
enum Keep {
    All(bool),
    Matching(Vec<Glob>),
}

struct Template {
    default: Option<String>,
    blacklist: Vec<String>,
    whitelist: Vec<String>,
}

pub(crate) fn read(given: &Arguments<'_>) -> Result<Arc<dyn ExternalPillar>, String> {
    given.only(&[
        "root_dir",
        "follow_dir_links",
        "debug",
        "keep_newline",
        "render_default",
        "renderer_blacklist",
        "renderer_whitelist",
        "template",
    ])?;
    let root = given.text(0, "root_dir")?.filter(|root| !root.is_empty()).ok_or("root_dir is missing")?;
    let keep_newline = match given.get(3, "keep_newline") {
        None => Keep::All(false),
        Some(Wire::Boolean(keep)) => Keep::All(*keep),
        Some(Wire::Array(_)) => {
            Keep::Matching(given.texts(3, "keep_newline").iter().map(|glob| Glob::new(glob)).collect())
        }
        Some(_) => return Err("keep_newline is neither true nor false nor a list of globs".to_owned()),
    };
    let template = given.is(7, "template").then(|| -> Result<_, String> {
        Ok(Template {
            default: given.text(4, "render_default")?,
            blacklist: given.texts(5, "renderer_blacklist"),
            whitelist: given.texts(6, "renderer_whitelist"),
        })
    });
    Ok(Arc::new(FileTree {
        root: PathBuf::from(root),
        follow_dir_links: given.is(1, "follow_dir_links"),
        keep_newline,
        template: template.transpose()?,
    }))
}

impl ExternalPillar for FileTree {
    fn name(&self) -> &'static str {
        "file_tree"
    }

    fn pillar(&self, asked: &Asked<'_>, _: &dyn Fetch) -> Result<Value, String> {
        let mut folders: Vec<PathBuf> = Vec::new();
        if self.root.is_absolute() {
            folders.push(self.root.clone());
        } else {
            let env = asked.pillarenv.ok_or("root_dir is relative, but no pillarenv is set")?;
            let roots = asked.files.folders(env).ok_or_else(|| format!("pillar_roots has no environment {env:?}"))?;
            for root in roots {
                let folder = root.join(&self.root);
                if folders.last() != Some(&folder) {
                    folders.push(folder);
                }
            }
        }
        let mut all = Value::dict([]);
        for folder in folders {
            let more = self.of_folder(&folder, asked)?;
            all = joined(&all, &more)?;
        }
        Ok(all)
    }
}

impl FileTree {
    fn of_folder(&self, folder: &Path, asked: &Asked<'_>) -> Result<Value, String> {
        let root = Root::new(folder.to_owned(), true);
        let top = root.open().ok_or_else(|| format!("{} is no folder that can be read", folder.display()))?;
        let mut walk = Walk { tree: self, asked, root: &root, top: top.as_fd(), entries: 0, bytes: 0 };
        let mut all = Value::dict([]);
        for group in &asked.opts.nodegroup_names {
            let path = format!("nodegroups/{group}");
            let is_plain = !group.contains('/') && group != ".." && group != ".";
            if is_plain && is_member(group, asked) && walk.open_dir(&path).is_some() {
                let more = walk.folder(&path, &path, 0)?;
                all = joined(&all, &more)?;
            }
        }
        let host = format!("hosts/{}", asked.id);
        if walk.open_dir(&host).is_some() {
            let more = walk.folder(&host, &host, 0)?;
            all = joined(&all, &more)?;
        }
        Ok(all)
    }
}

fn joined(a: &Value, b: &Value) -> Result<Value, String> {
    merge(a, b, "recurse", false, &Budget::default()).map_err(|why| why.message)
}

fn is_member(group: &str, asked: &Asked<'_>) -> bool {
    let target = Target::parse_with(TargetType::Nodegroup, &Wire::from(group), ":", &asked.opts.nodegroups);
    target.is_ok_and(|target| target.matches(&Facts { id: asked.id, grains: Some(asked.grains), pillar: None }))
}

struct Walk<'a> {
    tree: &'a FileTree,
    asked: &'a Asked<'a>,
    root: &'a Root,
    top: BorrowedFd<'a>,
    entries: usize,
    bytes: usize,
}

impl Walk<'_> {
    fn open_dir(&self, path: &str) -> Option<rustix::fd::OwnedFd> {
        self.root.open_beneath(self.top, path, OFlags::RDONLY | OFlags::DIRECTORY).ok()
    }

    /// Reads a folder as a dict. `start` is the folder of the minion or group.
    fn folder(&mut self, path: &str, start: &str, depth: usize) -> Result<Value, String> {
        let dict = Dict::default();
        let Some(dir) = self.open_dir(path) else { return Ok(dict.into()) };
        if depth > DEPTH_MAX {
            return Err(format!("{path} has more than {DEPTH_MAX} folders within each other"));
        }
        let mut names = BTreeMap::new();
        let entries = Dir::read_from(&dir).map_err(|why| format!("{path} cannot be read: {why}"))?;
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(format!("it has more than {ENTRIES_MAX} files and folders for this minion"));
            }
            let Ok(stat) = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            names.insert(name.to_owned(), FileType::from_raw_mode(stat.st_mode));
        }
        for (name, kind) in names {
            self.asked.files.check_time().map_err(|why| why.to_string())?;
            let below = format!("{path}/{name}");
            let value = match kind {
                FileType::Directory => Some(self.folder(&below, start, depth + 1)?),
                FileType::Symlink if self.open_dir(&below).is_some() => Some(match self.tree.follow_dir_links {
                    true => self.folder(&below, start, depth + 1)?,
                    false => Value::dict([]),
                }),
                _ => self.file(&below, start, &name)?,
            };
            if let Some(value) = value {
                dict.borrow_mut().insert(Key::from(name), value);
            }
        }
        Ok(dict.into())
    }

    /// Reads a file; `None` if it is no regular one. Its content is text if it is UTF-8, and bytes otherwise.
    fn file(&mut self, path: &str, start: &str, name: &str) -> Result<Option<Value>, String> {
        let safe = brine_protocol::ids::SafePath::try_from(path).ok();
        let Some(found) = safe.and_then(|path| self.root.open_file(&path)) else { return Ok(None) };
        let max = self.asked.opts.file_size_max;
        let mut content = Vec::new();
        let read = found.file.take(max as u64 + 1).read_to_end(&mut content);
        read.map_err(|why| format!("{path} cannot be read: {}", why.kind()))?;
        self.bytes += content.len();
        if content.len() > max || self.bytes > self.asked.opts.size_max {
            return Err(format!("{path} is larger than pillar_max_file_size or pillar_max_size"));
        }
        let folder = path.strip_suffix(name).unwrap_or(path).trim_end_matches('/');
        let relative = match folder.strip_prefix(start).unwrap_or_default().trim_start_matches('/') {
            "" => format!("./{name}"),
            folder => format!("{folder}/{name}"),
        };
        if content.last() == Some(&b'\n') && !self.keeps_newline(&relative) {
            content.pop();
        }
        let text = match String::from_utf8(content) {
            Ok(text) => text,
            Err(_) if self.tree.template.is_some() => return Err(format!("{path} is not UTF-8")),
            Err(bytes) => return Ok(Some(Value::Bytes(bytes.into_bytes().into()))),
        };
        match &self.tree.template {
            None => Ok(Some(Value::str(text))),
            Some(template) => self.rendered(template, path, &text).map(Some),
        }
    }

    fn keeps_newline(&self, relative: &str) -> bool {
        match &self.tree.keep_newline {
            Keep::All(keep) => *keep,
            Keep::Matching(globs) => globs.iter().any(|glob| glob.matches(relative)),
        }
    }

    fn rendered(&self, template: &Template, path: &str, text: &str) -> Result<Value, String> {
        let opts = &self.asked.opts.rendering;
        let rules = Rendering {
            default: template.default.clone().unwrap_or_else(|| opts.default.clone()),
            whitelist: template.whitelist.clone(),
            blacklist: template.blacklist.clone(),
            ..opts.clone()
        };
        let context = Dict::default();
        context.set("opts", self.asked.context.clone().into());
        context.set("grains", self.asked.context.get("grains").unwrap_or_default());
        context.set("pillar", Value::dict([]));
        context.set("salt", jinja::functions());
        let Asked { id, context: opts, problems, .. } = self.asked;
        let grains = context.get("grains").unwrap_or_default();
        let functions = Renderer::functions(id, &grains, &Dict::default(), opts, problems);
        let renderer = Renderer { files: self.asked.files, rules: &rules, context, functions };
        let file = PillarFile { rel: path.to_owned(), path: path.to_owned(), text: text.into() };
        let rendered = renderer.render_any("base", &file);
        rendered.map_err(|failure| format!("{path} does not render: {}", failure.cause))
    }
}
