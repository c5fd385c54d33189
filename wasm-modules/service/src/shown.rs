//! What `systemctl show` prints, as Salt's dict.

use brine_guest::Value;

/// Reads `KEY=VALUE` lines. Values in braces are dicts; some are lists.
pub(crate) fn read(lines: &str) -> Value {
    let mut shown: Vec<(Value, Value)> = Vec::new();
    for line in lines.lines() {
        let (name, text) = line.split_once('=').unwrap_or((line, ""));
        let value = if text.starts_with('{') {
            fields(text)
        } else if matches!(name, "Before" | "After" | "Wants") {
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into()
        } else {
            text.into()
        };
        shown.retain(|(known, _)| known.text() != Some(name));
        shown.push((name.into(), value));
    }
    Value::Dict(shown)
}

/// `{ path=/bin/x ; argv[]=/bin/x -d ; … }`
fn fields(text: &str) -> Value {
    let text = text.replace(['{', '}'], "");
    let mut found: Vec<(Value, Value)> = Vec::new();
    for item in text.split(" ; ") {
        // As in Salt, what comes after a second `=` is left out.
        let mut parts = item.split('=');
        let (name, value) = (parts.next().unwrap_or_default().trim(), parts.next().unwrap_or_default().trim());
        found.retain(|(known, _)| known.text() != Some(name));
        found.push((name.into(), value.into()));
    }
    Value::Dict(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_a_dict() {
        let shown = read(
            "Id=cron.service\nAfter=a.target b.target\nExecStart={ path=/usr/sbin/cron ; argv[]=/usr/sbin/cron -f $X ; pid=0 }\nOptions=a=b\nEmpty=",
        );
        assert_eq!(shown.get("Id"), Some(&"cron.service".into()));
        assert_eq!(shown.get("After"), Some(&vec!["a.target", "b.target"].into()));
        assert_eq!(shown.get("Options"), Some(&"a=b".into()));
        assert_eq!(shown.get("Empty"), Some(&"".into()));
        let start = shown.get("ExecStart").unwrap();
        assert_eq!(start.get("path"), Some(&"/usr/sbin/cron".into()));
        assert_eq!(start.get("argv[]"), Some(&"/usr/sbin/cron -f $X".into()));
    }
}
