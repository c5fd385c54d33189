//! Scripts and commands that are templates.

use brine_guest::Value;
use brine_guest::host::functions;

/// The function that renders templates.
const RENDERS: &str = "file.apply_template_on_contents";

/// Renders a text as the module `file` renders what it manages. `context` is a dict of what the template sees beside the usual.
///
/// # Errors
/// What the module says.
pub(crate) fn render(text: String, template: &str, saltenv: &str, context: Value) -> Result<String, String> {
    let keyword = Value::dict([
        ("contents", text.into()),
        ("template", template.into()),
        ("context", context),
        ("defaults", Value::Dict(Vec::new())),
        ("saltenv", saltenv.into()),
    ]);
    match functions::call(RENDERS, &[], &keyword.into())?.value()? {
        Value::Text(text) => Ok(text),
        failed => Err(failed.get("comment").unwrap_or(&failed).to_text()),
    }
}
