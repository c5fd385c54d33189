//! YAML that the minion writes into files of its own, and reads again.

use brine_protocol::value::Value;
use brine_render::yaml::{DumpOptions, dump};

/// Ends of lines to the writer, and letters to the reader of configurations: a text with one of them would be another text when it is read
/// again.
const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

/// Writes a value as Salt does.
///
/// # Errors
/// One line.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    let dumped = brine_render::Value::from_wire(value).map_err(|e| e.to_string())?;
    let options = DumpOptions { default_flow_style: Some(false), ..DumpOptions::default() };
    let text = dump(&dumped, &options).map_err(|e| e.to_string())?;
    match text.contains(SEPARATORS) {
        false => Ok(text),
        true => dump(&dumped, &DumpOptions { allow_unicode: false, ..options }).map_err(|e| e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;
    use brine_protocol::value::{list, map};

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for odd in
            ["a\u{2028}b", "\u{2029}", "ä\u{2028}sandbox: {}", "a\n\u{2029} b\n", "\u{85}", "ü", "'\"\u{2028}: #"]
        {
            let value = map([("top", list([map([(odd, odd)])]))]);
            let text = write(&value).unwrap();
            assert_eq!(yaml::load(&text).as_ref(), Ok(&value), "{text}");
        }
        assert_eq!(write(&map([("a", "ü")])).unwrap(), "a: ü\n");
    }
}
