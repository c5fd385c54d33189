//! Compiles the pillar of one minion, as `salt.pillar.Pillar` does: top files, the files that they name, external
//! sources, and `pillar=` of a command line.
//!
//! It runs on a thread of its own and knows nothing of connections and requests.

use std::cell::RefCell;
use std::sync::Arc;

use brine_protocol::SALT_RELEASE;
use brine_protocol::ids::MinionId;
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::Value as Wire;
use brine_render::convert::ConvertLimits;
use brine_render::{Dict, Key, Value, jinja};
use indexmap::IndexMap;

use crate::ext;
use crate::failure::Failure;
use crate::opts::PillarOpts;
use crate::problems::{ERRORS_MAX, Problems};
use crate::roots::{BASE, Env, Files};
use crate::settings::PillarSettings;
use crate::sls::Sources;
use crate::template::Renderer;
use crate::top::{self, BadTop, Entry, Top};

/// Bound on the values of a pillar.
const VALUES_MAX: usize = 1 << 20;

/// What a pillar is compiled for. It does not print: grains and pillar are nobody else's.
#[derive(Clone)]
pub struct Subject {
    /// Proved by the channel.
    pub id: MinionId,
    /// A map: what the minion says of itself.
    pub grains: Wire,
    /// The environment of its files, if it names one.
    pub saltenv: Option<String>,
    /// The environment of its pillar, if it names one.
    pub pillarenv: Option<String>,
    /// `pillar=` of a command line: a map.
    pub given: Wire,
}

/// What a compilation gives. It does not print.
pub struct Compiled {
    /// A map, with `_errors` if there are any.
    pub pillar: Wire,
    /// Whether it has no `_errors`.
    pub is_whole: bool,
    /// What went wrong, for the master's log: without values of the pillar.
    pub causes: Vec<String>,
    /// The targets, with their environments, by which the minion got pillar because of its grains.
    pub by_grains: Vec<(String, String)>,
}

/// The environments that count for a subject.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) saltenv: Option<String>,
    pub(crate) pillarenv: Option<String>,
}

impl Chosen {
    pub(crate) fn new(subject: &Subject, opts: &PillarOpts) -> Self {
        let given = |env: &Option<String>| env.clone().filter(|env| !env.is_empty());
        let saltenv = given(&subject.saltenv);
        let own = if opts.pillarenv_from_saltenv { saltenv.clone() } else { given(&opts.pillarenv) };
        Self { pillarenv: given(&subject.pillarenv).or(own), saltenv }
    }

    /// The environment that `__env__` stands for.
    pub(crate) fn any(&self) -> &str {
        self.pillarenv.as_deref().or(self.saltenv.as_deref()).unwrap_or(BASE)
    }
}

/// Compiles a pillar. `envs` are the environments for [`Chosen::any`].
pub(crate) fn compile(
    subject: &Subject,
    settings: &PillarSettings,
    envs: &[Arc<Env>],
    fetch: &dyn ext::Fetch,
) -> Compiled {
    let problems = Problems::default();
    let mut by_grains = Vec::new();
    let done = match Compiler::new(subject, settings, envs, &problems) {
        Ok(compiler) => {
            let done = compiler.run(fetch);
            by_grains = compiler.by_grains.into_inner();
            done
        }
        Err(error) => Err(error),
    };
    let limits = ConvertLimits { values: VALUES_MAX, bytes: settings.opts.size_max };
    let wire = done.and_then(|pillar| {
        let is_whole = pillar.get("_errors").is_none();
        let wire = Value::Dict(pillar).to_wire(limits).map_err(|why| format!("it cannot be sent: {why}"))?;
        Ok((wire, is_whole))
    });
    let (pillar, is_whole) = wire.unwrap_or_else(|why| {
        problems.cause(why);
        (failed(&subject.id), false)
    });
    Compiled { pillar, is_whole, causes: problems.causes.take(), by_grains }
}

/// The pillar of a minion whose pillar is not there.
pub fn failed(id: &MinionId) -> Wire {
    use brine_protocol::value::{list, map};
    map([("_errors", list([format!("The pillar of {id} cannot be compiled. Please see master log for details.")]))])
}

