//! The module `ini`: files of sections and options. The functions, states and their documentation are in `wit/world.wit`.
//!
//! - [`ini`]: the text of a file; [`file`]: reads and writes it
//! - [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "ini",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

mod file;
mod ini;
mod states;

use brine_guest::Value;

use file::File;
use ini::Item;

struct Module;

impl Guest for Module {
    fn set_option(
        file_name: String,
        sections: Option<Data>,
        separator: Option<String>,
        encoding: Option<String>,
        no_spaces: Option<bool>,
    ) -> Result<Data, String> {
        let mut file = File::open(&file_name, separator.as_deref(), encoding.as_deref())?;
        let changes = file.set(&states::entries(sections.as_ref())?, no_spaces == Some(true))?;
        file.save()?;
        Ok(Value::Dict(changes).into())
    }

    fn get_option(
        file_name: String,
        section: Option<Data>,
        option: Data,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<Data, String> {
        let file = File::open(&file_name, separator.as_deref(), encoding.as_deref())?;
        let option = option.value()?.to_text();
        let found = match named(section.as_ref())? {
            None => file.sections.get(&option),
            Some(section) => match file.sections.get(&section) {
                Some(Item::Section(section)) => section.get(&option),
                _ => None,
            },
        };
        Ok(found.map_or(Value::None, |item| item.value(false)).into())
    }

    fn remove_option(
        file_name: String,
        section: Option<Data>,
        option: Data,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<Data, String> {
        let mut file = File::open(&file_name, separator.as_deref(), encoding.as_deref())?;
        let section = named(section.as_ref())?.unwrap_or_default();
        let value = states::remove(&mut file, &section, &option.value()?.to_text());
        file.save()?;
        Ok(value.into())
    }

    fn get_section(
        file_name: String,
        section: Data,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<Data, String> {
        let file = File::open(&file_name, separator.as_deref(), encoding.as_deref())?;
        let name = section.value()?.to_text();
        match file.sections.get(&name) {
            None => Ok(Value::dict([]).into()),
            Some(Item::Section(section)) => Ok(section.value(false).into()),
            Some(Item::Text(_)) => Err(format!("{name} is an option and no section")),
        }
    }

    fn remove_section(
        file_name: String,
        section: Data,
        separator: Option<String>,
        encoding: Option<String>,
    ) -> Result<Data, String> {
        let mut file = File::open(&file_name, separator.as_deref(), encoding.as_deref())?;
        let removed = states::remove_section(&mut file, &section.value()?.to_text())?;
        file.save()?;
        Ok(removed.unwrap_or_default().into())
    }

    fn get_ini(file_name: String, separator: Option<String>, encoding: Option<String>) -> Result<Data, String> {
        Ok(File::open(&file_name, separator.as_deref(), encoding.as_deref())?.sections.value(false).into())
    }
}

/// The name of a section; none if there is none, or an empty one.
fn named(section: Option<&Data>) -> Result<Option<String>, String> {
    Ok(section.map(Data::value).transpose()?.filter(Value::truthy).map(|name| name.to_text()))
}

#[cfg(target_family = "wasm")]
export!(Module);
