//! Templates beside stock Salt's answers (`tests/python/jinja_oracle.py` makes them), and the bounds.

use std::rc::Rc;

use brine_render::jinja::{self, CallError, Host, JinjaError, Limits, Settings, Source};
use brine_render::{Value, yaml};

struct Files(Vec<(&'static str, &'static str)>);

impl Host for Files {
    fn load(&self, path: &str) -> Result<Option<Source>, String> {
        let found = self.0.iter().find(|(name, _)| *name == path);
        Ok(found.map(|(name, text)| Source { path: format!("/srv/{name}"), text: (*text).to_owned() }))
    }

    fn has_function(&self, name: &str) -> bool {
        name == "test.echo"
    }

    fn has_module(&self, name: &str) -> bool {
        matches!(name, "cmd" | "test")
    }

    fn functions(&self) -> Vec<String> {
        vec!["test.echo".to_owned()]
    }

    fn why_missing(&self, name: &str) -> Option<String> {
        (name == "cmd.run").then(|| "cmd.run is not allowed".to_owned())
    }

    fn call(&self, name: &str, positional: Vec<Value>, _: Vec<(Rc<str>, Value)>) -> Result<Value, CallError> {
        match name {
            "test.echo" => Ok(positional.into_iter().next().unwrap_or_default()),
            _ => Err(CallError { refused: true, message: format!("{name} is not allowed") }),
        }
    }
}

const CONTEXT: &str = r#"{"a": 1, "b": 2.5, "s": "Hello World", "l": [3, 1, 2], "n": null, "t": true, "e": [],
"d": {"x": 1, "y": {"z": "deep"}}, "words": ["apple", "Banana", "cherry", "apple"],
"users": [{"name": "bob", "uid": 2}, {"name": "ann", "uid": 1}], "text": "one\ntwo\n\nthree"}"#;

fn render(template: &str, files: Vec<(&'static str, &'static str)>) -> Result<String, Box<JinjaError>> {
    let Ok(Value::Dict(context)) = yaml::load(CONTEXT, &yaml::Limits::default()) else { panic!("a dict") };
    context.set("salt", jinja::functions());
    jinja::render(template, &context, &Files(files), &Settings::default(), &Limits::default())
}

/// What is equal: outputs are, and errors' messages up to the excerpt.
fn first_line(text: &str) -> &str {
    text.split("; line ").next().unwrap_or_default().trim_end()
}

/// The templates whose answers are known to differ; each should go.
const KNOWN: &str = include_str!("data/jinja-differences.jsonl");

#[test]
fn templates_render_as_with_stock_salt() {
    let known: Vec<String> = KNOWN.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut different = Vec::new();
    let mut count = 0;
    for line in include_str!("data/jinja.jsonl").lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let template = case["template"].as_str().unwrap();
        count += 1;
        let ours = render(template, vec![]);
        let (got, expect) = match (&ours, case["output"].as_str(), case["error"].as_str()) {
            (Ok(out), Some(expect), _) => (out.clone(), expect.to_owned()),
            (Err(error), None, Some(expect)) => {
                (first_line(&error.to_string()).to_owned(), first_line(expect).to_owned())
            }
            (Ok(out), None, expect) => (format!("rendered {out}"), format!("error {expect:?}")),
            (Err(error), expect, _) => (format!("error {error}"), format!("output {expect:?}")),
        };
        if got != expect && !known.iter().any(|k| k == template) {
            different.push((template.to_owned(), got, expect));
        }
    }
    if let Ok(path) = std::env::var("JINJA_DIFFERENCES") {
        let lines = different.iter().map(|(t, ..)| serde_json::to_string(t).unwrap() + "\n").collect::<String>();
        std::fs::write(path, lines).unwrap();
    }
    for (template, got, expect) in &different {
        println!("{template:?}\n    got    {got:?}\n    expect {expect:?}");
    }
    assert!(different.is_empty(), "{} of {count} differ", different.len());
}

#[test]
fn imports_and_includes() {
    let files = vec![
        ("lib.jinja", "{% set v = a + 1 %}{% macro m(x) %}<{{ x }}>{% endmacro %}"),
        ("part.jinja", "part {{ q }}"),
        ("data.yaml", "k: [1, 2]"),
        ("base.jinja", "[{% block b %}base{% endblock %}]"),
        ("loop.jinja", "{% include 'loop.jinja' %}"),
    ];
    let check =
        |template: &str, expect: &str| assert_eq!(render(template, files.clone()).unwrap(), expect, "{template}");
    check("{% from 'lib.jinja' import v, m with context %}{{ v }}{{ m(v) }}", "2<2>");
    check("{% import 'lib.jinja' as lib %}{{ lib.m(lib.v) }}", "<2>");
    check("{% set q = 5 %}{% include 'part.jinja' %}", "part 5");
    check("{% import_yaml 'data.yaml' as data %}{{ data.k[1] }}", "2");
    check("{% extends 'base.jinja' %}{% block b %}{{ super() }}+{% endblock %}", "[base+]");
    check("{{ salt['test.echo']('x') }}{{ salt.test.echo('y') }}{{ 'test.echo' in salt }}", "xyTrue");
    let refused = render("{{ salt['test.echo'](1) }}{{ salt.cmd.run('x') }}", vec![]).unwrap_err();
    assert!(refused.to_string().starts_with("Problem running salt function in Jinja template: cmd.run is not allowed"));
    assert!(render("{% include 'loop.jinja' %}", files.clone()).is_err());
    assert!(render("{% include 'nope' %}", files.clone()).is_err());
    let error = render("\n{% from 'lib.jinja' import nope %}{{ nope }}", files.clone()).unwrap_err().to_string();
    let expect = "Jinja variable the template 'lib.jinja' (imported on line 2) does not export the requested name 'nope'; line 2";
    assert_eq!(error.lines().next(), Some(expect));
}

