//! Makes one core module of those that a component links with each other.
//!
//! componentize-py links the interpreter and its libraries when a component is instantiated: some 35 core modules, which share a
//! memory and a table. Each instance of the component then makes 35 instances, and puts each function of each library into
//! the table. In one module all that is known beforehand: wasmtime makes one instance, with an image of its memory, and puts a
//! function into the table when it is first called.
//!
//! A core module is merged if each of its imports is an export of a merged one. What a component has beside
//! its core modules stays as it is, and so do the numbers of all things: a merged module leaves an empty one in its place.
//!
//! - `read.rs`    the core modules of a component, and what each gets of the others
//! - `module.rs`  the merged module

mod module;
mod read;

use std::fmt;

use wasm_encoder::reencode;
use wasm_encoder::{
    Alias, Component, ComponentAliasSection, ExportKind, InstanceSection, Module, ModuleArg, ModuleSection, RawSection,
};
use wasmparser::{
    BinaryReaderError, ComponentAlias, ComponentAliasSectionReader, Instance, InstanceSectionReader, Parser, Payload,
    Validator,
};

use module::{export_name, module_of};
use read::Linked;

/// Why a component stays as it is.
#[derive(Debug)]
pub(crate) enum Unmerged {
    /// It is no component.
    Malformed(String),
    /// It has something that is not merged.
    Has(&'static str),
}

impl std::error::Error for Unmerged {}

impl fmt::Display for Unmerged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::Has(what) => write!(f, "it has {what}"),
        }
    }
}

impl From<BinaryReaderError> for Unmerged {
    fn from(error: BinaryReaderError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<reencode::Error<Unmerged>> for Unmerged {
    fn from(error: reencode::Error<Unmerged>) -> Self {
        match error {
            reencode::Error::UserError(error) => error,
            other => Self::Malformed(other.to_string()),
        }
    }
}

type Result<T> = std::result::Result<T, Unmerged>;

/// Returns the component with its core modules merged.
///
/// # Errors
/// Why it stays as it is.
pub(crate) fn merged(component: &[u8]) -> Result<Vec<u8>> {
    Validator::new().validate_all(component)?;
    let linked = Linked::read(component)?;
    if linked.members.len() < 2 {
        return Err(Unmerged::Has("no core modules that are linked with each other"));
    }
    let out = rewritten(component, &linked, &module_of(&linked)?)?;
    Validator::new().validate_all(&out)?;
    Ok(out)
}

/// The component with this module in place of the first member, and nothing in place of the others.
fn rewritten(component: &[u8], linked: &Linked<'_>, module: &Module) -> Result<Vec<u8>> {
    let merged: Vec<usize> = linked.members.iter().filter_map(|at| linked.module(*at)).collect();
    let mut out = Component::new();
    let (mut depth, mut modules, mut instances) = (0_u32, 0_usize, 0_u32);
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        match &payload {
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                if depth == 0 {
                    let core = matches!(payload, Payload::ModuleSection { .. });
                    match merged.iter().position(|at| core && *at == modules) {
                        Some(0) => {
                            out.section(&ModuleSection(module));
                        }
                        Some(_) => {
                            out.section(&ModuleSection(&Module::new()));
                        }
                        None => copy(&mut out, component, &payload),
                    }
                    modules += usize::from(core);
                }
                depth += 1;
            }
            Payload::InstanceSection(section) if depth == 0 => {
                out.section(&instances_of(section.clone(), linked, &mut instances)?);
            }
            Payload::ComponentAliasSection(section) if depth == 0 => {
                out.section(&aliases_of(section.clone(), linked)?);
            }
            _ if depth == 0 => copy(&mut out, component, &payload),
            _ => {}
        }
    }
    Ok(out.finish())
}

/// The core instances: the first member gets nothing, since it imports nothing, and an instance without exports stands for each of
/// the others.
fn instances_of(section: InstanceSectionReader<'_>, linked: &Linked<'_>, next: &mut u32) -> Result<InstanceSection> {
    let mut out = InstanceSection::new();
    for instance in section {
        let at = linked.members.iter().position(|member| member == next);
        match (instance?, at) {
            (Instance::Instantiate { module_index, .. }, Some(0)) => {
                out.instantiate(module_index, Vec::<(&str, ModuleArg)>::new());
            }
            (Instance::Instantiate { .. }, Some(_)) => {
                out.export_items(Vec::<(&str, ExportKind, u32)>::new());
            }
            (Instance::Instantiate { module_index, args }, None) => {
                let args: Vec<_> = args.iter().map(|arg| (arg.name, ModuleArg::Instance(arg.index))).collect();
                out.instantiate(module_index, args);
            }
            (Instance::FromExports(exports), _) => {
                let exports = exports.iter().map(|export| (export.name, export.kind.into(), export.index));
                out.export_items(exports.collect::<Vec<_>>());
            }
        }
        *next += 1;
    }
    Ok(out)
}

/// The aliases: those of members' exports lead to the merged module's.
fn aliases_of(section: ComponentAliasSectionReader<'_>, linked: &Linked<'_>) -> Result<ComponentAliasSection> {
    let mut out = ComponentAliasSection::new();
    for alias in section {
        match alias? {
            ComponentAlias::CoreInstanceExport { kind, instance_index, name }
                if linked.members.contains(&instance_index) =>
            {
                let (instance, name) = (linked.members[0], export_name(instance_index, name));
                out.alias(Alias::CoreInstanceExport { instance, kind: kind.into(), name: &name });
            }
            other => {
                let roundtrip = &mut reencode::RoundtripReencoder;
                let alias = reencode::ReencodeComponent::component_alias(roundtrip, other);
                out.alias(alias.map_err(|error| Unmerged::Malformed(error.to_string()))?);
            }
        }
    }
    Ok(out)
}

/// Copies a section.
fn copy(out: &mut Component, component: &[u8], payload: &Payload<'_>) {
    if let Some((id, range)) = payload.as_section()
        && let Some(data) = component.get(range)
    {
        out.section(&RawSection { id, data });
    }
}

#[cfg(test)]
mod tests;
