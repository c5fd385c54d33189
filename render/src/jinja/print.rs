//! What `{{ value }}` prints: dicts as YAML can read them (Salt's `PrintableDict`).

use std::fmt::{self, Write};

use crate::value::{MAX_DEPTH, Value};
use crate::yaml::{DumpOptions, Style, dump};

pub(super) fn write(value: &Value, out: &mut dyn Write) -> fmt::Result {
    write_in(value, out, 0, true)
}

fn write_in(value: &Value, out: &mut dyn Write, depth: usize, as_text: bool) -> fmt::Result {
    if depth > MAX_DEPTH {
        return Err(fmt::Error);
    }
    let items = |items: &[Value], out: &mut dyn Write| {
        for (at, item) in items.iter().enumerate() {
            out.write_str(if at > 0 { ", " } else { "" })?;
            write_in(item, out, depth + 1, false)?;
        }
        Ok(())
    };
    match value {
        Value::Dict(dict) => {
            out.write_char('{')?;
            for (at, (key, item)) in dict.borrow().iter().enumerate() {
                out.write_str(if at > 0 { ", " } else { "" })?;
                key.value().write_repr(out)?;
                out.write_str(": ")?;
                match item {
                    Value::Str(text) if text.contains(['\n', '\r', '\t']) => out.write_str(&quote(item))?,
                    Value::Str(_) => item.write_repr(out)?,
                    _ => write_in(item, out, depth + 1, as_text)?,
                }
            }
            out.write_char('}')
        }
        Value::List(list) => {
            out.write_char('[')?;
            items(&list.borrow(), out)?;
            out.write_char(']')
        }
        Value::Tuple(tuple) => {
            out.write_char('(')?;
            items(tuple, out)?;
            out.write_str(if tuple.len() == 1 { ",)" } else { ")" })
        }
        _ if as_text => value.write_str(out),
        _ => value.write_repr(out),
    }
}

fn quote(value: &Value) -> String {
    let options = DumpOptions { default_style: Some(Style::DoubleQuoted), width: -1, ..DumpOptions::default() };
    dump(value, &options).unwrap_or_default().trim_end_matches('\n').to_owned()
}
