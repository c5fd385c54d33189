//! What a hostile template may take: an error within a second and 64 MiB. One test, which has a process to itself: it
//! measures the process.
#![allow(clippy::unwrap_used)]

use std::rc::Rc;

use brine_render::functions::{self, Surroundings};
use brine_render::jinja::{self, CallError, Host, Limits, Settings, Source};
use brine_render::pipe::{self, PipeOptions};
use brine_render::{Dict, Value};

struct Hostile {
    surroundings: Surroundings,
}

impl Host for Hostile {
    fn load(&self, path: &str) -> Result<Option<Source>, String> {
        let text = match path {
            "itself" => "{% include 'itself' %}".to_owned(),
            "module" => "{% import 'module' as m %}".to_owned(),
            "parent" => "{% extends 'parent' %}".to_owned(),
            "two" => "{% include 'two' ~ '' %}{% include 'two' %}".to_owned(),
            "large" => "x".repeat(3 << 20),
            "bomb" => bomb(),
            path if path.starts_with("file") => "{{ 1 }}".repeat(1000),
            _ => return Ok(None),
        };
        Ok(Some(Source { path: path.to_owned(), text }))
    }

    fn has_function(&self, name: &str) -> bool {
        functions::known(name)
    }

    fn call(&self, name: &str, positional: Vec<Value>, keyword: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        let answer = functions::call(&self.surroundings, name, positional, keyword);
        answer.unwrap_or_else(|| Err(CallError::python(format!("no {name}"))))
    }
}

/// Ten aliases of ten aliases, nine times.
fn bomb() -> String {
    let mut text = "a0: &a0 [lol, lol]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    text
}

fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Seconds that this thread has run.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

