//! How a master compiles the pillars of its minions.

use std::time::Duration;

use super::*;

settings! { AREA = "Pillar";
    /// Folders of the pillar by environment. `__env__` is any environment that is not listed.
    PILLAR_ROOTS: Folders = folders("pillar_roots", both("{base: [/srv/pillar, /srv/spm/pillar]}"))
        .live_on(Role::Master)
        .unused_on(Role::Minion);
    /// Use the environment of the files as environment of the pillar where none is named.
    PILLARENV_FROM_SALTENV: bool = truth("pillarenv_from_saltenv", both("false")).live_on(Role::Master);
    /// How the files of a pillar are merged. `none` takes one environment only.
    PILLAR_SOURCE_MERGING_STRATEGY: String = choice("pillar_source_merging_strategy", master("smart"), &STRATEGIES).live();
    /// Join lists of several files, without which the last file's list counts; on a minion, where `pillar.get` merges the pillar into a default.
    PILLAR_MERGE_LISTS: bool = truth("pillar_merge_lists", both("false")).live_on(Role::Master);
    /// Values of included files count more than those of the file that includes them.
    PILLAR_INCLUDES_OVERRIDE_SLS: bool = truth("pillar_includes_override_sls", master("false")).live();
    /// Put the master's options into the pillar, under `master`. Secrets are left out.
    PILLAR_OPTS: bool = truth("pillar_opts", master("false")).live();
    /// Tell a minion only which file does not render. Without it the minion gets the details, which can contain secrets of the file.
    PILLAR_SAFE_RENDER_ERROR: bool = truth("pillar_safe_render_error", master("true")).live();
    /// Keep compiled pillars, by minion and environment, and compile them again when they are old.
    PILLAR_CACHE: bool = truth("pillar_cache", master("false")).live();
    /// Age at which a kept pillar is compiled again.
    PILLAR_CACHE_TTL: Duration = seconds("pillar_cache_ttl", master("3600"), TIME).live();
    /// Where compiled pillars are kept: in memory, or unencrypted in `cachedir/pillar_cache`.
    PILLAR_CACHE_BACKEND: String = choice("pillar_cache_backend", master("disk"), &["disk", "memory"]).live();
    /// Sources of pillar besides `pillar_roots`: file_tree, http_json, http_yaml.
    EXT_PILLAR: Value = any("ext_pillar", master("[]")).live().private();
    /// Ask the sources of `ext_pillar` first, so that top files and templates see their data.
    EXT_PILLAR_FIRST: bool = truth("ext_pillar_first", master("false")).live();
    /// Encrypted pillars are not offered: a list with entries is an error.
    DECRYPT_PILLAR: Value = any("decrypt_pillar", master("[]")).live();
    /// Sources that a minion may ask for by itself; there is none.
    ON_DEMAND_EXT_PILLAR: Value = any("on_demand_ext_pillar", master("[libvirt, virtkey]")).unused();
    /// Renderers that files may use; empty: all.
    RENDERER_WHITELIST: Vec<String> = list("renderer_whitelist", master("[]")).live();
    /// Renderers that files may not use. They are left out.
    RENDERER_BLACKLIST: Vec<String> = list("renderer_blacklist", master("[]")).live();
    /// Pillars that are compiled at a time; 0: as many as the host has processors.
    PILLAR_WORKERS: usize = integer("pillar_workers", master("0"), "pillars", 0..=1024);
    // A minion waits a minute for its pillar.
    /// Time for one pillar, `ext_pillar` included. It is looked at between files and calls; `render_max_steps` bounds each file.
    PILLAR_TIMEOUT: Duration = seconds("pillar_timeout", master("10"), 1..=50).live();
    /// Size of a pillar file or template.
    PILLAR_MAX_FILE_SIZE: usize = integer("pillar_max_file_size", master("4194304"), "bytes", POSITIVE).live();
    /// Files that one pillar may consist of; a file that is read again counts again.
    PILLAR_MAX_FILES: usize = integer("pillar_max_files", master("5000"), "files", POSITIVE).live();
    // What is kept for targets is read up to this size too.
    /// Size of a compiled pillar.
    PILLAR_MAX_SIZE: usize = integer("pillar_max_size", master("16777216"), "bytes", 1024..=16_777_216).live();
    /// Size of the values of `pillar=` on a command line.
    PILLAR_MAX_OVERRIDE: usize = integer("pillar_max_override", master("1048576"), "bytes", ANY).live();
    /// Time for one request of `http_json` and `http_yaml`, redirects included.
    EXT_PILLAR_HTTP_TIMEOUT: Duration = seconds("ext_pillar_http_timeout", master("5"), 1..=50).live();
    /// Size of its answer.
    EXT_PILLAR_HTTP_MAX_SIZE: usize = integer("ext_pillar_http_max_size", master("4194304"), "bytes", POSITIVE).live();
    /// Expressions, statements and rounds of loops in one template.
    RENDER_MAX_STEPS: u64 = integer("render_max_steps", master("4000000"), "steps", POSITIVE).live();
    /// Size of all text and values that one template makes.
    RENDER_MAX_MEMORY: usize = integer("render_max_memory", master("41943040"), "bytes", POSITIVE).live();
    // Each level takes stack, of which a template has a fixed size.
    /// Calls and expressions within each other in one template.
    RENDER_MAX_DEPTH: usize = integer("render_max_depth", master("150"), "levels", 1..=300).live();
    /// Templates that one template may import or include.
    RENDER_MAX_TEMPLATES: usize = integer("render_max_templates", master("500"), "templates", POSITIVE).live();
}

/// The ways of merging that Salt has.
const STRATEGIES: [&str; 6] = ["smart", "recurse", "aggregate", "overwrite", "list", "none"];
