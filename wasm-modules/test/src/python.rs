//! Python's names of types and its text for values.

use brine_guest::Value;

/// The name of a value's type in `str(type(value))`.
pub(crate) fn type_name(value: &Value) -> String {
    let name = match value {
        Value::None => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Big(_) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "str",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
        Value::Ext(..) => "msgpack.ext.ExtType",
    };
    format!("<class '{name}'>")
}

/// Python's `repr` of one value.
pub(crate) fn repr(value: &Value) -> String {
    let list = Value::List(vec![value.clone()]).to_text();
    list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&list).to_owned()
}

/// Python's `repr` of a tuple of values.
pub(crate) fn tuple(values: &[Value]) -> String {
    match values {
        [one] => format!("({},)", repr(one)),
        values => format!("({})", values.iter().map(repr).collect::<Vec<_>>().join(", ")),
    }
}

/// Python's built-in exceptions that can be raised and caught.
const BUILT_IN: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
];

/// Those of [`BUILT_IN`] that are errors of the system, with a number, a text and a file.
const OF_THE_SYSTEM: &[&str] = &[
    "BlockingIOError",
    "BrokenPipeError",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EnvironmentError",
    "FileExistsError",
    "FileNotFoundError",
    "IOError",
    "InterruptedError",
    "IsADirectoryError",
    "NotADirectoryError",
    "OSError",
    "PermissionError",
    "ProcessLookupError",
    "TimeoutError",
];

/// The exceptions of `salt.exceptions`.
const SALTS: &[&str] = &[
    "ArgumentValueError",
    "AuthenticationError",
    "AuthorizationError",
    "CheckError",
    "CodePageError",
    "CommandExecutionError",
    "CommandNotFoundError",
    "EauthAuthenticationError",
    "FileLockError",
    "FileserverConfigError",
    "GitLockError",
    "GitRemoteError",
    "InvalidConfigError",
    "InvalidEntityError",
    "InvalidKeyError",
    "LoaderError",
    "LoggingRuntimeError",
    "MasterExit",
    "MinionError",
    "MissingSmb",
    "NotImplemented",
    "NxosCliError",
    "NxosClientError",
    "NxosError",
    "NxosRequestNotSupported",
    "PkgParseError",
    "PublishError",
    "SaltCacheError",
    "SaltClientError",
    "SaltClientTimeout",
    "SaltCloudConfigError",
    "SaltCloudException",
    "SaltCloudExecutionFailure",
    "SaltCloudExecutionTimeout",
    "SaltCloudNotFound",
    "SaltCloudPasswordError",
    "SaltCloudSystemExit",
    "SaltConfigurationError",
    "SaltDaemonNotRunning",
    "SaltDeserializationError",
    "SaltException",
    "SaltInvocationError",
    "SaltMasterError",
    "SaltMasterUnresolvableError",
    "SaltNoMinionsFound",
    "SaltRenderError",
    "SaltReqTimeoutError",
    "SaltRunnerError",
    "SaltSyndicMasterError",
    "SaltSystemExit",
    "SaltValidationError",
    "SaltWheelError",
    "TemplateError",
    "TimedProcTimeoutError",
    "TimeoutError",
    "TokenAuthenticationError",
    "TokenExpiredError",
    "UnsupportedAlgorithm",
    "VMwareApiError",
    "VMwareConnectionError",
    "VMwareFileNotFoundError",
    "VMwareMultipleObjectsError",
    "VMwareNotFoundError",
    "VMwareObjectExistsError",
    "VMwareObjectNotFoundError",
    "VMwareObjectRetrievalError",
    "VMwarePowerOnError",
    "VMwareRuntimeError",
    "VMwareSaltError",
    "VMwareSystemError",
    "VMwareVmCreationError",
    "VMwareVmRegisterError",
];

/// Python's `str` of the named exception with these arguments; its name if that is empty. None if no exception has this
/// name.
pub(crate) fn raised(name: &str, args: &[Value]) -> Option<String> {
    let known = match name.strip_prefix("salt.exceptions.") {
        Some(name) => SALTS.contains(&name),
        None => BUILT_IN.contains(&name),
    };
    if !known {
        return None;
    }
    let text = match args {
        [] => String::new(),
        [one] if name == "KeyError" => repr(one),
        [one] => one.to_text(),
        [number, text] if OF_THE_SYSTEM.contains(&name) => format!("[Errno {}] {}", number.to_text(), text.to_text()),
        [number, text, file, ..] if OF_THE_SYSTEM.contains(&name) => {
            format!("[Errno {}] {}: {}", number.to_text(), text.to_text(), repr(file))
        }
        all => tuple(all),
    };
    Some(if text.is_empty() { name.rsplit('.').next().unwrap_or(name).to_owned() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_pythons() {
        assert_eq!(tuple(&[]), "()");
        assert_eq!(tuple(&["a".into()]), "('a',)");
        assert_eq!(tuple(&[1_i64.into(), "two".into(), 3.5.into()]), "(1, 'two', 3.5)");
    }

    #[test]
    fn exceptions_say_what_pythons_say() {
        let two = [Value::Int(2), "No such file".into(), "/tmp/x".into()];
        for (name, args, expected) in [
            ("TypeError", &["hello".into()][..], Some("hello")),
            ("TypeError", &[], Some("TypeError")),
            ("KeyError", &["a".into()], Some("'a'")),
            ("ValueError", &["a".into(), Value::Int(1)], Some("('a', 1)")),
            ("OSError", &two[..1], Some("2")),
            ("OSError", &two[..2], Some("[Errno 2] No such file")),
            ("OSError", &two, Some("[Errno 2] No such file: '/tmp/x'")),
            ("salt.exceptions.CommandExecutionError", &["wrong".into()], Some("wrong")),
            ("salt.exceptions.SaltException", &[], Some("SaltException")),
            // The base of all exceptions, a name that is no exception, and an unknown name.
            ("BaseException", &[], None),
            ("print", &[], None),
            ("salt.exceptions.TypeError", &[], None),
            ("CommandExecutionError", &[], None),
            ("", &[], None),
        ] {
            assert_eq!(raised(name, args).as_deref(), expected, "{name} {args:?}");
        }
    }
}
