//! Grains without sensitive data.

use brine_guest::Value;

/// Masks the grains that reveal the host's name and serial number.
pub(crate) fn sanitized(mut grains: Value) -> Value {
    if let Value::Dict(entries) = &mut grains {
        for (key, value) in entries {
            let replacement = match (key.text(), value.text()) {
                (Some("serialnumber"), Some(serial)) => masked(serial),
                (Some("domain"), _) => "DOMAINNAME".into(),
                (Some("fqdn" | "id"), _) => "MINION.DOMAINNAME".into(),
                (Some("host" | "localhost" | "nodename"), _) => "MINION".into(),
                _ => continue,
            };
            *value = Value::Text(replacement);
        }
    }
    grains
}

/// Replaces the last quarter of a text by X.
fn masked(text: &str) -> String {
    let shown = text.chars().count() * 3 / 4;
    text.chars().enumerate().map(|(i, c)| if i < shown { c } else { 'X' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_serial_number_are_replaced() {
        let entry = |key: &str, value: &str| (Value::from(key), Value::from(value));
        let grains = Value::Dict(vec![
            entry("os", "Debian"),
            entry("id", "web1.example"),
            entry("nodename", "web1"),
            entry("domain", "example"),
            entry("serialnumber", "ABCDEFGHI"),
        ]);
        let expected = Value::Dict(vec![
            entry("os", "Debian"),
            entry("id", "MINION.DOMAINNAME"),
            entry("nodename", "MINION"),
            entry("domain", "DOMAINNAME"),
            entry("serialnumber", "ABCDEFXXX"),
        ]);
        assert_eq!(sanitized(grains), expected);
    }
}
