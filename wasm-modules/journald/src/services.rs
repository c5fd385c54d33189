//! What is looked for: services, each with the fields that an entry of it has.

use brine_guest::Value;

use crate::entry::{Entry, is_field};

/// Judges a configuration, in Salt's words.
pub fn judge(config: &Value) -> Result<(), String> {
    let Some(Value::Dict(services)) = config.get("services") else { return Ok(()) };
    match services.iter().all(|(_, fields)| matches!(fields, Value::Dict(_))) {
        true => Ok(()),
        false => Err("Services configuration for journald beacon must be a list of dictionaries.".into()),
    }
}

/// Services by their names.
pub struct Services(Vec<(String, Vec<(String, Value)>)>);

impl Services {
    /// Those that an entry can fit: fields have names of the journal, and values of text or whole numbers.
    pub fn read(config: &Value) -> Self {
        let Some(Value::Dict(services)) = config.get("services") else { return Self(Vec::new()) };
        let services = services.iter().filter_map(|(name, fields)| {
            let Value::Dict(fields) = fields else { return None };
            let fields = fields.iter().map(|(field, value)| {
                let is_value = match value {
                    Value::Int(_) | Value::Big(_) => true,
                    Value::Text(text) => !text.contains('\0'),
                    _ => false,
                };
                let field = field.to_text();
                (is_value && is_field(&field)).then(|| (field, value.clone()))
            });
            Some((name.to_text(), fields.collect::<Option<Vec<_>>>()?))
        });
        Self(services.collect())
    }

    /// What journalctl is asked for: the fields of one service or of another. Empty: each entry.
    pub fn matches(&self) -> Vec<String> {
        // One without fields fits each entry.
        if self.0.iter().any(|(_, fields)| fields.is_empty()) {
            return Vec::new();
        }
        let mut all = Vec::new();
        for (_, fields) in &self.0 {
            if !all.is_empty() {
                all.push("+".to_owned());
            }
            all.extend(fields.iter().map(|(field, value)| format!("{field}={}", value.to_text())));
        }
        all
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The events of an entry: one for each service that it fits.
    pub fn events(&self, entry: &Entry) -> Vec<Value> {
        let fit = self.0.iter().filter(|(_, fields)| fields.iter().all(|(field, value)| entry.has(field, value)));
        fit.map(|(name, _)| entry.event(name)).collect()
    }
}
