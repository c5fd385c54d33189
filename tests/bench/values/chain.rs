//! A chain of maps, as formulas have it: an SLS that imports a map, which merges defaults and what is of a family and a
//! distribution, by macros of another file. Some 500 lines in all.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use brine_render::functions::{self, Surroundings};
use brine_render::jinja::{self, CallError, Host, Source};
use brine_render::pipe::{self, PipeError, PipeOptions, Rendered};
use brine_render::{Dict, Value};

use super::write;

/// Entries of the defaults, and of each family and distribution.
const DEFAULTS: usize = 90;
const FAMILY: usize = 12;
const FAMILIES: [&str; 6] = ["Debian", "RedHat", "Suse", "Arch", "FreeBSD", "MacOS"];
const DISTRIBUTIONS: [&str; 6] = ["Debian", "Ubuntu", "Fedora", "CentOS", "Gentoo", "Arch"];
/// The grains that are looked at.
const GRAINS: [(&str, &str); 5] =
    [("id", "web1"), ("os_family", "Debian"), ("os", "Ubuntu"), ("osfinger", "Ubuntu-24.04"), ("init", "systemd")];

const MACROS: &str = r#"{%- macro option(name, value, level=0) -%}
{%- if value is mapping -%}
{%- for key, inner in value|dictsort %}
{{ option(name ~ "." ~ key, inner, level + 1) }}
{%- endfor -%}
{%- elif value is string -%}
{{ name }} = "{{ value }}"
{%- elif value is iterable -%}
{{ name }} = {{ value|join(", ") }}
{%- else -%}
{{ name }} = {{ value|lower if value is sameas true or value is sameas false else value }}
{%- endif -%}
{%- endmacro %}
"#;

const MAP: &str = r#"{%- import_yaml "web/defaults.yaml" as defaults %}
{%- import_yaml "web/osfamilymap.yaml" as osfamilymap %}
{%- import_yaml "web/osmap.yaml" as osmap %}
{%- set family = salt["grains.filter_by"](osfamilymap, grain="os_family") or {} %}
{%- set distribution = salt["grains.filter_by"](osmap, grain="os") or {} %}
{%- set web = salt["slsutil.merge"](defaults["web"], family) %}
{%- set web = salt["slsutil.merge"](web, distribution) %}
{%- set web = salt["slsutil.merge"](web, salt["pillar.get"]("web", {})) %}
{%- do web.update({"names": []}) %}
{%- for name in web.options %}
{%- if name.startswith("option_") and name not in web.names %}
{%- do web.names.append(name|replace("option_", "")) %}
{%- endif %}
{%- endfor %}
"#;

const INIT: &str = r#"{%- from "web/map.jinja" import web with context %}
{%- from "web/macros.jinja" import option with context %}
{%- for name in web.names %}
web-{{ name }}:
  file.managed:
    - name: {{ web.folder }}/{{ name }}.conf
    - mode: '{{ web.get("mode", "0644") }}'
    - contents: |
        {{ option(name, web.options["option_" ~ name])|indent(8) }}
    - require:
      - pkg: {{ web.package }}
{%- endfor %}
{{ web.package }}:
  pkg.installed:
    - pkgs: {{ web.packages|json }}
"#;

/// Writes the files below `root`, in the folder `web`.
pub(super) fn write_all(root: &Path) {
    let mut defaults =
        String::from("web:\n  package: web\n  packages: [web, web-utils]\n  folder: /etc/web/conf.d\n  options:\n");
    for n in 0..DEFAULTS {
        let value = match n % 4 {
            0 => n.to_string(),
            1 => format!("'text of {n}'"),
            2 => format!("[a{n}, b{n}, c{n}]"),
            _ => format!("{{enabled: true, limit: {n}}}"),
        };
        let _ = writeln!(defaults, "    option_{n:03}: {value}");
    }
    let of = |names: [&str; 6]| {
        let mut text = String::new();
        for name in names {
            let _ = writeln!(text, "{name}:\n  package: web-{}\n  options:", name.to_lowercase());
            for n in 0..FAMILY {
                let _ = writeln!(text, "    option_{:03}: '{name} {n}'", n * 7);
            }
        }
        text
    };
    write(root, "web/defaults.yaml", &defaults);
    write(root, "web/osfamilymap.yaml", &of(FAMILIES));
    write(root, "web/osmap.yaml", &of(DISTRIBUTIONS));
    write(root, "web/map.jinja", MAP);
    write(root, "web/macros.jinja", MACROS);
    write(root, "web/init.sls", INIT);
}

/// What the template may ask for.
struct Files<'a> {
    root: &'a Path,
    functions: Surroundings,
}

impl Host for Files<'_> {
    fn load(&self, path: &str) -> Result<Option<Source>, String> {
        let path: PathBuf = self.root.join(path);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        Ok(Some(Source { path: path.display().to_string(), text }))
    }

    fn has_function(&self, name: &str) -> bool {
        functions::known(name)
    }

    fn call(&self, name: &str, positional: Vec<Value>, keyword: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        let answer = functions::call(&self.functions, name, positional, keyword);
        answer.unwrap_or_else(|| Err(CallError { refused: true, message: format!("no {name}") }))
    }
}

/// Renders the SLS so many times and returns the milliseconds of each; files are read each time.
pub(super) fn render(root: &Path, warm_up: usize, times: usize) -> Vec<f64> {
    let mut took = Vec::new();
    for run in 0..warm_up + times {
        let began = Instant::now();
        let states = once(root);
        let elapsed = began.elapsed().as_secs_f64() * 1000.0;
        assert_eq!(states, DEFAULTS + 1);
        if run >= warm_up {
            took.push(elapsed);
        }
    }
    took
}

/// Renders the SLS and returns the number of its states.
fn once(root: &Path) -> usize {
    let grains = || Dict::from_iter(GRAINS.map(|(name, value)| (name.into(), Value::str(value))));
    let host = Files { root, functions: Surroundings::new("web1", grains(), Dict::default(), Dict::default()) };
    let context = Dict::default();
    context.set("grains", Value::Dict(grains()));
    context.set("pillar", Value::Dict(Dict::default()));
    context.set("salt", jinja::functions());
    let text = std::fs::read_to_string(root.join("web/init.sls")).expect("our own file");
    let rendered = pipe::render(&text, &PipeOptions::default(), |text, _| {
        jinja::render(text, &context, &host, &jinja::Settings::default(), &jinja::Limits::default())
            .map_err(|error| PipeError::Jinja(error.to_string()))
    });
    match rendered.expect("it renders") {
        Rendered::Value(Value::Dict(states)) => states.borrow().len(),
        other => panic!("{other:?}"),
    }
}
