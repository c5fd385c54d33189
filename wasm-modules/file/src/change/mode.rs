//! Modes as Salt's users write them: `'0644'`, `644`, `0o644`.

use brine_guest::Value;
use brine_guest::changes::Entry;

/// Salt's form of a mode: four digits at least. None for None. What is no mode stays as it is, and cannot be set.
pub(crate) fn normal(mode: &Value) -> Option<String> {
    if *mode == Value::None {
        return None;
    }
    let text = mode.to_text().replace("0o", "0");
    let digits = text.trim_matches('"').trim_matches('\'').trim_start_matches('0');
    Some(format!("{digits:0>4}"))
}

/// The bits of a mode in octal digits.
pub(crate) fn bits(mode: &str) -> Option<u32> {
    let is_octal = !mode.is_empty() && mode.bytes().all(|digit| (b'0'..b'8').contains(&digit));
    is_octal.then(|| u32::from_str_radix(mode, 8).ok()).flatten().filter(|bits| *bits <= 0o7777)
}

/// The mode of a file in Salt's form.
pub(crate) fn of(entry: &Entry) -> String {
    format!("{:04o}", entry.mode)
}

/// The mode of the directories around a file with this mode: who may do anything with the file may enter them.
pub(crate) fn of_directories(mode: &str) -> String {
    let mut digits: Vec<char> = mode.chars().collect();
    let digits = &mut digits.split_off(mode.chars().count().saturating_sub(3));
    for digit in digits.iter_mut() {
        if let Some(number) = digit.to_digit(8).filter(|number| *number > 0) {
            *digit = char::from_digit(number | 1, 8).unwrap_or(*digit);
        }
    }
    digits.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_salts_form() {
        for (mode, form) in [
            (Value::from("0644"), "0644"),
            (Value::from("644"), "0644"),
            (Value::Int(644), "0644"),
            (Value::Int(0), "0000"),
            (Value::from("0o755"), "0755"),
            (Value::from("'1777'"), "1777"),
            (Value::from("u+x"), "0u+x"),
        ] {
            assert_eq!(normal(&mode).as_deref(), Some(form));
        }
        assert_eq!(normal(&Value::None), None);
        assert_eq!((bits("0644"), bits("7777"), bits("10000")), (Some(0o644), Some(0o7777), None));
        assert_eq!((bits("0u+x"), bits("0888"), bits("")), (None, None, None));
    }

    #[test]
    fn directories_can_be_entered() {
        for (mode, directories) in [("0644", "755"), ("0600", "700"), ("4750", "750"), ("0000", "000"), ("7", "7")] {
            assert_eq!(of_directories(mode), directories);
        }
    }
}
