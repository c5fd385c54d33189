//! The module `slsutil`: helpers for SLS files. The functions and their documentation are in `wit/world.wit`; what only
//! computes is in `brine_render::functions`, as for templates.
//!
//! - [`render`] files and texts to values · [`tree`] paths of the state tree

wit_bindgen::generate!({
    world: "slsutil",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
    generate_all,
});

mod render;
mod tree;

use std::rc::Rc;

use brine_guest::keywords::Keywords;
use brine_guest::{Value, compute, wire};
use brine_render::functions::Module as Functions;

struct Module;

type Answer = Result<Data, String>;

/// The environment where the caller names none.
const BASE: &str = "base";

fn call<const N: usize>(function: &str, arguments: [(&str, Option<Data>); N]) -> Answer {
    compute::call(Functions::SLSUTIL, &compute::nothing(), function, arguments)
}

/// With the keywords that the signature does not name.
fn with_keywords(function: &str, positional: [Data; 2], kwargs: &Data) -> Answer {
    let positional = positional.iter().map(wire::value).collect::<Result<Vec<_>, _>>()?;
    let keywords = Keywords::new(kwargs, [])?;
    // What Salt adds to each call is none of them (`clean_kwargs`).
    let named = keywords.iter().filter(|(name, _)| !name.starts_with("__"));
    let named = named.map(|(name, value)| Ok((Rc::from(name), wire::value(&value.clone().into())?)));
    let named = named.collect::<Result<Vec<_>, String>>()?;
    compute::run(Functions::SLSUTIL, &compute::nothing(), function, positional, named)
}

impl Guest for Module {
    fn update(dest: Data, upd: Data, recursive_update: Option<Data>, merge_lists: Option<Data>) -> Answer {
        let options = [("recursive_update", recursive_update), ("merge_lists", merge_lists)];
        let [recursive_update, merge_lists] = options;
        call("update", [("dest", Some(dest)), ("upd", Some(upd)), recursive_update, merge_lists])
    }

    fn merge(
        obj_a: Data,
        obj_b: Data,
        strategy: Option<Data>,
        renderer: Option<Data>,
        merge_lists: Option<Data>,
    ) -> Answer {
        let named = [("strategy", strategy), ("renderer", renderer), ("merge_lists", merge_lists)];
        let [strategy, renderer, merge_lists] = named;
        call("merge", [("obj_a", Some(obj_a)), ("obj_b", Some(obj_b)), strategy, renderer, merge_lists])
    }

    fn merge_all(lst: Data, strategy: Option<Data>, renderer: Option<Data>, merge_lists: Option<Data>) -> Answer {
        let named = [("strategy", strategy), ("renderer", renderer), ("merge_lists", merge_lists)];
        let [strategy, renderer, merge_lists] = named;
        call("merge_all", [("lst", Some(lst)), strategy, renderer, merge_lists])
    }

    fn renderer(
        path: Option<String>,
        string: Option<String>,
        default_renderer: Option<String>,
        kwargs: Data,
    ) -> Answer {
        render::renderer(path, string, default_renderer.as_deref().unwrap_or("jinja|yaml"), &kwargs)
    }

    fn serialize(serializer: String, obj: Data, kwargs: Data) -> Answer {
        with_keywords("serialize", [serializer.into(), obj], &kwargs)
    }

    fn deserialize(serializer: String, stream_or_string: Data, kwargs: Data) -> Answer {
        with_keywords("deserialize", [serializer.into(), stream_or_string], &kwargs)
    }

    fn banner(
        width: Option<Data>,
        commentchar: Option<Data>,
        borderchar: Option<Data>,
        blockstart: Option<Data>,
        blockend: Option<Data>,
        title: Option<Data>,
        text: Option<Data>,
        newline: Option<Data>,
    ) -> Answer {
        call(
            "banner",
            [
                ("width", width),
                ("commentchar", commentchar),
                ("borderchar", borderchar),
                ("blockstart", blockstart),
                ("blockend", blockend),
                ("title", title),
                ("text", text),
                ("newline", newline),
            ],
        )
    }

    fn boolstr(value: Data, true_: Option<Data>, false_: Option<Data>) -> Answer {
        call("boolstr", [("value", Some(value)), ("true", true_), ("false", false_)])
    }

    fn file_exists(path: String, saltenv: Option<String>) -> Result<bool, String> {
        tree::Tree::of(saltenv)?.has_file(&path)
    }

    fn dir_exists(path: String, saltenv: Option<String>) -> Result<bool, String> {
        tree::Tree::of(saltenv)?.has_directory(&path)
    }

    fn path_exists(path: String, saltenv: Option<String>) -> Result<bool, String> {
        tree::Tree::of(saltenv)?.has(&path)
    }

    fn findup(startpath: Data, filenames: Data, saltenv: Option<String>) -> Result<String, String> {
        let start = match startpath.value()? {
            Value::None => String::new(),
            other => other.to_text(),
        };
        let names = match filenames.value()? {
            Value::Text(name) => vec![name],
            Value::List(names) => names.iter().map(Value::to_text).collect(),
            _ => return Err("Filenames argument must be a string or list of strings".into()),
        };
        tree::Tree::of(saltenv)?.find_up(&start, &names)
    }
}

export!(Module);
