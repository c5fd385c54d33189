//! `file.serialize`

use brine_guest::changes::Kind;
use brine_guest::states::is_dry_run;
use brine_guest::{Data, Value, changes, wire};
use brine_render::serializers::Serializer;

use super::Ret;
use super::arguments::Arguments;
use super::{managed, texts};
use crate::edit::{lines, place, serialize};

/// What the state hands on to `file.managed`.
const OF_THE_FILE: [&str; 11] = [
    "user",
    "group",
    "mode",
    "backup",
    "makedirs",
    "show_changes",
    "check_cmd",
    "tmp_dir",
    "tmp_ext",
    "encoding",
    "encoding_errors",
];

pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<Ret, String> {
    if name.is_empty() {
        return Ok(Ret::bad("Must provide name to file.serialize"));
    }
    if !arguments.flag("create", true) && !changes::is(name, Kind::Regular)? {
        return Ok(Ret::good(format!("File {name} is not present and is not set for creation")));
    }
    let (serializer, formatter) = (arguments.named("serializer"), arguments.named("formatter"));
    if serializer.is_some() && formatter.is_some() {
        return Ok(Ret::bad("Only one of serializer and formatter are allowed"));
    }
    let kind = serializer.or(formatter).unwrap_or_else(|| "yaml".into()).to_lowercase();
    let dataset = match dataset(arguments)? {
        Ok(dataset) => dataset,
        Err(why) => return Ok(Ret::bad(why)),
    };
    let Some(mut format) = Format::named(&kind) else {
        return Ok(Ret::bad(format!(
            "The {kind} serializer could not be found. It either does not exist or its prerequisites are not installed."
        )));
    };
    let mut wanted = wire::value(&Data::from(dataset))?;
    let mut merged = None;
    let mut warnings = Vec::new();
    if arguments.flag("merge_if_exists", false) {
        match existing(name, &format)? {
            Ok(Some(old)) => {
                let new = serialize::merged(&old, &wanted)?;
                if old.equals(&new) == Some(true) {
                    return Ok(Ret::good(format!("The file {name} is in the correct state")));
                }
                merged = Some(serialize::changes(&old, &new));
                wanted = new;
            }
            Ok(None) => {}
            Err(why) => return Ok(Ret::bad(format!("Failed to deserialize existing data: {why}"))),
        }
    } else if arguments.get("deserializer_opts").is_some_and(Value::truthy) {
        warnings.push("The 'deserializer_opts' option is ignored unless merge_if_exists is set to True.".to_owned());
    }
    for (option, value) in options(&kind, arguments)? {
        format.set(&option, &value)?;
    }
    let mut ret = managed::managed(name, &file(arguments, format.content(&wanted)?))?;
    if is_dry_run() && ret.result != Some(false) {
        ret.comment = match ret.result {
            None => format!("Dataset will be serialized and stored into {name}"),
            _ => format!("The file {name} is in the correct state"),
        };
    }
    if let Some(changes) = merged.filter(|_| ret.result != Some(false)) {
        ret.change("diff", wire::data(&changes)?.value()?);
    }
    ret.warnings.extend(warnings);
    Ok(ret)
}

/// How a value is written.
enum Format {
    Text(Serializer),
    /// Bytes, without options.
    MessagePack,
}

impl Format {
    fn named(name: &str) -> Option<Self> {
        if name == "msgpack" { Some(Self::MessagePack) } else { Serializer::named(name).map(Self::Text) }
    }

    fn set(&mut self, option: &str, value: &brine_render::Value) -> Result<(), String> {
        match self {
            Self::Text(serializer) => serializer.set(option, value),
            Self::MessagePack => Err(format!("the serializer msgpack has no option {option} here")),
        }
    }

    /// The content of a file. As in Salt, a text ends with a line.
    fn content(&self, value: &brine_render::Value) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(serializer) => Ok(format!("{}\n", serializer.text(value)?).into_bytes()),
            Self::MessagePack => Ok(wire::data(value)?.msgpack),
        }
    }

    fn value(&self, content: Vec<u8>, name: &str) -> Result<brine_render::Value, String> {
        match self {
            Self::Text(serializer) => lines::text(&content).and_then(|text| {
                // The parser names the file that it reads.
                let in_file =
                    |why: String| why.replace("\"<unicode string>\"", &format!("\"{name}\"")).replace("<???>", name);
                serializer.value(text).map_err(in_file)
            }),
            Self::MessagePack => wire::value(&Data { msgpack: content }),
        }
    }
}

/// The value to write; the inner error is the comment of a failed state.
fn dataset(arguments: &Arguments) -> Result<Result<Value, String>, String> {
    let named = arguments.named("dataset_pillar");
    if named.is_some() && arguments.get("dataset").is_some_and(Value::truthy) {
        return Ok(Err("Only one of 'dataset' and 'dataset_pillar' is permitted".into()));
    }
    let dataset = match named {
        // As in Salt, what is not in the pillar is an empty text.
        Some(key) => Some(texts::pillar(&key)?.unwrap_or_else(|| "".into())),
        None => arguments.get("dataset").cloned(),
    };
    Ok(dataset.ok_or_else(|| "Neither 'dataset' nor 'dataset_pillar' was defined".into()))
}

/// The value in the file; none if there is no file, or nothing in it.
fn existing(name: &str, format: &Format) -> Result<Result<Option<brine_render::Value>, String>, String> {
    if !changes::is(name, Kind::Regular)? {
        return Ok(Ok(None));
    }
    let content = place::read(name)?.unwrap_or_default();
    Ok(format.value(content, name).map(|value| Some(value).filter(|value| !matches!(value, brine_render::Value::None))))
}

/// The state's own options, and over them `serializer_opts`.
fn options(kind: &str, arguments: &Arguments) -> Result<Vec<(String, brine_render::Value)>, String> {
    use brine_render::Value;
    let mut options = Vec::new();
    let mut set = |name: &str, value: Value| options.push((name.to_owned(), value));
    let encodes = arguments.named("encoding").is_some();
    match kind {
        "yaml" => {
            set("default_flow_style", false.into());
            set("allow_unicode", encodes.into());
        }
        "json" => {
            set("indent", 2.into());
            set("separators", Value::tuple([",".into(), ": ".into()]));
            set("sort_keys", true.into());
        }
        _ => {}
    }
    for (name, value) in repacked(arguments.get("serializer_opts")) {
        options.push((name, wire::value(&Data::from(value))?));
    }
    Ok(options)
}

/// As Salt has it, a list of dicts with one key each and of names whose value is none; all else, also a dict with two
/// keys among them, counts as nothing.
fn repacked(given: Option<&Value>) -> Vec<(String, Value)> {
    let Some(Value::List(items)) = given else { return Vec::new() };
    let mut made = Vec::new();
    for item in items {
        match item {
            Value::Dict(entries) if entries.len() == 1 => {
                made.extend(entries.iter().map(|(name, value)| (name.to_text(), value.clone())));
            }
            Value::Text(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Bool(_) => {
                made.push((item.to_text(), Value::None))
            }
            _ => return Vec::new(),
        }
    }
    made
}

/// The arguments of `file.managed`.
fn file(arguments: &Arguments, content: Vec<u8>) -> Arguments {
    let given = OF_THE_FILE.iter().filter_map(|name| Some(((*name).into(), arguments.get(name)?.clone())));
    let mut of_file = Arguments::from(given.collect());
    // Bytes are written as they are.
    of_file.set("contents", Value::Bytes(content));
    of_file
}
