//! Salt's arguments of a command: their meaning, and the values that are refused.

use brine_guest::program::LOCALE;
use brine_guest::{Data, Value};

/// The arguments of a call; those that a function does not have are empty.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "some change nothing here, and are taken for the sake of callers that pass them")]
pub(crate) struct Call {
    pub cmd: Value,
    pub cwd: Option<String>,
    pub stdin: Option<Data>,
    pub runas: Option<String>,
    pub group: Option<String>,
    pub shell: Option<String>,
    pub python_shell: Option<bool>,
    pub env: Option<Data>,
    pub clean_env: Option<bool>,
    pub template: Option<Data>,
    pub rstrip: Option<bool>,
    pub umask: Option<Data>,
    pub output_encoding: Option<String>,
    pub output_loglevel: Option<String>,
    pub log_callback: Option<Data>,
    pub hide_output: Option<bool>,
    pub timeout: Option<Data>,
    pub reset_system_locale: Option<bool>,
    pub ignore_retcode: Option<bool>,
    pub saltenv: Option<String>,
    pub use_vt: Option<bool>,
    pub redirect_stderr: Option<bool>,
    pub bg: Option<bool>,
    pub password: Option<Data>,
    pub encoded_cmd: Option<bool>,
    pub raise_err: Option<bool>,
    pub prepend_path: Option<String>,
    pub success_retcodes: Option<Data>,
    pub success_stdout: Option<Data>,
    pub success_stderr: Option<Data>,
    /// Whether a line must not be split into words if there is no shell.
    pub needs_shell: bool,
}

/// The search path of the host, to which `prepend_path` adds.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Call {
    /// A command without options.
    pub(crate) fn new(cmd: Data) -> Result<Self, String> {
        Ok(Self { cmd: cmd.value()?, ..Self::default() })
    }

    /// Refuses options that are not supported here, instead of ignoring them.
    pub(crate) fn supported(&self) -> Result<(), String> {
        if self.use_vt == Some(true) {
            return Err("use_vt: a job has no terminal".into());
        }
        if self.bg == Some(true) {
            return Err("bg: what a job starts ends with the job".into());
        }
        Ok(())
    }

    /// The name of the engine that renders the command and its folder, if one is to.
    pub(crate) fn template(&self) -> Result<Option<String>, String> {
        Ok(given(self.template.as_ref())?.filter(Value::truthy).map(|template| template.to_text()))
    }

    /// Whether the command and its output stay out of the log.
    pub(crate) fn quiet(&self) -> bool {
        self.output_loglevel.as_deref().is_some_and(|level| level.eq_ignore_ascii_case("quiet"))
    }

    pub(crate) fn env(&self) -> Result<Vec<(String, String)>, String> {
        let mut env = match given(self.env.as_ref())? {
            None => Vec::new(),
            Some(env) => variables(&env)?,
        };
        let has = |env: &[(String, String)], name: &str| env.iter().any(|(key, _)| key == name);
        if self.reset_system_locale != Some(false) {
            for name in LOCALE {
                if !has(&env, name) {
                    env.push((name.into(), "C".into()));
                }
            }
        }
        if let Some(first) = self.prepend_path.as_deref().filter(|path| !path.is_empty()) {
            match env.iter_mut().find(|(key, _)| key == "PATH") {
                Some((_, path)) => *path = format!("{first}:{path}"),
                None => env.push(("PATH".into(), format!("{first}:{PATH}"))),
            }
        }
        Ok(env)
    }

    pub(crate) fn stdin(&self) -> Result<Option<Vec<u8>>, String> {
        // A `\n` on the command line becomes a line end.
        Ok(given(self.stdin.as_ref())?.map(|text| match text {
            Value::Bytes(bytes) => bytes,
            text => text.to_text().replace("\\n", "\n").into_bytes(),
        }))
    }

    pub(crate) fn umask(&self) -> Result<Option<u32>, String> {
        let Some(umask) = given(self.umask.as_ref())? else { return Ok(None) };
        let umask = umask.to_text();
        match umask.trim_start_matches('0') {
            "" => Err("Zero umask is not allowed.".into()),
            digits => match u32::from_str_radix(digits, 8) {
                Ok(mask @ 0..=0o777) => Ok(Some(mask)),
                _ => Err(format!("Invalid umask: '{umask}'")),
            },
        }
    }

    /// The timeout in milliseconds, and its original text.
    pub(crate) fn timeout(&self) -> Result<Option<(u64, String)>, String> {
        let Some(timeout) = given(self.timeout.as_ref())?.filter(Value::truthy) else { return Ok(None) };
        let seconds = match timeout {
            Value::Int(n) if n > 0 => n as f64,
            Value::Big(n) => n as f64,
            Value::Float(n) if n > 0.0 => n,
            _ => return Err(format!("Error: timeout {} must be a number", timeout.to_text())),
        };
        // The cast saturates.
        Ok(Some(((seconds * 1000.0).ceil() as u64, timeout.to_text())))
    }

    /// The conditions for success: codes, texts in standard output, texts in standard error.
    pub(crate) fn success(&self) -> Result<Success, String> {
        let codes = match given(self.success_retcodes.as_ref())? {
            None => vec![0],
            Some(codes) => list(&codes)
                .iter()
                .map(|code| code.trim().parse::<i64>())
                .collect::<Result<_, _>>()
                .map_err(|_| "success_retcodes must be a list of integers".to_owned())?,
        };
        let texts =
            |texts: &Option<Data>| Ok::<_, String>(given(texts.as_ref())?.map_or(Vec::new(), |texts| list(&texts)));
        Ok(Success { codes, stdout: texts(&self.success_stdout)?, stderr: texts(&self.success_stderr)? })
    }

    /// Decodes bytes to text.
    pub(crate) fn decode(&self, bytes: Vec<u8>) -> Result<String, String> {
        let encoding = self.output_encoding.as_deref().unwrap_or("utf-8").to_ascii_lowercase().replace('_', "-");
        let text = match encoding.as_str() {
            "utf-8" | "utf8" | "u8" | "ascii" | "us-ascii" => match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            },
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => bytes.into_iter().map(char::from).collect(),
            _ => return Err(format!("unknown encoding: {encoding}; there are utf-8, ascii and latin-1")),
        };
        Ok(if self.rstrip == Some(false) { text } else { text.trim_end().to_owned() })
    }
}