#[test]
fn hostile_templates_end_with_an_error() {
    for template in [
        "{{ 'x' * 10**9 }}",
        "{{ [0] * 10**12 }}",
        "{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ 'x'.center(10**9) }}",
        "{{ 'x'|indent(10**9) }}",
        "{% set l = [] %}{% do l.append(l) %}{% set l = [l, l] %}{% for i in range(60) %}{% set x = l|string|length %}{% endfor %}{{ l == [l] }}{{ 1/0 }}",
        "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'|regex_search('(a*)*(?=b)b') }}{{ 1/0 }}",
    ] {
        assert!(render(template, vec![]).is_err(), "{template}");
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("not ", ""), ("-", ""), ("{1:", "}")] {
        let template = format!("{{{{ {}1{} }}}}", open.repeat(50_000), close.repeat(50_000));
        assert!(render(&template, vec![]).is_err(), "{open}");
    }
    let chain = format!("{{{{ a{} }}}}", "|string".repeat(50_000));
    assert!(render(&chain, vec![]).is_err());
    let sum = format!("{{{{ 1{} }}}}", " + 1".repeat(50_000));
    assert!(render(&sum, vec![]).is_err());
    assert!(render(&"{% if t %}".repeat(10_000), vec![]).is_err());
}

#[test]
fn an_error_names_line_and_excerpt() {
    let error = render("one\ntwo {{ d.nope }}\nthree", vec![]).unwrap_err();
    let expect = "Jinja variable 'dict object' has no attribute 'nope'; line 2\n\n---\none\ntwo {{ d.nope }}    \
                  <======================\nthree\n---";
    assert_eq!(error.to_string(), expect);
}

/// Recorded from Salt 3008.5.
#[test]
fn functions_are_a_dict_of_their_names() {
    for (template, expect) in [
        ("{{ salt.get('test.echo')(7) }} {{ salt.get('no.such') }} {{ salt.get('no.such', 5) }}", "7 None 5"),
        ("{{ 'test.echo' in salt }} {{ 'no.such' in salt }} {{ 'test.echo' in salt.keys() }}", "True False True"),
        ("{{ salt.keys()|list }} {{ salt.values()|list }}", "['test.echo'] [<LoadedFunc name='test.echo'>]"),
        ("{% for name, call in salt.items() %}{{ name }} {{ call(1) }}{% endfor %}", "test.echo 1"),
        ("{{ salt.foo is defined }} {{ salt.test is defined }} {{ salt.test.nope is defined }}", "False True False"),
        ("{{ salt.test.echo is callable }} {{ salt.test.get is defined }} {{ salt.test.echo(2) }}", "True False 2"),
        ("{{ salt['no.such'] is callable }} {{ salt['test.echo'] is callable }}", "True True"),
        (
            "{{ salt is mapping }} {{ salt is iterable }} {{ salt.test }}",
            "False True <LoadedMod module='salt.loaded.test'>",
        ),
        ("{{ salt.cmd.run is defined }} {{ salt['cmd.run'] is defined }}", "False False"),
    ] {
        assert_eq!(render(template, vec![]).unwrap(), expect, "{template}");
    }
    for (template, expect) in [
        ("{{ salt.foo.bar() }}", "Jinja variable 'salt.utils.templates.AliasedLoader object' has no attribute 'foo'"),
        ("{{ salt.test.nope() }}", "Jinja variable 'salt.loader.lazy.LoadedMod object' has no attribute 'nope'"),
        (
            "{{ salt['no.such']() }}",
            "Jinja variable 'salt.utils.templates.AliasedLoader object' has no attribute 'no.such'",
        ),
        ("{{ salt.cmd.run('x') }}", "Problem running salt function in Jinja template: cmd.run is not allowed"),
        ("{{ salt['cmd.run']('x') }}", "Problem running salt function in Jinja template: cmd.run is not allowed"),
    ] {
        let said = render(template, vec![]).unwrap_err().to_string();
        assert_eq!(first_line(&said), expect, "{template}");
    }
}

/// Recorded from Salt 3008.5.
#[test]
fn arguments_that_are_no_use_are_errors() {
    for (template, expect) in [
        ("{{ 'abcdef'|truncate(2) }}", "expected length >= 3, got 2"),
        ("{{ 'abcdef'|truncate('x') }}", "'>=' not supported between instances of 'str' and 'int'"),
        ("{{ 'abc'|truncate(5, leeway=-1) }}", "expected leeway >= 0, got -1"),
        ("{{ 5|truncate(3) }}", "object of type 'int' has no len()"),
        ("{{ ' a '|trim(5) }}", "strip arg must be None or str"),
        ("{{ 'a'|avg }}", "could not convert string to float: 'a'"),
        ("{{ [1].append(1, 2) }}", "list.append() takes exactly one argument (2 given)"),
        ("{{ {'a': 1}.update(1, 2) }}", "update expected at most 1 argument, got 2"),
    ] {
        let said = render(template, vec![]).unwrap_err().to_string();
        assert_eq!(first_line(&said), format!("Jinja error: {expect}"), "{template}");
    }
    for (template, expect) in [
        ("{{ 'abcdef ghi'|truncate(5, True, '..', 0) }}", "abc.."),
        ("{{ 'one two three four'|truncate(12) }}", "one two..."),
        ("{{ 'abcdefgh'|truncate(3) }}", "abcdefgh"),
        ("{{ '5'|avg }} {{ [1, 2]|avg }}", "5.0 1.5"),
    ] {
        assert_eq!(render(template, vec![]).unwrap(), expect, "{template}");
    }
}
