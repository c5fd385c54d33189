//! From a file to the value that its renderers make of it.

use std::rc::Rc;

use brine_render::jinja::{self, CallError, ErrorKind, JinjaError, Source};
use brine_render::pipe::{Pipe, PipeError, PipeOptions, Rendered};
use brine_render::value::Key;
use brine_render::yaml::{YamlError, YamlErrorKind};
use brine_render::{Dict, Value};

use crate::fault::Fault;
use crate::host::{File, Host};
use crate::limits::Budget;
use crate::options::Options;

/// Why a file renders to nothing.
#[derive(Debug)]
pub(crate) enum RenderError {
    /// `SaltRenderError`
    Salt(String),
    /// Another exception of Python.
    Python(&'static str, String),
    /// The file is outside our bounds.
    Limit(Fault),
}

/// What renders files.
pub(crate) struct Templates<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) options: &'a Options,
    pub(crate) budget: &'a Budget,
    /// More names for templates: what a reaction knows of its event.
    pub(crate) context: Option<&'a Dict>,
}

/// The functions and files that a template of an environment may ask for.
struct Surroundings<'a> {
    host: &'a dyn Host,
    saltenv: &'a str,
}

impl jinja::Host for Surroundings<'_> {
    fn load(&self, path: &str) -> Result<Option<Source>, String> {
        let Some(file) = self.host.load(self.saltenv, path)? else { return Ok(None) };
        let text = std::str::from_utf8(&file.data).map_err(|error| decode_error(&file.data, error))?;
        Ok(Some(Source { path: file.path, text: text.to_owned() }))
    }

    fn has_function(&self, name: &str) -> bool {
        self.host.has_function(name)
    }

    fn has_module(&self, name: &str) -> bool {
        self.host.has_module(name)
    }

    fn functions(&self) -> Vec<String> {
        self.host.functions()
    }

    fn why_missing(&self, name: &str) -> Option<String> {
        self.host.why_no_function(name)
    }

    fn call(&self, name: &str, positional: Vec<Value>, keyword: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        self.host.call(self.saltenv, name, positional, keyword)
    }

    fn random(&self) -> Option<u64> {
        self.host.random()
    }

    fn now(&self) -> Option<i64> {
        self.host.now()
    }
}

impl Templates<'_> {
    /// Renders a file. An empty one is an empty dict; `sls` is empty for a top file.
    pub(crate) fn render(&self, file: &File, saltenv: &str, sls: &str) -> Result<Value, RenderError> {
        let text = std::str::from_utf8(&file.data)
            .map_err(|error| RenderError::Python("UnicodeDecodeError", decode_error(&file.data, error)))?;
        // Python reads files in text mode
        let text = universal_newlines(text);
        let options = PipeOptions {
            default: &self.options.renderer,
            whitelist: &self.options.renderer_whitelist,
            blacklist: &self.options.renderer_blacklist,
            limits: self.budget.limits.yaml,
        };
        let pipe = Pipe::of_file(&text, &options).map_err(|error| RenderError::Salt(error.to_string()))?;
        for name in &pipe.skipped {
            self.host.warn(&format!("{}: the renderer \"{name}\" is left out, as configured", file.path));
        }
        let mut failed = None;
        let rendered = pipe.render(&text, &self.budget.limits.yaml, |text, _| {
            let rendered = self.jinja(text, file, saltenv, sls).and_then(|out| {
                self.budget.rendered(out.len()).map_err(RenderError::Limit)?;
                Ok(out)
            });
            match rendered {
                Ok(out) => Ok(out),
                Err(error) => {
                    failed = Some(error);
                    Err(PipeError::Jinja(String::new()))
                }
            }
        });
        match rendered {
            Ok(Rendered::Value(value)) => Ok(value),
            // Salt has an object there that is no dict, and true
            Ok(Rendered::Text(_)) => Ok(Value::Bool(true)),
            Err(_) if failed.is_some() => Err(failed.unwrap_or(RenderError::Salt(String::new()))),
            Err(PipeError::Yaml(error)) => Err(yaml_error(&error)),
            Err(PipeError::Json(error)) if !error.limit => {
                Err(RenderError::Python("json.decoder.JSONDecodeError", error.to_string()))
            }
            Err(error) => Err(RenderError::Salt(error.to_string())),
        }
    }

    fn jinja(&self, text: &str, file: &File, saltenv: &str, sls: &str) -> Result<String, RenderError> {
        let options = self.options;
        let settings = if sls.is_empty() { &options.jinja_env } else { &options.jinja_sls_env };
        let context = Dict::default();
        context.set("salt", jinja::functions());
        context.set("grains", options.grains.clone());
        context.set("opts", options.opts.clone());
        context.set("pillar", options.pillar.clone());
        context.set("proxy", Value::dict([]));
        context.set("saltenv", saltenv.into());
        context.set("sls", sls.into());
        for (name, value) in place(&file.path, sls) {
            context.borrow_mut().insert(Key::from(name), value.into());
        }
        for (name, value) in self.context.map(|more| more.borrow().clone()).unwrap_or_default() {
            context.borrow_mut().insert(name, value);
        }
        let host = Surroundings { host: self.host, saltenv };
        jinja::render(text, &context, &host, settings, &self.budget.limits.jinja)
            .map_err(|error| RenderError::Salt(jinja_error(&error)))
    }
}

/// `\r\n` and `\r` as `\n`.
fn universal_newlines(text: &str) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() }
}

