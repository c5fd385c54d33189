//! Text that states `file.accumulated` leave for later states of the same file: `file.managed` has it in its template's
//! context, `file.blockreplace` in its block.

use brine_render::{Dict, Key, Value};
use brine_states::run::Call;

use crate::arguments::{items, text};

/// What one name has for one file.
struct Accumulator {
    file: String,
    name: String,
    texts: Vec<Value>,
    /// The states that it names as requiring or watching it.
    wanted_by: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Accumulators(Vec<Accumulator>);

impl Accumulators {
    /// Keeps the text of a state `file.accumulated` that succeeded.
    pub(crate) fn keep(&mut self, call: &Call, result: &Value) {
        if call.function != "file.accumulated" || !succeeded(result) {
            return;
        }
        let of = |name: &str| call.low.get(name);
        let (Some(file), Some(name), Some(given)) = (of("filename"), of("name"), of("text")) else { return };
        let (file, name) = (text(&file), text(&name));
        let at = match self.0.iter().position(|known| known.file == file && known.name == name) {
            Some(at) => at,
            None => {
                self.0.push(Accumulator { file, name, texts: Vec::new(), wanted_by: Vec::new() });
                self.0.len() - 1
            }
        };
        let known = &mut self.0[at];
        for requisite in ["require_in", "watch_in"].iter().filter_map(|name| of(name)) {
            for one in items(&requisite) {
                if let Value::Dict(one) = one {
                    known.wanted_by.extend(one.borrow().iter().map(|(_, id)| text(id)));
                }
            }
        }
        let parts = if matches!(given, Value::List(_)) { items(&given) } else { vec![given] };
        for part in parts {
            if !known.texts.iter().any(|text| text.equals(&part) == Some(true)) {
                known.texts.push(part);
            }
        }
    }

    /// The arguments of a state, with what earlier states left for it.
    pub(crate) fn arguments(&self, call: &Call) -> Dict {
        let named = |name: &str| call.low.get(name).map(|value| text(&value)).unwrap_or_default();
        let copy = || Dict::from_entries(call.arguments.borrow().clone(), call.arguments.is_ordered());
        match call.function.as_str() {
            "file.managed" => {
                let of_file = self.of_file(&named("name"));
                if of_file.is_empty() {
                    return call.arguments.clone();
                }
                let all =
                    of_file.iter().map(|known| (Key::from(known.name.as_str()), Value::list(known.texts.clone())));
                let context = match call.arguments.get("context") {
                    Some(Value::Dict(given)) => Dict::from_entries(given.borrow().clone(), given.is_ordered()),
                    _ => Dict::default(),
                };
                context.set("accumulator", Value::dict(all));
                let arguments = copy();
                arguments.set("context", context.into());
                arguments
            }
            "file.blockreplace" => {
                let of_file = self.of_file(&named("name"));
                let id = named("__id__");
                let mine: Vec<_> = of_file.iter().filter(|known| known.wanted_by.contains(&id)).copied().collect();
                let chosen = if mine.is_empty() { of_file } else { mine };
                self.with_lines(call, copy, chosen)
            }
            "file.accumulated" => {
                let name = named("name");
                let known = self.of_file(&named("filename")).into_iter().filter(|known| known.name == name).collect();
                self.with_lines(call, copy, known)
            }
            _ => call.arguments.clone(),
        }
    }

    fn of_file(&self, file: &str) -> Vec<&Accumulator> {
        self.0.iter().filter(|known| known.file == file).collect()
    }

    fn with_lines(&self, call: &Call, copy: impl Fn() -> Dict, chosen: Vec<&Accumulator>) -> Dict {
        if chosen.is_empty() {
            return call.arguments.clone();
        }
        let arguments = copy();
        arguments.set("accumulator", Value::list(chosen.iter().flat_map(|known| known.texts.clone())));
        arguments
    }
}

/// Whether a state's result is true.
fn succeeded(result: &Value) -> bool {
    matches!(result, Value::Dict(result) if result.get("result").is_some_and(|result| result.truthy()))
}
