//! `key`: salt-key's listing, with one heading for each status.

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::color::Palette;
use super::{Style, nested};

/// `None` if the value is not a map of statuses.
pub(super) fn render(value: &Value, style: &Style) -> Option<String> {
    let palette = Palette::new(style.color);
    let Value::Map(statuses) = value else { return None };
    let mut lines = Vec::new();
    for (status, keys) in pyrepr::sorted(statuses)? {
        let (color, heading_color, heading) = match status.as_str()? {
            "minions" | "nodes" => (palette.green, palette.light_green, "Accepted Keys:"),
            "minions_pre" | "nodes_pre" => (palette.red, palette.light_red, "Unaccepted Keys:"),
            "minions_denied" | "nodes_denied" => (palette.magenta, palette.light_magenta, "Denied Keys:"),
            "minions_rejected" | "nodes_rejected" => (palette.blue, palette.light_blue, "Rejected Keys:"),
            "local" => (palette.magenta, palette.light_magenta, "Local Keys:"),
            _ => return None,
        };
        lines.push(format!("{heading_color}{heading}{}", palette.end));
        match keys {
            Value::Array(names) => {
                let mut names: Vec<_> = names.iter().map(pyrepr::str).collect();
                names.sort();
                for name in names {
                    lines.push(format!("{color}{}{}", format_name(&name, style), palette.end));
                }
            }
            Value::Map(named) => {
                for (name, item) in pyrepr::sorted(named)? {
                    let name = pyrepr::str(name);
                    let text = pyrepr::str(item);
                    let text = style.pass(&text);
                    lines.push(format!("{color}{}:  {text}{}", format_name(&name, style), palette.end));
                }
            }
            _ => return None,
        }
    }
    Some(lines.join("\n"))
}

fn format_name(name: &str, style: &Style) -> String {
    let name = if style.strip_colors { nested::strip_escapes(name) } else { name.into() };
    style.pass_name(&name).into_owned()
}
