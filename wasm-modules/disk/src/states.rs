//! The state: it judges how full a file system is, and changes nothing, so a dry run does the same. Comments are Salt's.

use brine_guest::Value;
use brine_guest::states::StateResult;

use crate::exports::states::Guest;
use crate::{Data, Module, df, table};

impl Guest for Module {
    fn status(
        name: String,
        maximum: Option<Data>,
        minimum: Option<Data>,
        absolute: Option<Data>,
        free: Option<Data>,
    ) -> Result<StateResult, String> {
        let value = |data: Option<Data>| data.map_or(Ok(Value::None), |data| data.value());
        let (absolute, free) = (value(absolute)?.truthy(), value(free)?.truthy());
        let (maximum, minimum) = (value(maximum)?, value(minimum)?);
        let bounds = match Bounds::read(&maximum, &minimum, absolute, free) {
            Ok(bounds) => bounds,
            Err(comment) => return Ok(StateResult::bad(comment)),
        };
        let known = table(false, df::blocks)?;
        let Some(row) = known.get(&name) else {
            return Ok(StateResult::bad(format!(
                "Disk mount {name} not present. A directory that is no mount point is not looked at"
            )));
        };
        let number = |key: &str| {
            let text = row.get(key).and_then(Value::text).unwrap_or_default();
            text.trim_end_matches('%').parse::<i64>().map_err(|_| format!("{name} has no {key}"))
        };
        let (used, available) = match absolute {
            true => (number("used")?, number("available")?),
            false => number("capacity").map(|used| (used, 100 - used))?,
        };
        Ok(bounds.judge(used, available))
    }
}

/// What is wanted of a file system.
#[derive(Debug, PartialEq)]
struct Bounds {
    maximum: Option<i64>,
    minimum: Option<i64>,
    /// `KB` or `%`.
    unit: &'static str,
    /// Whether the bounds are for what is left.
    free: bool,
}

impl Bounds {
    /// # Errors
    /// Salt's comment on what is wrong with them.
    fn read(maximum: &Value, minimum: &Value, absolute: bool, free: bool) -> Result<Self, String> {
        let mut comment = String::new();
        let mut bound = |name: &str, value: &Value| {
            if *value == Value::None {
                return None;
            }
            let number = whole(value, if absolute { " KB" } else { " %" });
            match number {
                None => comment += &format!("{name} must be an integer "),
                Some(number) if !absolute && !(0..=100).contains(&number) => {
                    comment += &format!("{name} must be in the range [0, 100] ");
                }
                Some(_) => {}
            }
            number
        };
        let (maximum_number, minimum_number) = (bound("maximum", maximum), bound("minimum", minimum));
        if let (Some(maximum), Some(minimum)) = (maximum_number, minimum_number)
            && minimum >= maximum
        {
            comment += "minimum must be less than maximum ";
        }
        if !comment.is_empty() {
            return Err(comment);
        }
        let unit = if absolute { "KB" } else { "%" };
        Ok(Self { maximum: maximum_number, minimum: minimum_number, unit, free })
    }

    fn judge(&self, used: i64, available: i64) -> StateResult {
        let (what, is) = if self.free { ("available", available) } else { ("used", used) };
        let bad = |side: &str, bound: i64| {
            let unit = self.unit;
            StateResult::bad(format!("Disk {what} space is {side} of {bound} {unit} at {is} {unit}"))
        };
        if let Some(minimum) = self.minimum.filter(|minimum| is < *minimum) {
            return bad("below minimum", minimum);
        }
        if let Some(maximum) = self.maximum.filter(|maximum| is > *maximum) {
            return bad("above maximum", maximum);
        }
        StateResult::good("Disk used space in acceptable range")
    }
}

/// Python's `int`, of a text without these signs around it.
fn whole(value: &Value, around: &str) -> Option<i64> {
    match value {
        Value::Bool(is) => Some(i64::from(*is)),
        Value::Int(number) => Some(*number),
        Value::Float(number) if number.is_finite() => Some(*number as i64),
        Value::Text(text) => text.trim_matches(|c| around.contains(c)).trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read() {
        let read = |maximum: Value, minimum: Value, absolute| Bounds::read(&maximum, &minimum, absolute, false);
        let bounds = Bounds { maximum: Some(80), minimum: None, unit: "%", free: false };
        assert_eq!(read("80 %".into(), Value::None, false), Ok(bounds));
        assert_eq!(read("x".into(), 101_i64.into(), false), {
            Err("maximum must be an integer minimum must be in the range [0, 100] ".into())
        });
        assert_eq!(read(5_i64.into(), "5".into(), false), Err("minimum must be less than maximum ".into()));
        assert_eq!(read("100000 KB".into(), Value::None, true).map(|bounds| bounds.maximum), Ok(Some(100_000)));
    }

    #[test]
    fn file_systems_are_judged() {
        let judge = |maximum, minimum, free, used, available| {
            let result = Bounds { maximum, minimum, unit: "%", free }.judge(used, available);
            (result.result == Some(true), result.comment)
        };
        assert_eq!(judge(Some(80), Some(1), false, 47, 53).1, "Disk used space in acceptable range");
        assert_eq!(judge(Some(40), None, false, 47, 53).1, "Disk used space is above maximum of 40 % at 47 %");
        assert_eq!(judge(None, Some(60), false, 47, 53).1, "Disk used space is below minimum of 60 % at 47 %");
        assert_eq!(judge(None, Some(60), true, 47, 53), {
            (false, "Disk available space is below minimum of 60 % at 53 %".into())
        });
    }
}
