//! The module `jinja`: what maps and files of formulas load as. The functions and their documentation are in
//! `wit/world.wit`. `slsutil.renderer` renders them, so that this module has no renderer of its own.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "jinja",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
    },
    generate_all,
});

use brine_guest::Value;
use brine_guest::host::functions;

struct Module;

type Answer = Result<Data, String>;

/// The function that renders texts, with the files that templates of the state tree import.
const RENDERS: &str = "slsutil.renderer";

/// What a template of `statement`, and then `name` as JSON, renders to.
fn load(statement: &str, name: &str) -> Answer {
    functions::call(RENDERS, &[], &Value::dict([("string", template(statement, name).into())]).into())
}

fn template(statement: &str, name: &str) -> String {
    format!("{{% {statement} %}}\n{{{{ {name} | tojson }}}}\n")
}

impl Guest for Module {
    fn load_map(path: String, value: String) -> Answer {
        load(&format!("from \"{path}\" import {value} with context"), &value)
    }

    fn import_yaml(path: String) -> Answer {
        load(&format!("import_yaml \"{path}\" as imported"), "imported")
    }

    fn import_json(path: String) -> Answer {
        load(&format!("import_json \"{path}\" as imported"), "imported")
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_imports_and_shows() {
        let text = template("import_yaml \"a/b.yaml\" as imported", "imported");
        assert_eq!(text, "{% import_yaml \"a/b.yaml\" as imported %}\n{{ imported | tojson }}\n");
    }
}
