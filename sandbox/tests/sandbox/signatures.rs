//! Required signatures, from the arriving bytes to the modules read again at a start.

use brine_kit::wat::{number, wasm};
use brine_sandbox::{InstallError, Installed};
use rmpv::Value;
use serde_json::json;

use crate::support::{Home, call};

/// Made for this test. The private key exists nowhere else.
const KEY: &str = "RWR0ZXN0a2V5McEDcDky7N5lOKlopH4K4PYQPchhbUfGngoqhHd7JUAp";
/// The signature of the component `number(1)`.
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
    RUR0ZXN0a2V5McLgRxP8UuZRNXot6LBkwaMaIowNI/oXFyZ2ypzdZ+WAYoL/Y4B87cFW2knfXC/u4NojJN2rPMUOUMBYPz3MdAs=\n\
    trusted comment: timestamp:1763672400\tfile:mine.wasm\thashed\n\
    rU5575jeHDksMMjil4gruW+i5lil/b6oIrQ+aW77ID/OXOa/cabQStGaAz9UhK0UD3YiKTky5bHzFBqqzqF7AA==\n";

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_signed_is_installed_and_read_again() {
    let home = Home::new().policy(&json!({ "modules": { "*": { "signed_by": [KEY] } } }));
    let (sandbox, _grip) = home.start().await;
    let (one, two) = (wasm(number(1)), wasm(number(2)));
    let signature = Some(SIGNATURE.as_bytes());
    let error = sandbox.install("mine", &one, None, "base").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "module mine is not signed, and sandbox:modules:*:signed_by asks for a signature of {KEY}; have it signed with `salt-module \
             sign mine.wasm` and put mine.wasm.minisig beside it"
        )
    );
    // A module without a required signature is not compiled.
    assert!(home.compiled().is_empty());
    let error = sandbox.install("mine", &two, signature, "base").await.unwrap_err();
    assert!(matches!(error, InstallError::Signature(_)), "{error}");
    assert!(home.compiled().is_empty());
    assert_eq!(sandbox.install("mine", &one, signature, "base").await.unwrap(), Installed::New);
    assert_eq!(sandbox.install("mine", &one, signature, "base").await.unwrap(), Installed::Unchanged);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    // An unsigned update leaves the version in use in place, and so does the same content without its signature.
    for bytes in [&two, &one] {
        assert!(sandbox.install("mine", bytes, None, "base").await.is_err());
    }
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    let shown = sandbox.report(brine_sandbox::PolicyOp::Show { name: "mine".into() }).await.unwrap();
    let field = |key: &str| {
        shown.as_map().unwrap().iter().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value.clone())
    };
    assert_eq!(field("signed_by"), Some(Value::Array(vec![KEY.into()])));
    assert!(field("refused").is_some(), "{shown}");
    sandbox.shutdown().await;

    // The next start reads the signature again and verifies it.
    let (sandbox, _grip) = home.start().await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
    let beside = home.config.modules_dir.join("mine.wasm.minisig");
    std::fs::remove_file(&beside).unwrap();
    let (sandbox, _grip) = home.start().await;
    assert!(!call(&sandbox, "mine.number").await.success);
    // Installed again with its signature, the module is back. Its removal removes the signature too.
    assert_eq!(sandbox.install("mine", &one, signature, "base").await.unwrap(), Installed::New);
    assert!(beside.exists());
    sandbox.remove("mine").await.unwrap();
    assert!(!beside.exists());
    sandbox.shutdown().await;
}
