//! `no_return`: minions that did not return, in red.

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::Style;
use super::color::Palette;

/// Returns `None` if a map has keys that Python cannot sort.
pub(super) fn render(value: &Value, style: &Style) -> Option<String> {
    let mut out = String::new();
    write(&mut out, value, 0, style, &Palette::new(style.color))?;
    Some(out)
}

fn write(out: &mut String, value: &Value, indent: usize, style: &Style, palette: &Palette) -> Option<()> {
    let blank = " ".repeat(indent);
    match value {
        Value::String(text) => {
            for line in text.as_str().unwrap_or_default().split('\n') {
                out.extend([palette.red, &blank, &style.pass(line), palette.end, "\n"]);
            }
        }
        Value::Map(entries) => {
            for (key, item) in pyrepr::sorted(entries)? {
                let key = pyrepr::str(key);
                out.extend([palette.cyan, &blank, &style.pass(&key), palette.end, ":\n"]);
                write(out, item, indent + 4, style, palette)?;
            }
        }
        _ => {}
    }
    Some(())
}