/// One compilation.
struct Compiler<'a> {
    opts: &'a PillarOpts,
    ext: &'a [ext::Source],
    id: &'a MinionId,
    grains: Wire,
    chosen: Chosen,
    files: Files<'a>,
    problems: &'a Problems,
    /// `opts` of templates.
    shown: Dict,
    grains_value: Value,
    given: Value,
    /// `pillar` of templates: what is there so far.
    pillar: Dict,
    by_grains: RefCell<Vec<(String, String)>>,
}

impl<'a> Compiler<'a> {
    fn new(
        subject: &'a Subject,
        settings: &'a PillarSettings,
        envs: &'a [Arc<Env>],
        problems: &'a Problems,
    ) -> Result<Self, String> {
        use brine_protocol::value::ValueExt as _;
        let PillarSettings { opts, ext } = settings;
        let mut grains = subject.grains.clone();
        grains.insert("id", subject.id.as_str());
        let chosen = Chosen::new(subject, opts);
        let grains_value = Value::from_wire(&grains).map_err(|why| format!("its grains cannot be used: {why}"))?;
        let given = Value::from_wire(&subject.given).map_err(|why| format!("pillar= cannot be used: {why}"))?;
        let shown = Value::from_wire(&opts.shown).map_err(|why| format!("the options cannot be used: {why}"))?;
        let Value::Dict(shown) = shown else { return Err("the options are no dict".to_owned()) };
        let env = |env: &Option<String>| env.as_deref().map_or(Value::None, Value::from);
        shown.set("id", subject.id.as_str().into());
        shown.set("minion_id", subject.id.as_str().into());
        shown.set("file_client", "local".into());
        shown.set("saltenv", env(&chosen.saltenv));
        shown.set("pillarenv", env(&chosen.pillarenv));
        shown.set("grains", grains_value.clone());
        Ok(Self {
            opts,
            ext,
            id: &subject.id,
            grains,
            chosen,
            files: Files::new(envs, opts),
            problems,
            shown,
            grains_value,
            given,
            pillar: Dict::default(),
            by_grains: RefCell::default(),
        })
    }