pub(crate) struct Success {
    pub codes: Vec<i64>,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
}

/// The value of an argument; none if it is missing or None.
pub(crate) fn given(data: Option<&Data>) -> Result<Option<Value>, String> {
    let value = data.map(Data::value).transpose()?;
    Ok(value.filter(|value| *value != Value::None))
}

/// Reads a list, or a text with commas.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        other => other.to_text().split(',').map(|part| part.trim().to_owned()).collect(),
    }
}

/// Reads variables: a dict, or a list of dicts. A variable without a value is empty.
fn variables(env: &Value) -> Result<Vec<(String, String)>, String> {
    let text = |value: &Value| if *value == Value::None { String::new() } else { value.to_text() };
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |key: &Value, value: &Value| {
        let key = key.to_text();
        variables.retain(|(other, _)| *other != key);
        variables.push((key, text(value)));
    };
    match env {
        Value::Dict(entries) => entries.iter().for_each(|(key, value)| set(key, value)),
        Value::List(items) => {
            for item in items {
                match item {
                    Value::Dict(entries) => entries.iter().for_each(|(key, value)| set(key, value)),
                    Value::Text(_) => set(item, &Value::None),
                    other => {
                        return Err(format!(
                            "env is to be a dict or a list of dicts; a list with {} is not",
                            other.kind()
                        ));
                    }
                }
            }
        }
        other if !other.truthy() => {}
        other => return Err(format!("env is to be a dict or a list of dicts, not {}", other.kind())),
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call::new("x".into()).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn variables_are_a_dict_or_a_list_of_dicts() {
        let dict = Value::dict([("A", "1".into()), ("B", Value::Int(2)), ("C", Value::None)]);
        assert_eq!(variables(&dict), Ok(pairs(&[("A", "1"), ("B", "2"), ("C", "")])));
        let list = Value::List(vec![Value::dict([("A", "1".into())]), Value::dict([("A", "2".into())]), "D".into()]);
        assert_eq!(variables(&list), Ok(pairs(&[("A", "2"), ("D", "")])));
        assert!(variables(&"A=1".into()).is_err());
    }

    #[test]
    fn the_locale_is_c_unless_said_otherwise() {
        let mut call = call();
        assert_eq!(call.env().unwrap().len(), LOCALE.len());
        call.env = Some(Value::dict([("LC_TIME", "de_DE".into())]).into());
        assert_eq!(call.env().unwrap().iter().find(|(key, _)| key == "LC_TIME").unwrap().1, "de_DE");
        call.reset_system_locale = Some(false);
        call.prepend_path = Some("/opt/bin".into());
        assert_eq!(call.env(), Ok(pairs(&[("LC_TIME", "de_DE"), ("PATH", &format!("/opt/bin:{PATH}"))])));
    }

    #[test]
    fn numbers_and_texts_of_the_command_line() {
        let with = |set: fn(&mut Call, Data), value: Value| {
            let mut call = call();
            set(&mut call, value.into());
            call
        };
        let umask = |value: Value| with(|call, value| call.umask = Some(value), value).umask();
        assert_eq!(umask("022".into()), Ok(Some(0o22)));
        assert_eq!(umask(Value::Int(77)), Ok(Some(0o77)));
        assert_eq!(umask("000".into()), Err("Zero umask is not allowed.".into()));
        assert_eq!(umask("9".into()), Err("Invalid umask: '9'".into()));
        assert_eq!(umask("7777".into()), Err("Invalid umask: '7777'".into()));

        let timeout = |value: Value| with(|call, value| call.timeout = Some(value), value).timeout();
        assert_eq!(timeout(Value::Int(2)), Ok(Some((2000, "2".into()))));
        assert_eq!(timeout(Value::Float(1.5)), Ok(Some((1500, "1.5".into()))));
        assert_eq!(timeout(Value::Int(0)), Ok(None));
        assert_eq!(timeout("soon".into()), Err("Error: timeout soon must be a number".into()));

        let stdin = |value: Value| with(|call, value| call.stdin = Some(value), value).stdin();
        assert_eq!(stdin("a\\nb\n".into()), Ok(Some(b"a\nb\n".to_vec())));
        assert_eq!(stdin(Value::Int(5)), Ok(Some(b"5".to_vec())));

        let codes =
            |value: Value| with(|call, value| call.success_retcodes = Some(value), value).success().map(|s| s.codes);
        assert_eq!(codes("1, 2".into()), Ok(vec![1, 2]));
        assert_eq!(codes(vec![3_i64].into()), Ok(vec![3]));
        assert_eq!(codes(Value::Int(4)), Ok(vec![4]));
        assert_eq!(codes("x".into()), Err("success_retcodes must be a list of integers".into()));
    }

    #[test]
    fn outputs_are_text_without_the_white_space_at_the_end() {
        let mut call = call();
        assert_eq!(call.decode(b"a\n b \n\n".to_vec()), Ok("a\n b".into()));
        assert_eq!(call.decode(b"a\xffb".to_vec()), Ok("a\u{fffd}b".into()));
        call.rstrip = Some(false);
        call.output_encoding = Some("latin_1".into());
        assert_eq!(call.decode(b"\xe4\n".to_vec()), Ok("ä\n".into()));
        call.output_encoding = Some("ebcdic".into());
        assert!(call.decode(vec![]).is_err());
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        assert_eq!(call().supported(), Ok(()));
        assert!(Call { bg: Some(true), ..call() }.supported().unwrap_err().starts_with("bg"));
        assert!(Call { use_vt: Some(true), ..call() }.supported().unwrap_err().starts_with("use_vt"));
    }
}