#[test]
fn hostile_templates_take_a_second_and_64_mib_at_most() {
    let double = |what: &str| {
        format!(
            "{{% set ns = namespace(x={what}) %}}{{% for i in range(60) %}}{{% set ns.x = ns.x + ns.x %}}{{% endfor %}}"
        )
    };
    let aliases = format!("{{% load_yaml as b %}}\n{}{{% endload %}}", bomb());
    let templates: Vec<String> = [
        "{{ 'x' * 10**9 }}",
        "{{ [0] * 10**9 }}",
        "{{ ('x' * 10**6)|list|length }}{{ ('x' * 10**7)|list }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(x) %}{{ m(x ~ x) }}{{ m(x ~ x) }}{% endmacro %}{{ m('x') }}",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% for i in range(99999) %}{% for j in range(99999) %}{% call m() %}x{% endcall %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
        "{% set l = [] %}{% for i in range(100000) %}{% for j in range(100000) %}{% do l.append([i, j]) %}{% endfor %}{% endfor %}",
        "{% set d = {} %}{% for i in range(100000) %}{% for j in range(100000) %}{% do d.update({i ~ '-' ~ j: {}}) %}{% endfor %}{% endfor %}",
        "{% set l = [1] %}{% for i in l %}{% do l.append(i) %}{% do l.extend(l) %}{% endfor %}{% for i in range(99999) %}{% do l.extend(l) %}{% endfor %}",
        "{% include 'itself' %}",
        "{% import 'module' as m %}",
        "{% extends 'parent' %}",
        "{% include 'two' %}",
        "{% for i in range(1000) %}{% include 'large' %}{% endfor %}",
        "{% for i in range(100000) %}{% include 'file' ~ i %}{% endfor %}",
        "{% for i in range(100000) %}{{ range(100000)|list|json|length }}{% endfor %}",
        "{% for i in range(100000) %}{{ range(100000)|sort|join|md5 }}{% endfor %}",
        "{{ range(99)|permutations|list }}",
        "{{ range(99)|product(repeat=50)|list }}",
        "{{ range(99999)|combinations(3)|list }}",
        "{{ '10.0.0.0/8'|network_hosts }}",
        "{{ '::/0'|network_hosts }}",
        "{{ ('a' * 10**6)|regex_replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') }}",
        "{% for i in range(99999) %}{{ ('a' * 5000 ~ '!')|regex_search('(a*)*(?=b)b') }}{% endfor %}",
        "{% for i in range(99999) %}{{ ('a' * 100000)|regex_match('(a|b)*c') }}{% endfor %}",
        "{% set l = range(50000)|list %}{% for i in l %}{{ i in l }}{{ l|unique|length }}{% endfor %}",
        "{% set l = range(99999)|list %}{% for i in l %}{% do salt['defaults.deepcopy'](l) %}{% endfor %}",
        "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% do ns.l.append(salt['pillar.get']('big')) %}{% endfor %}",
        "{% for i in range(99999) %}{% do salt['slsutil.merge']({'l': range(9999)|list}, {'l': range(9999)|list}, merge_lists=True) %}{% endfor %}",
        "{% for i in range(99999) %}{{ salt['pillar.items']()|yaml|length }}{% endfor %}",
        "{% for i in range(99999) %}{{ '%50000d' % 1 }}{{ '{:>50000}'.format(1) }}{% endfor %}",
        "{% for i in range(99999) %}{{ (10 ** 38) * 10 }}{% endfor %}",
        "{% import_yaml 'bomb' as b %}{{ b }}",
        "{% import_yaml 'bomb' as b %}{{ b|json }}",
        "{% import_yaml 'bomb' as b %}{{ b == salt['defaults.deepcopy'](b) }}{{ salt['pillar.get']('x', b, merge=True)|string }}",
        "{% set l = [] %}{% for i in range(300000) %}{% set l = [l] %}{% endfor %}{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}{{ ns.l|yaml }}",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([double("'x'"), double("[1]"), double("(1,)"), format!("{aliases}{{{{ b|string }}}}")])
    .chain(["(", "[", "not ", "{1:", "-"].map(|piece| format!("{{{{ {}", piece.repeat(90_000))))
    .chain(["{% if 1 %}", "{{ a", "{% for i in x %}"].map(|piece| piece.repeat(20_000)))
    .chain(["{{ 1 }}", "{# #}{{ a }}", "{% set a = 1 %}"].map(|piece| piece.repeat(250_000)))
    .chain(["|string", " + 1", "[0]", ".x", "()"].map(|piece| format!("{{{{ 1{} }}}}", piece.repeat(50_000))))
    .collect();
    let (mut slowest, mut largest) = ((0.0, String::new()), (0, String::new()));
    for template in &templates {
        let big = Value::list((0..20_000).map(Value::from));
        let pillar = Dict::default();
        pillar.set("big", big);
        let host = Hostile { surroundings: Surroundings::new("m", Dict::default(), pillar, Dict::default()) };
        let context = Dict::default();
        context.set("salt", jinja::functions());
        // sets the peak of the memory anew
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (memory, start) = (status("VmRSS"), processor_time());
        let shown: String = template.chars().take(90).collect();
        let options = PipeOptions { default: "jinja|yaml", ..PipeOptions::default() };
        let done = pipe::render(template, &options, |text, _| {
            jinja::render(text, &context, &host, &Settings::default(), &Limits::default())
                .map_err(|error| pipe::PipeError::Jinja(error.to_string()))
        });
        let error = done.err().map(|error| error.to_string()).unwrap_or_default();
        let size = error.len();
        assert!((1..16 << 10).contains(&size), "an error of {size} bytes: {shown}");
        let (took, peak) = (processor_time() - start, status("VmHWM").saturating_sub(memory));
        if took > slowest.0 {
            slowest = (took, shown.clone());
        }
        if peak > largest.0 {
            largest = (peak, shown.clone());
        }
        if std::env::var_os("BRINE_SHOW_LIMITS").is_some() {
            println!("{took:.2} s {:3} MiB {shown} => {}", peak >> 20, error.lines().next().unwrap_or_default());
        }
    }
    println!("slowest: {:.2} s {}\nlargest: {} MiB {}", slowest.0, slowest.1, largest.0 >> 20, largest.1);
    // without optimisation, all takes some ten times as long
    let most = if cfg!(debug_assertions) { 15.0 } else { 1.0 };
    assert!(slowest.0 < most, "{slowest:?}");
    assert!(largest.0 < 64 << 20, "{largest:?}");
}
