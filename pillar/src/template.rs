//! Renders one file of a pillar: its context, and what its template may ask for.
//!
//! A template is foreign code that runs in the master. It reads files below `pillar_roots` and calls functions that
//! compute; there are no others.

use std::cell::RefCell;
use std::rc::Rc;

use brine_protocol::ids::MinionId;
use brine_render::functions::{self, Level};
use brine_render::jinja::{self, CallError, Host, Source};
use brine_render::pipe::{self, PipeError, PipeOptions, Rendered};
use brine_render::yaml::Limits as YamlLimits;
use brine_render::{Dict, Value};

use crate::failure::Failure;
use crate::opts::Rendering;
use crate::problems::Problems;
use crate::roots::{Files, PillarFile};

/// What is the same for all files of a compilation.
pub(crate) struct Renderer<'a> {
    pub(crate) files: &'a Files<'a>,
    pub(crate) rules: &'a Rendering,
    /// `opts`, `grains`, `pillar` and the like.
    pub(crate) context: Dict,
    /// What functions see. What they take counts for all files together.
    pub(crate) functions: functions::Surroundings,
}

impl Renderer<'_> {
    /// What functions see of a minion. What templates write to the log goes to the master's.
    pub(crate) fn functions(
        id: &MinionId,
        grains: &Value,
        pillar: &Dict,
        opts: &Dict,
        problems: &Problems,
    ) -> functions::Surroundings {
        let grains = if let Value::Dict(grains) = grains { grains.clone() } else { Dict::default() };
        let mut seen = functions::Surroundings::new(id.as_str(), grains, pillar.clone(), opts.clone());
        let problems = problems.clone();
        seen.log = Some(Rc::new(move |level, text: &str| {
            if matches!(level, Level::Warning | Level::Error | Level::Critical) {
                problems.cause(format!("a template says: {}", brine_protocol::text::short(text, 200)));
            }
        }));
        seen
    }

    /// Renders a file that may also be text.
    pub(crate) fn render_any(&self, env: &str, file: &PillarFile) -> Result<Value, Failure> {
        match self.pipe(env, file, "", None)? {
            Rendered::Value(value) => Ok(value),
            Rendered::Text(text) => Ok(text.into()),
        }
    }

    /// Renders a file to a value. An empty file is an empty dict. `sls` is empty for top files; `defaults` are those
    /// of an `include`.
    pub(crate) fn render(
        &self,
        env: &str,
        file: &PillarFile,
        sls: &str,
        defaults: Option<&Dict>,
    ) -> Result<Value, Failure> {
        match self.pipe(env, file, sls, defaults)? {
            Rendered::Value(value) => Ok(value),
            // Text is no dict, whatever it is.
            Rendered::Text(_) => Ok(Value::str("text")),
        }
    }

    fn pipe(&self, env: &str, file: &PillarFile, sls: &str, defaults: Option<&Dict>) -> Result<Rendered, Failure> {
        let limits = YamlLimits { text: self.rules.limits.bytes, ..YamlLimits::default() };
        let options = PipeOptions {
            default: &self.rules.default,
            whitelist: &self.rules.whitelist,
            blacklist: &self.rules.blacklist,
            limits,
        };
        let failed = RefCell::new(None);
        let rendered = pipe::render(&file.text, &options, |text, _| {
            let context = self.context_of(env, file, sls, defaults);
            let settings = if sls.is_empty() { &self.rules.jinja } else { &self.rules.jinja_sls };
            let host = Surroundings { files: self.files, env, functions: &self.functions, said: RefCell::default() };
            jinja::render(text, &context, &host, settings, &self.rules.limits).map_err(|error| {
                let failure = Failure::of_jinja(&error, host.said.borrow().as_deref());
                let text = failure.full.clone();
                *failed.borrow_mut() = Some(failure);
                PipeError::Jinja(text)
            })
        });
        rendered.map_err(|error| failed.into_inner().unwrap_or_else(|| Failure::of_pipe(&error)))
    }

    fn context_of(&self, env: &str, file: &PillarFile, sls: &str, defaults: Option<&Dict>) -> Dict {
        let context = Dict::from_entries(self.context.borrow().clone(), false);
        context.set("saltenv", env.into());
        context.set("sls", sls.into());
        if let Some(defaults) = defaults {
            context.borrow_mut().extend(defaults.borrow().iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        for (name, value) in places(&file.path, &file.rel, sls) {
            context.borrow_mut().entry(name.into()).or_insert_with(|| value.into());
        }
        context
    }
}

/// Where a template is, in the forms that Salt has (`generate_sls_context`).
fn places(path: &str, rel: &str, sls: &str) -> Vec<(&'static str, String)> {
    let rel = if sls.is_empty() { rel.rsplit('/').next().unwrap_or(rel) } else { rel };
    let folder = rel.rsplit_once('/').map_or("", |(folder, _)| folder);
    vec![
        ("tplpath", path.to_owned()),
        ("tplfile", rel.to_owned()),
        ("tpldir", if folder.is_empty() { ".".to_owned() } else { folder.to_owned() }),
        ("tpldot", folder.replace('/', ".")),
        ("slspath", folder.to_owned()),
        ("slsdotpath", folder.replace('/', ".")),
        ("slscolonpath", folder.replace('/', ":")),
        ("sls_path", folder.replace('/', "_")),
    ]
}

/// What a template may ask for.
struct Surroundings<'a> {
    files: &'a Files<'a>,
    env: &'a str,
    functions: &'a functions::Surroundings,
    /// What a function of this file said last.
    said: RefCell<Option<String>>,
}