/// The names by which a template knows where it is.
///
/// | name | for `web/init.sls` | for `web/sites.sls` |
/// |---|---|---|
/// | `tplpath` | the file in the cache | |
/// | `tplfile` | `web/init.sls` | `web/sites.sls` |
/// | `tpldir`, `slspath` | `web` | `web` |
/// | `tpldot`, `slsdotpath`, `slscolonpath`, `sls_path` | with `.`, `.`, `:`, `_` | |
pub(crate) fn place(path: &str, sls: &str) -> Vec<(&'static str, String)> {
    let dotted = sls.replace('.', "/");
    let slspath = dotted.trim_end_matches('/');
    let file = format!("{slspath}.sls");
    let init = format!("{slspath}/init.sls");
    let template = if sls.is_empty() {
        path.rsplit('/').next().unwrap_or_default()
    } else if path.ends_with(&file) {
        &file
    } else if path.ends_with(&init) {
        &init
    } else {
        let folder = match sls.trim_end_matches('/').rsplit_once('/') {
            Some(("", _)) => "/",
            Some((folder, _)) => folder,
            None => ".",
        };
        return vec![("tplpath", path.into()), ("tplfile", sls.into()), ("tpldir", folder.into())];
    };
    let folder = template.rsplit_once('/').map_or("", |(folder, _)| folder);
    vec![
        ("tplpath", path.into()),
        ("tplfile", template.into()),
        ("tpldir", if folder.is_empty() { ".".into() } else { folder.into() }),
        ("tpldot", folder.replace('/', ".")),
        ("slspath", folder.into()),
        ("slsdotpath", folder.replace('/', ".")),
        ("slscolonpath", folder.replace('/', ":")),
        ("sls_path", folder.replace('/', "_")),
    ]
}

/// Salt's text of a template's error. Where Python has an exception of its own, Salt adds its traceback, of which the
/// last line is left.
fn jinja_error(error: &JinjaError) -> String {
    let text = error.to_string();
    let class = match error.kind {
        ErrorKind::Python | ErrorKind::Lookup => exception_class(&error.message),
        ErrorKind::NotFound => "jinja2.exceptions.TemplateNotFound",
        ErrorKind::Undefined | ErrorKind::Template | ErrorKind::Function | ErrorKind::Limit => return text,
    };
    let trace = format!("\nTraceback (most recent call last):\n{class}: {}\n\n", error.message);
    match &error.file {
        _ if error.line == 0 => text + &trace,
        Some(_) => text + &trace,
        None => {
            let head = format!("Jinja error: {}", error.message);
            let rest = text.strip_prefix(&head).unwrap_or_default();
            format!("{head}{trace}{rest}")
        }
    }
}

/// The class of an exception by its text.
fn exception_class(message: &str) -> &'static str {
    let has = |part: &str| message.contains(part);
    if has("not supported between") {
        "TypeError"
    } else if has("has no attribute") {
        "AttributeError"
    } else if has("by zero") {
        "ZeroDivisionError"
    } else if has("index out of range") || has("from empty list") {
        "IndexError"
    } else if has("invalid literal") || has("not in list") || has("unpack") || has("substring not found") {
        "ValueError"
    } else if message.starts_with('\'') && message.ends_with('\'') {
        "KeyError"
    } else {
        "TypeError"
    }
}

fn yaml_error(error: &YamlError) -> RenderError {
    use YamlErrorKind as K;
    let class = match error.kind {
        K::Scanner => return RenderError::Salt(error.problem.clone()),
        K::Parser | K::Constructor | K::Limit => return RenderError::Salt(error.to_string()),
        K::Reader => "yaml.reader.ReaderError",
        K::Composer => "yaml.composer.ComposerError",
        K::Value => "ValueError",
        K::Index => "IndexError",
        K::Key => "KeyError",
        K::Attribute => "AttributeError",
    };
    RenderError::Python(class, error.to_string())
}

/// Python's `UnicodeDecodeError`.
fn decode_error(data: &[u8], error: std::str::Utf8Error) -> String {
    let at = error.valid_up_to();
    let byte = data.get(at).copied().unwrap_or_default();
    let why = match (error.error_len(), byte) {
        (None, _) => "unexpected end of data",
        (_, 0x80..=0xc1 | 0xf5..) => "invalid start byte",
        _ => "invalid continuation byte",
    };
    format!("'utf-8' codec can't decode byte 0x{byte:02x} in position {at}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_knows_its_place() {
        let get = |path: &str, sls: &str, name: &str| {
            place(path, sls).into_iter().find(|(n, _)| *n == name).map(|(_, value)| value)
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(get("/c/base/web/init.sls", "web", "tplfile"), text("web/init.sls"));
        assert_eq!(get("/c/base/web/init.sls", "web", "tpldir"), text("web"));
        assert_eq!(get("/c/base/a/b/c.sls", "a.b.c", "sls_path"), text("a_b"));
        assert_eq!(get("/c/base/a/b/c.sls", "a.b.c", "slscolonpath"), text("a:b"));
        assert_eq!(get("/c/base/top.sls", "", "tplfile"), text("top.sls"));
        assert_eq!(get("/c/base/x.sls", "x", "tpldir"), text("."));
        assert_eq!(get("/c/base/x.sls", "x", "slspath"), text(""));
        assert_eq!(get("/tmp/odd", "a/b", "tpldir"), text("a"));
    }
}
