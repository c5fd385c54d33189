//! Content that is rendered.

use brine_guest::template::Templates;
use brine_guest::{Data, Value};

use super::Trouble;

/// The variables that a template gets beside Salt's, later ones counting more.
pub(crate) type Names = Vec<(String, Data)>;

/// Adds `defaults`, and over them `context`.
pub(crate) fn add_context(names: &mut Names, defaults: &Value, context: &Value) {
    for dict in [defaults, context] {
        if let Value::Dict(entries) = dict {
            names.extend(entries.iter().map(|(name, value)| (name.to_text(), value.clone().into())));
        }
    }
}

/// Renders a text by a template engine of Salt's, of which Jinja is here.
pub(crate) fn render(engine: &str, text: &[u8], saltenv: &str, names: &Names) -> Result<Vec<u8>, Trouble> {
    if engine != "jinja" {
        return Err(Trouble::Said(format!("Specified template format {engine} is not supported")));
    }
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        // Salt takes what is no text as it is.
        Err(_) if !brine_guest::diff::is_text(text) => return Ok(text.to_vec()),
        Err(error) => {
            let at = error.valid_up_to();
            return Err(Trouble::Raised(format!(
                "'utf-8' codec can't decode byte 0x{:02x} in position {at}",
                text[at]
            )));
        }
    };
    let templates = Templates::new(saltenv).map_err(Trouble::Raised)?;
    templates.render(text, names).map(String::into_bytes).map_err(Trouble::Raised)
}
