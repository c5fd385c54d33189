//! A minion's configuration and a module's imports, to what the module may do and the line that would grant the rest.
#![no_main]

use brine_protocol::config::yaml;
use brine_sandbox::{Capability, ModuleName, Policy, Settings, Sha256Hex, Subject};
use rmpv::Value;

const FUNCTIONS: [&str; 3] = ["run", "run_all", "which"];

fn one_line(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?}");
}

/// The owner does as a refusal says.
fn add(policy: &mut Policy, lines: &str) {
    let value = yaml::load(lines).unwrap_or_else(|error| panic!("{lines} is no YAML: {error}"));
    let Value::Map(entries) = value else { panic!("{lines} is no dict") };
    let added = Settings::read(&entries[0].1).unwrap_or_else(|error| panic!("{lines} is no setting: {error}"));
    policy.general.modules.extend(added.policy.general.modules);
    policy.general.functions.extend(added.policy.general.functions);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&[which, module, flags], text)) = data.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(value) = yaml::load(text) else { return };
    let mut settings = match Settings::read(&value) {
        Ok(settings) => settings,
        Err(error) => return one_line(&error.to_string()),
    };
    let names: Vec<ModuleName> = settings.policy.general.modules.keys().cloned().collect();
    let fallback: ModuleName = "deploy".parse().expect("it is a name");
    let name = names.get(usize::from(module)).unwrap_or(&fallback);
    let sha256 = Sha256Hex::from([flags; 32]);
    let subject = Subject { name, standard: flags & 1 == 1, sha256, signers: &[] };
    let wanted = Capability::ALL.iter().enumerate().filter(|(index, _)| which & (1 << (index % 8)) != 0);
    let mut imports: Vec<String> = wanted
        .flat_map(|(_, capability)| capability.interfaces())
        .map(|interface| format!("{interface}@1.0.0"))
        .collect();
    if flags & 2 == 2 {
        imports.push("acme:x/y@1.0.0".to_owned());
    }
    let masters: Vec<Option<String>> =
        settings.policy.masters.keys().cloned().map(Some).chain([None, Some("other".to_owned())]).collect();
    match settings.policy.decide(&subject, &imports, &FUNCTIONS) {
        Ok(granted) => {
            for master in &masters {
                for function in FUNCTIONS {
                    match granted.of(function, master.as_deref()) {
                        Ok(grants) => {
                            for interface in grants.grants.interfaces() {
                                let asked = imports.iter().any(|import| import.split('@').next() == Some(interface));
                                assert!(asked, "{interface} was granted and not asked for");
                                assert!(granted.interfaces().any(|linked| linked == interface), "{interface}");
                            }
                        }
                        Err(why) => one_line(&why),
                    }
                }
            }
        }
        Err(refused) => {
            one_line(&refused.to_string());
            let Some(lines) = refused.lines() else { return };
            add(&mut settings.policy, &lines);
            let subject = Subject { name, ..subject };
            if let Err(again) = settings.policy.decide(&subject, &imports, &FUNCTIONS) {
                panic!("{refused}\nand with that: {again}");
            }
        }
    }
});
