//! The module `defaults`: the defaults of formulas, and merging. The functions and their documentation are in
//! `wit/world.wit`; what only computes is in `brine_render::functions`, as for templates.

wit_bindgen::generate!({
    world: "defaults",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/files@1.0.0": brine_guest::host::files,
    },
    generate_all,
});

use brine_guest::{compute, template, wire};
use brine_render::Value;
use brine_render::data::traverse;
use brine_render::functions::Module as Functions;
use brine_render::{json, yaml};

struct Module;

type Answer = Result<Data, String>;

/// The environment whose files are read, as in Salt.
const BASE: &str = "base";

fn call<const N: usize>(function: &str, arguments: [(&str, Option<Data>); N]) -> Answer {
    compute::call(Functions::DEFAULTS, &compute::nothing(), function, arguments)
}

/// What a file of defaults has; `is_yaml` as opposed to JSON.
fn parse(content: Vec<u8>, is_yaml: bool) -> Result<Value, String> {
    let limits = yaml::Limits::default();
    let text = String::from_utf8(content).map_err(|_| "the file of defaults is no text in UTF-8")?;
    let value = match is_yaml {
        true => yaml::load(&text, &limits).map_err(|error| error.to_string())?,
        false => json::load(&text, &limits).map_err(|error| error.to_string())?,
    };
    Ok(if value.truthy() { value } else { Value::dict([]) })
}

/// The defaults in a folder; none where there are none.
fn load(folder: &str) -> Result<Value, String> {
    for (name, is_yaml) in [("defaults.yaml", true), ("defaults.json", false)] {
        if let Some(content) = template::load(&format!("{folder}/{name}"), BASE)? {
            return parse(content, is_yaml);
        }
    }
    Ok(Value::None)
}

/// The folder that a key names, and the way into its defaults.
fn split(key: &str) -> (&str, Option<&str>) {
    let (folder, way) = key.split_once(':').unwrap_or((key, ""));
    (folder, Some(way).filter(|way| !way.is_empty()))
}

impl Guest for Module {
    fn get(key: String, default: Option<Data>) -> Answer {
        let (folder, way) = split(&key);
        let defaults = load(folder)?;
        let Some(way) = way else { return wire::data(&defaults) };
        match traverse(&defaults, &way.into(), ":").map_err(|error| error.message)? {
            Some(found) => wire::data(&found),
            None => Ok(default.unwrap_or_else(|| "".into())),
        }
    }

    fn merge(
        dest: Data,
        src: Data,
        merge_lists: Option<Data>,
        in_place: Option<Data>,
        convert_none: Option<Data>,
    ) -> Answer {
        let named = [("merge_lists", merge_lists), ("in_place", in_place), ("convert_none", convert_none)];
        let [merge_lists, in_place, convert_none] = named;
        call("merge", [("dest", Some(dest)), ("src", Some(src)), merge_lists, in_place, convert_none])
    }

    fn deepcopy(source: Data) -> Answer {
        call("deepcopy", [("source", Some(source))])
    }

    fn update(
        dest: Data,
        defaults: Data,
        merge_lists: Option<Data>,
        in_place: Option<Data>,
        convert_none: Option<Data>,
    ) -> Answer {
        let named = [("merge_lists", merge_lists), ("in_place", in_place), ("convert_none", convert_none)];
        let [merge_lists, in_place, convert_none] = named;
        call("update", [("dest", Some(dest)), ("defaults", Some(defaults)), merge_lists, in_place, convert_none])
    }
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_a_folder_and_a_way() {
        for (key, parts) in [
            ("core", ("core", None)),
            ("core:", ("core", None)),
            ("core:users:root", ("core", Some("users:root"))),
            (":x", ("", Some("x"))),
        ] {
            assert_eq!(split(key), parts);
        }
    }

    #[test]
    fn a_file_without_values_is_an_empty_dict() {
        for (text, is_yaml) in [("", true), ("~", true), ("[]", false)] {
            assert_eq!(parse(text.into(), is_yaml), Ok(Value::dict([])), "{text:?}");
        }
        assert!(parse("a: [".into(), true).is_err() && parse("{".into(), false).is_err());
        assert!(parse(vec![0xff], true).is_err());
    }
}