    fn renderer(&self, context: Dict) -> Renderer<'_> {
        let functions = Renderer::functions(self.id, &self.grains_value, &self.pillar, &self.shown, self.problems);
        Renderer { files: &self.files, rules: &self.opts.rendering, context, functions }
    }

    /// The error is a cause for the log.
    fn run(&self, fetch: &dyn ext::Fetch) -> Result<Dict, String> {
        let context = Dict::default();
        context.set("opts", self.shown.clone().into());
        context.set("grains", self.grains_value.clone());
        context.set("pillar", self.pillar.clone().into());
        context.set("salt", jinja::functions());
        context.set("proxy", Value::dict([]));
        context.set("_pillar_rend", true.into());
        let renderer = self.renderer(context);
        let (top, top_errors) = self.top(&renderer);
        let merge = |a: &Value, b: &Value| self.opts.merging.merge(a, b);
        let mut errors = Vec::new();
        if self.opts.ext_first {
            let pillar = self.external(self.given.clone(), fetch, &mut errors);
            self.take(&pillar)?;
            let pillar = self.own(&top, &renderer, &mut errors);
            self.take(&merge(&self.pillar.clone().into(), &pillar)?)?;
        } else {
            let pillar = self.own(&top, &renderer, &mut errors);
            self.take(&pillar)?;
            let pillar = self.external(self.pillar.clone().into(), fetch, &mut errors);
            self.take(&pillar)?;
        }
        errors.extend(top_errors);
        if self.opts.with_opts {
            let opts = self.shown.borrow().clone();
            let opts = Dict::from_entries(opts, false);
            opts.set("saltversion", SALT_RELEASE.map(|part| part.to_string()).join(".").as_str().into());
            self.pillar.set("master", opts.into());
        }
        errors.truncate(ERRORS_MAX);
        if !errors.is_empty() {
            self.pillar.set("_errors", Value::list(errors.into_iter().map(Value::from)));
        }
        if self.given.truthy() {
            self.take(&merge(&self.pillar.clone().into(), &self.given)?)?;
        }
        Ok(self.pillar.clone())
    }

    /// Makes values part of what is there.
    fn take(&self, pillar: &Value) -> Result<(), String> {
        let Value::Dict(more) = pillar else { return Err("a pillar is no dict".to_owned()) };
        if more.address() != self.pillar.address() {
            self.pillar.borrow_mut().extend(more.borrow().iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        Ok(())
    }

    /// Reads all top files. The errors are what the minion is told.
    fn top(&self, renderer: &Renderer<'_>) -> (Top, Vec<String>) {
        let mut errors = Vec::new();
        let mut tops = Vec::new();
        for env in self.top_envs(&mut errors) {
            match self.top_file(&env, renderer) {
                Ok(None) => {}
                Ok(Some(top)) => {
                    let names = top::take_includes(&top);
                    tops.push((env, vec![top], names));
                }
                Err(failure) => {
                    self.problems.cause(format!("the top file of {env} does not render: {}", failure.cause));
                    errors.push(format!("Rendering Primary Top file failed, render error:\n{}", self.told(&failure)));
                    break;
                }
            }
        }
        for (env, files, names) in &mut tops {
            let mut done: Vec<&String> = Vec::new();
            for name in names.iter() {
                if done.contains(&name) {
                    continue;
                }
                done.push(name);
                match self.included_top(env, name, renderer) {
                    Ok(Some(top)) => files.push(top),
                    Ok(None) => {}
                    Err(failure) => {
                        self.problems.cause(format!("the top file {name} of {env} does not render: {}", failure.cause));
                        let told = self.told(&failure);
                        errors.push(format!("Rendering Top file {name} failed, render error:\n{told}"));
                    }
                }
            }
        }
        let files: Vec<Value> = tops.into_iter().flat_map(|(_, files, _)| files).collect();
        match Top::merge(&files) {
            Ok(top) => (top, errors),
            Err(why @ BadTop) => {
                self.problems
                    .cause("the top file is no dict of environments with dicts of targets with lists of files");
                errors.push(why.to_string());
                (Top::default(), errors)
            }
        }
    }

    /// The environments whose top files count.
    fn top_envs(&self, errors: &mut Vec<String>) -> Vec<String> {
        if let Some(env) = &self.chosen.pillarenv {
            if self.files.has_env(env) {
                return vec![env.clone()];
            }
            let env: String = env.chars().take(80).collect();
            self.problems.cause(format!("pillar_roots has no environment {env:?}, which it asks for"));
            errors.push(format!("No matching pillar environment for environment '{env}' found"));
            return Vec::new();
        }
        let envs = self.files.envs();
        if self.opts.merging.strategy == "none" {
            let only = self.chosen.saltenv.as_deref().unwrap_or(BASE);
            return envs.into_iter().filter(|env| *env == only).map(str::to_owned).collect();
        }
        envs.into_iter().map(str::to_owned).collect()
    }

    fn top_file(&self, env: &str, renderer: &Renderer<'_>) -> Result<Option<Value>, Failure> {
        let file = self.files.read(env, &self.opts.top).map_err(|why| Failure::plain(why.to_string()))?;
        file.map(|file| renderer.render(env, &file, "", None)).transpose()
    }

    fn included_top(&self, env: &str, name: &str, renderer: &Renderer<'_>) -> Result<Option<Value>, Failure> {
        let file = self.files.sls(env, name).map_err(|why| Failure::plain(why.to_string()))?;
        file.map(|file| renderer.render(env, &file, "", None)).transpose()
    }

    /// What a minion is told of a failure: details only if the operator wishes so, because they can be secrets.
    fn told(&self, failure: &Failure) -> String {
        if self.opts.safe_errors { "Please see master log for details.".to_owned() } else { failure.full.clone() }
    }

    /// The pillar of `pillar_roots`.
    fn own(&self, top: &Top, renderer: &Renderer<'_>, errors: &mut Vec<String>) -> Value {
        let names = self.matching(top, errors);
        let sources =
            Sources { opts: self.opts, files: &self.files, renderer, problems: self.problems, ignored: &top.ignored };
        sources.render(&self.in_order(names), &self.given, errors)
    }

    fn matching(&self, top: &Top, errors: &mut Vec<String>) -> IndexMap<String, Vec<String>> {
        let pillar = std::cell::OnceCell::new();
        let known = || {
            let limits = ConvertLimits { values: VALUES_MAX, bytes: self.opts.size_max };
            Value::Dict(self.pillar.clone()).to_wire(limits).unwrap_or(Wire::Nil)
        };
        let matches = |env: &str, target: &Key, entry: &Entry| {
            let Some(expr) = target.as_str() else { return Ok(false) };
            let kind = entry.matcher.as_deref().unwrap_or("compound");
            let Ok(kind) = kind.parse::<TargetType>() else {
                self.problems.cause(format!("the top file of {env} matches {expr:?} by {kind:?}, which is not there"));
                errors.push("Error encountered while rendering pillar top file.".to_owned());
                return Ok(false);
            };
            let target = match Target::parse_with(kind, &Wire::from(expr), ":", &self.opts.nodegroups) {
                Ok(target) => target,
                Err(why) => {
                    self.problems.cause(format!("the top file of {env} has a target that matches nothing: {why}"));
                    return Ok(false);
                }
            };
            let needs = target.needs();
            let pillar = (!needs.pillar.is_empty()).then(|| pillar.get_or_init(known));
            let is_match = target.matches(&Facts { id: self.id, grains: Some(&self.grains), pillar });
            if is_match && !needs.grains.is_empty() {
                self.by_grains.borrow_mut().push((env.to_owned(), expr.to_owned()));
            }
            Ok::<_, std::convert::Infallible>(is_match)
        };
        let Ok(names) = top.matching(self.chosen.pillarenv.as_deref(), matches);
        names
    }

    /// The environments as `env_order` has them, then the others.
    fn in_order(&self, mut names: IndexMap<String, Vec<String>>) -> Vec<(String, Vec<String>)> {
        let mut ordered: Vec<_> = self.opts.env_order.iter().filter_map(|env| names.shift_remove_entry(env)).collect();
        ordered.extend(names);
        ordered
    }

    /// Adds what external sources have.
    fn external(&self, pillar: Value, fetch: &dyn ext::Fetch, errors: &mut Vec<String>) -> Value {
        let mut all = pillar;
        if self.given.truthy() && !self.ext.is_empty() {
            all = self.opts.merging.merge(&all, &self.given).unwrap_or(all);
        }
        for source in self.ext {
            let asked = ext::Asked {
                id: self.id,
                grains: &self.grains,
                pillarenv: self.chosen.pillarenv.as_deref(),
                files: &self.files,
                opts: self.opts,
                context: &self.shown,
                problems: self.problems,
            };
            let more = source.pillar(&asked, fetch).and_then(|more| {
                if !more.truthy() {
                    return Ok(None);
                }
                self.opts.merging.merge(&all, &more).map(Some)
            });
            match more {
                Ok(None) => {}
                Ok(Some(merged)) => all = merged,
                Err(why) => {
                    let name = source.name();
                    self.problems.cause(format!("ext_pillar {name}: {why}"));
                    errors.push(format!("Failed to load ext_pillar {name}: please see master log for details"));
                }
            }
        }
        all
    }
}

/// The top file for a subject, as `pillar.show_top` shows it, or the errors that a minion would be told.
pub(crate) fn show_top(
    subject: &Subject,
    settings: &PillarSettings,
    envs: &[Arc<Env>],
) -> Result<Wire, (Vec<String>, Vec<String>)> {
    let problems = Problems::default();
    let compiler = Compiler::new(subject, settings, envs, &problems).map_err(|why| (vec![why.clone()], vec![why]))?;
    let context = Dict::default();
    context.set("opts", compiler.shown.clone().into());
    context.set("grains", compiler.grains_value.clone());
    context.set("pillar", compiler.pillar.clone().into());
    context.set("salt", jinja::functions());
    let renderer = compiler.renderer(context);
    let (top, errors) = compiler.top(&renderer);
    if !errors.is_empty() {
        return Err((errors, problems.causes.take()));
    }
    let limits = ConvertLimits { values: VALUES_MAX, bytes: settings.opts.size_max };
    top.shown().to_wire(limits).map_err(|why| (vec![why.to_string()], vec![why.to_string()]))
}
