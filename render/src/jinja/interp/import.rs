//! Other templates: loading, `include`, `import`.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::ast::{Name, Template};
use super::super::error::{ErrorKind, JinjaError, Res};
use super::super::object::{Module, Undefined, cast};
use super::super::scope::{Context, Scope};
use super::super::{ops, parser};
use super::{Interp, check};
use crate::value::Value;

impl Interp<'_> {
    /// The template of a name.
    pub(super) fn load_one(&mut self, name: &Value) -> Res<Rc<Template>> {
        check(name)?;
        let Some(name) = name.as_str() else {
            return Err(JinjaError::python(format!("'{}' is no name of a template", name.type_name())));
        };
        let Some(path) = self.resolve(name) else { return Err(JinjaError::new(ErrorKind::NotFound, name)) };
        if let Some(known) = self.templates.get(name) {
            return Ok(known.clone());
        }
        if self.templates.len() >= self.limits.templates {
            return Err(JinjaError::limit(format!("more than {} templates", self.limits.templates)));
        }
        let source = self.host.load(&path).map_err(JinjaError::python)?;
        let Some(source) = source else { return Err(JinjaError::new(ErrorKind::NotFound, name)) };
        self.set_place(name, &path);
        if source.text.len() > self.limits.text {
            return Err(JinjaError::limit(format!("{name} has more than {} bytes", self.limits.text)));
        }
        self.charge(source.text.len())?;
        self.take_steps(source.text.len())?;
        let mut parsed = parser::parse(&source.text, Some(source.path.as_str().into()), self.settings)?;
        if let Some(parsed) = Rc::get_mut(&mut parsed) {
            parsed.name = Some(name.into());
        }
        self.charge(parsed.size)?;
        self.templates.insert(name.to_owned(), parsed.clone());
        Ok(parsed)
    }

    /// The path of a name: `./x` and `../x` are beside the template that is being rendered.
    fn resolve(&self, name: &str) -> Option<String> {
        if !matches!(name.split('/').next(), Some("." | "..")) {
            return Some(name.strip_prefix("salt://").unwrap_or(name).to_owned());
        }
        let base = self.globals.get("tpldir")?;
        let mut parts = Vec::new();
        for part in base.as_str()?.split('/').chain(name.split('/')) {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    /// `tpldir` and the like are those of the template that was loaded last.
    fn set_place(&mut self, name: &str, path: &str) {
        let is_relative = matches!(name.split('/').next(), Some("." | ".."));
        let mut folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        if is_relative && let Some(Value::Str(given)) = self.globals.get("tpldir") {
            folder = given.to_string();
        }
        let file = if is_relative { name } else { path };
        self.globals.insert("tplfile".into(), file.into());
        self.globals.insert("tpldot".into(), folder.replace('/', ".").into());
        self.globals.insert("tpldir".into(), if folder.is_empty() { ".".into() } else { folder.into() });
    }

    /// The first template of a name or of a list of names.
    fn load_any(&mut self, names: &Value) -> Res<Rc<Template>> {
        if matches!(names, Value::Str(_)) || cast::<Undefined>(names).is_some() {
            return self.load_one(names);
        }
        let names = ops::iterate(self, names)?;
        for name in &names {
            match self.load_one(name) {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                other => return other,
            }
        }
        let all: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        Err(JinjaError::new(ErrorKind::NotFound, format!("none of the templates given were found: {}", all.join(", "))))
    }

    fn given(&mut self, context: bool, scope: &Rc<Scope>) -> Res<Rc<HashMap<Name, Value>>> {
        let given = if context { scope.all() } else { self.globals.clone() };
        self.charge_values(given.len())?;
        Ok(Rc::new(given))
    }

    pub(super) fn include(
        &mut self,
        name: &Value,
        ignore_missing: bool,
        context: bool,
        scope: &Rc<Scope>,
        out: &mut String,
    ) -> Res<()> {
        let template = match self.load_any(name) {
            Err(error) if ignore_missing && error.kind == ErrorKind::NotFound && error.line == 0 => return Ok(()),
            other => other?,
        };
        if !context {
            let module = self.module(&template, None)?;
            self.charge(module.body.len())?;
            out.push_str(&module.body);
            return Ok(());
        }
        let given = self.given(true, scope)?;
        let inner = Scope::top(Context::new(given));
        self.closures.push(inner.clone());
        self.deeper(|interp| interp.run(&template, &inner, out))
    }

    /// The module of a template. Without a context it is made once, and shared.
    fn module(&mut self, template: &Rc<Template>, scope: Option<&Rc<Scope>>) -> Res<Rc<Module>> {
        let name = template.file.as_deref().unwrap_or_default().to_owned();
        if scope.is_none()
            && let Some(known) = self.modules.get(&name)
        {
            return Ok(known.clone());
        }
        let given = match scope {
            Some(scope) => self.given(true, scope)?,
            None => Rc::new(self.globals.clone()),
        };
        let inner = Scope::top(Context::new(given));
        self.closures.push(inner.clone());
        let mut body = String::new();
        self.deeper(|interp| interp.run(template, &inner, &mut body))?;
        let set = inner.context.set.borrow();
        let public = set.iter().filter(|(name, _)| !name.starts_with('_'));
        let values = public.map(|(name, value)| (name.clone(), value.clone())).collect();
        let module = Rc::new(Module { values, body, name: name.clone() });
        if scope.is_none() {
            self.modules.insert(name, module.clone());
        }
        Ok(module)
    }

    pub(super) fn import(&mut self, name: &Value, context: bool, scope: &Rc<Scope>) -> Res<Rc<Module>> {
        let template = self.load_one(name)?;
        self.module(&template, context.then_some(scope))
    }

    pub(super) fn import_names(
        &mut self,
        name: &Value,
        names: &[(Name, Name)],
        context: bool,
        line: u32,
        scope: &Rc<Scope>,
    ) -> Res<()> {
        let module = self.import(name, context, scope)?;
        let shown = name.short_repr();
        let within = self.template.name.as_deref().map(|name| format!(" in {}", Value::str(name).short_repr()));
        let place = format!("line {line}{}", within.unwrap_or_default());
        for (name, alias) in names {
            let value = module.values.get(name).cloned().unwrap_or_else(|| {
                Undefined::value(format!(
                    "the template {shown} (imported on {place}) does not export the requested name '{name}'"
                ))
            });
            scope.set(alias, value);
        }
        Ok(())
    }
}