impl Surroundings<'_> {
    fn refuse(&self, message: String) -> CallError {
        *self.said.borrow_mut() = Some(message.clone());
        CallError { refused: true, message }
    }

    /// `file.file_exists`, for paths below `pillar_roots` alone.
    fn file_exists(&self, positional: &[Value], keyword: &[(Rc<str>, Value)]) -> Result<Value, CallError> {
        let named = keyword.iter().find(|(name, _)| &**name == "path").map(|(_, value)| value);
        let Some(path) = positional.first().or(named).and_then(Value::as_str) else {
            return Err(self.refuse("file.file_exists needs a path".to_owned()));
        };
        let found = self.files.has_path(path);
        found
            .map(Value::Bool)
            .ok_or_else(|| self.refuse("file.file_exists sees paths below pillar_roots only".to_owned()))
    }

    /// `pillar.file_exists`: a path below the folders of an environment, or of any.
    fn pillar_file_exists(&self, positional: &[Value], keyword: &[(Rc<str>, Value)]) -> Result<Value, CallError> {
        let given = |at: usize, name: &str| {
            let named = keyword.iter().find(|(known, _)| &**known == name).map(|(_, value)| value);
            positional.get(at).or(named)
        };
        let Some(path) = given(0, "path").and_then(Value::as_str) else {
            return Err(self.refuse("pillar.file_exists needs a path".to_owned()));
        };
        let saltenv = given(1, "saltenv").filter(|saltenv| saltenv.truthy());
        Ok(Value::Bool(match saltenv {
            Some(saltenv) => saltenv.as_str().is_some_and(|env| self.files.exists(env, path)),
            None => self.files.envs().into_iter().any(|env| self.files.exists(env, path)),
        }))
    }
}

/// The functions of pillars that look at files.
const FILE_EXISTS: &str = "file.file_exists";
const PILLAR_FILE_EXISTS: &str = "pillar.file_exists";

fn is_missing(name: &str) -> String {
    format!("{name} is not there for pillars: their templates can only compute and read pillar_roots")
}

impl Host for Surroundings<'_> {
    fn load(&self, path: &str) -> Result<Option<Source>, String> {
        let found = self.files.read(self.env, path).map_err(|why| format!("{path}: {why}"))?;
        Ok(found.map(|file| Source { path: file.path, text: file.text.to_string() }))
    }

    fn has_function(&self, name: &str) -> bool {
        matches!(name, FILE_EXISTS | PILLAR_FILE_EXISTS) || functions::known(name)
    }

    fn functions(&self) -> Vec<String> {
        functions::names().chain([FILE_EXISTS, PILLAR_FILE_EXISTS].map(str::to_owned)).collect()
    }

    fn why_missing(&self, name: &str) -> Option<String> {
        Some(is_missing(name))
    }

    fn call(&self, name: &str, positional: Vec<Value>, keyword: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        self.files.check_time().map_err(|why| self.refuse(why.to_string()))?;
        match name {
            FILE_EXISTS => return self.file_exists(&positional, &keyword),
            PILLAR_FILE_EXISTS => return self.pillar_file_exists(&positional, &keyword),
            _ => {}
        }
        let answer = functions::call(self.functions, name, positional, keyword);
        answer.unwrap_or_else(|| Err(self.refuse(is_missing(name))))
    }

    fn random(&self) -> Option<u64> {
        Some(rand::random())
    }

    fn now(&self) -> Option<i64> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.ok().and_then(|now| i64::try_from(now.as_secs()).ok())
    }
}
