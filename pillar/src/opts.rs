//! The settings of the pillar.

use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _};
use brine_render::Value as Rendered;
use brine_render::data::Budget;
use brine_render::data::merge::merge;
use brine_render::jinja::{Limits as JinjaLimits, Settings as JinjaSettings};

use brine_fileserver::{Roots, roots};
use brine_protocol::options;

options! {
    /// What decides about pillars.
    #[derive(Debug, Clone)]
    pub struct PillarOpts from c {
        pub(crate) roots: Roots = roots(c, settings::PILLAR_ROOTS)?,
        pub(crate) follow_symlinks: bool = c.get(settings::FILESERVER_FOLLOWSYMLINKS)?,
        pub(crate) nodegroups: Nodegroups = Nodegroups::new(&c.get(settings::NODEGROUPS)?),
        /// `nodegroups` by name, for the pillars of groups.
        pub(crate) nodegroup_names: Vec<String> = nodegroup_names(&c.get(settings::NODEGROUPS)?),
        /// `pillarenv` of the master, for minions that name none.
        pub(crate) pillarenv: Option<String> = c.find(settings::PILLARENV)?.and_then(|env| env.text().map(str::to_owned)),
        pub(crate) pillarenv_from_saltenv: bool = c.get(settings::PILLARENV_FROM_SALTENV)?,
        /// `state_top`, as a path below the roots.
        pub(crate) top: String = top(&c.get(settings::STATE_TOP)?),
        pub(crate) env_order: Vec<String> = texts(&c.get(settings::ENV_ORDER)?),
        pub(crate) merging: Merging = Merging::from_config(c)?,
        /// `pillar_opts`: the options become part of the pillar.
        pub(crate) with_opts: bool = c.get(settings::PILLAR_OPTS)?,
        pub(crate) safe_errors: bool = c.get(settings::PILLAR_SAFE_RENDER_ERROR)?,
        pub(crate) ext_first: bool = c.get(settings::EXT_PILLAR_FIRST)?,
        /// `pillar_cache`; none if it is off.
        pub cache: Option<CacheOpts> = CacheOpts::from_config(c)?,
        pub(crate) rendering: Rendering = Rendering::from_config(c)?,
        /// `pillar_workers`: compilations at a time; 0 stands for the number of processors.
        pub workers: usize = c.get(settings::PILLAR_WORKERS)?,
        pub(crate) timeout: Duration = c.get(settings::PILLAR_TIMEOUT)?,
        pub(crate) file_size_max: usize = c.get(settings::PILLAR_MAX_FILE_SIZE)?,
        pub(crate) files_max: usize = c.get(settings::PILLAR_MAX_FILES)?,
        pub(crate) size_max: usize = c.get(settings::PILLAR_MAX_SIZE)?,
        pub(crate) override_max: usize = c.get(settings::PILLAR_MAX_OVERRIDE)?,
        /// The options that templates see: those that are no secrets.
        pub(crate) shown: Value = shown(c)?,
    }
}

options! {
    /// How files are merged.
    #[derive(Debug, Clone)]
    pub(crate) struct Merging from c {
        /// One of Salt's.
        pub(crate) strategy: String = c.get(settings::PILLAR_SOURCE_MERGING_STRATEGY)?,
        pub(crate) lists: bool = c.get(settings::PILLAR_MERGE_LISTS)?,
        pub(crate) includes_override: bool = c.get(settings::PILLAR_INCLUDES_OVERRIDE_SLS)?,
    }
}

options! {
    /// How files are rendered.
    #[derive(Debug, Clone)]
    pub(crate) struct Rendering from c {
        /// The pipe of files that name none.
        pub(crate) default: String = c.get(settings::RENDERER)?.python_str(),
        pub(crate) whitelist: Vec<String> = c.get(settings::RENDERER_WHITELIST)?,
        pub(crate) blacklist: Vec<String> = c.get(settings::RENDERER_BLACKLIST)?,
        /// `jinja_env`, for top files.
        pub(crate) jinja: JinjaSettings = jinja(c, &c.get(settings::JINJA_ENV)?)?,
        /// `jinja_sls_env`, for all others.
        pub(crate) jinja_sls: JinjaSettings = jinja(c, &c.get(settings::JINJA_SLS_ENV)?)?,
        pub(crate) limits: JinjaLimits = limits(c)?,
    }
}

impl Merging {
    /// Merges the second dict into the first one.
    ///
    /// # Errors
    /// One of the two is no dict, or they are too large. The text has no values.
    pub(crate) fn merge(&self, a: &Rendered, b: &Rendered) -> Result<Rendered, String> {
        merge(a, b, &self.strategy, self.lists, &Budget::default()).map_err(|why| why.message)
    }
}

/// `pillar_cache`.
#[derive(Debug, Clone, Copy)]
pub struct CacheOpts {
    /// How long a compiled pillar counts.
    pub ttl: Duration,
    /// Whether they are kept on the disk, else in memory.
    pub on_disk: bool,
}

impl CacheOpts {
    fn from_config(c: &Config) -> Result<Option<Self>, ConfigError> {
        // Checked whether or not they count.
        let ttl = c.get(settings::PILLAR_CACHE_TTL)?;
        let on_disk = c.get(settings::PILLAR_CACHE_BACKEND)? == "disk";
        let decrypt = settings::DECRYPT_PILLAR;
        if c.find(decrypt)?.is_some_and(|keys| keys.truthy()) {
            return Err(c.wrong(decrypt.row.name, "empty: this master cannot decrypt pillars"));
        }
        Ok(c.get(settings::PILLAR_CACHE)?.then_some(Self { ttl, on_disk }))
    }
}

/// The options that are no secrets, with the master's name.
fn shown(c: &Config) -> Result<Value, ConfigError> {
    let mut shown = c.shown();
    shown.insert("id", c.get(settings::ID)?);
    Ok(shown)
}

/// `salt://a/top.sls`, `/a/top.sls` and `a/top.sls` are the same file.
fn top(written: &Value) -> String {
    let text = written.python_str();
    text.strip_prefix("salt://").unwrap_or(&text).trim_start_matches('/').to_owned()
}

fn texts(list: &Value) -> Vec<String> {
    list.list().map(|items| items.iter().map(|item| item.python_str()).collect()).unwrap_or_default()
}

fn nodegroup_names(groups: &Value) -> Vec<String> {
    groups.entries().unwrap_or_default().iter().map(|(name, _)| name.python_str()).collect()
}

fn jinja(c: &Config, env: &Value) -> Result<JinjaSettings, ConfigError> {
    let mut jinja = JinjaSettings::default();
    for (name, value) in env.entries().unwrap_or_default() {
        let Ok(value) = Rendered::from_wire(value) else { continue };
        jinja.set(&name.python_str(), &value);
    }
    jinja.trim_blocks |= c.get(settings::JINJA_TRIM_BLOCKS)?.truthy();
    jinja.lstrip_blocks |= c.get(settings::JINJA_LSTRIP_BLOCKS)?.truthy();
    Ok(jinja)
}

fn limits(c: &Config) -> Result<JinjaLimits, ConfigError> {
    Ok(JinjaLimits {
        text: c.get(settings::PILLAR_MAX_FILE_SIZE)?,
        steps: c.get(settings::RENDER_MAX_STEPS)?,
        bytes: c.get(settings::RENDER_MAX_MEMORY)?,
        depth: c.get(settings::RENDER_MAX_DEPTH)?,
        templates: c.get(settings::RENDER_MAX_TEMPLATES)?,
    })
}
