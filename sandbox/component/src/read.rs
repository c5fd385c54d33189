//! Reads the functions and imports of a component.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wasmparser::component_types::{ComponentAnyTypeId, ComponentEntityType};
use wasmparser::{Encoding, Parser, Payload, ValidPayload, Validator, WasmFeatures};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{FunctionKind, Resolve, WorldItem};

use crate::docs::{Docs, PREFIX, SECTION, hide_sections};
use crate::error::ReadError;
use crate::{
    Function, MAX_FUNCTIONS, MAX_IMPORTS, MAX_NAME, MAX_PARAMS, MAX_TYPE, ModuleInfo, Param, Rest, exported_group,
    snake_case, types,
};

/// Reads a component's description. The bytes may be hostile; time and memory are bounded by their size (callers cap
/// it) and by the compiler's cage, in which this runs.
///
/// # Errors
///
/// The bytes are no component, or a bound is exceeded.
pub fn read(wasm: &[u8]) -> Result<ModuleInfo, ReadError> {
    if !wasm.starts_with(b"\0asm") {
        return Err(ReadError::NotWasm);
    }
    let outline = outline(wasm)?;
    // Invalid sections of docs would make the decoder fail. They are parsed here, and nothing depends on them.
    let decoded = decode(&hide_sections(wasm, &outline.doc_sections));
    let (resolve, world) = match decoded.map_err(ReadError::malformed)? {
        DecodedWasm::Component(resolve, world) => (resolve, world),
        DecodedWasm::WitPackage(..) => return Err(ReadError::WitPackage),
    };
    let mut notes = outline.docs.notes.clone();
    let all = functions(&resolve, world, &outline.docs, &mut notes)?;
    if all.is_empty() {
        return Err(ReadError::NoFunctions);
    }
    let [functions, states, beacons] = ModuleInfo::sorted(all);
    let info = ModuleInfo {
        version: crate::version(wasm)?,
        doc: outline.docs.module(),
        functions,
        states,
        beacons,
        imports: outline.imports,
        notes,
    };
    info.check_signatures().map(|()| info)
}

/// The result of one pass over the sections.
struct Outline {
    imports: Vec<String>,
    docs: Docs,
    /// Offsets of the names of all sections of docs, at any depth.
    doc_sections: Vec<usize>,
}

fn outline(wasm: &[u8]) -> Result<Outline, ReadError> {
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut imports = Vec::new();
    let mut docs = Docs::default();
    let mut doc_sections = Vec::new();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.map_err(ReadError::malformed)?;
        if let Payload::Version { encoding: Encoding::Module, .. } = payload
            && depth == 0
        {
            return Err(ReadError::NotComponent);
        }
        match validator.payload(&payload).map_err(ReadError::malformed)? {
            ValidPayload::Parser(_) => depth += 1,
            ValidPayload::End(_) => depth = depth.saturating_sub(1),
            ValidPayload::Ok | ValidPayload::Func(..) => {}
        }
        match payload {
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let name = import.map_err(ReadError::malformed)?.name.name;
                    let types = validator.types(0);
                    let item = types.as_ref().and_then(|types| types.component_item_for_import(name));
                    let asks = match (item.map(|item| &item.ty), &types) {
                        (Some(ComponentEntityType::Type { created, .. }), _) => is_resource(*created),
                        // An interface with types only needs nothing from the host. A resource must be provided by the
                        // host.
                        (Some(ComponentEntityType::Instance(id)), Some(types)) => {
                            types[*id].exports.values().any(|export| match export.ty {
                                ComponentEntityType::Type { created, .. } => is_resource(created),
                                _ => true,
                            })
                        }
                        _ => true,
                    };
                    if asks {
                        check_name("an import", name)?;
                        imports.push(name.to_owned());
                    }
                    if imports.len() > MAX_IMPORTS {
                        return Err(ReadError::TooMuch {
                            what: format!("imports more than {MAX_IMPORTS} interfaces"),
                            limit: MAX_IMPORTS,
                        });
                    }
                }
            }
            Payload::CustomSection(section) if section.name() == SECTION || section.name().starts_with(PREFIX) => {
                // The name is directly before the data.
                doc_sections.extend(section.data_offset().checked_sub(section.name().len()));
                if depth == 0 {
                    docs.add(section.name(), section.data());
                }
            }
            _ => {}
        }
    }
    imports.sort();
    imports.dedup();
    Ok(Outline { imports, docs, doc_sections })
}

fn is_resource(id: ComponentAnyTypeId) -> bool {
    matches!(id, ComponentAnyTypeId::Resource(_))
}

fn functions(
    resolve: &Resolve,
    world: wit_parser::WorldId,
    docs: &Docs,
    notes: &mut Vec<String>,
) -> Result<Vec<Function>, ReadError> {
    let mut found: BTreeMap<String, Function> = BTreeMap::new();
    let mut texts = HashMap::new();
    // The root comes first: its exports take precedence over an interface's functions of the same name.
    for (key, item) in &resolve.worlds[world].exports {
        if let WorldItem::Function(function) = item {
            let name = resolve.name_world_key(key);
            add(resolve, vec![name], function, docs, &mut texts, &mut found, notes)?;
        }
    }
    for (key, item) in &resolve.worlds[world].exports {
        if let WorldItem::Interface { id, .. } = item {
            let interface = resolve.name_world_key(key);
            check_name("an export", &interface)?;
            for (name, function) in &resolve.interfaces[*id].functions {
                let export = vec![interface.clone(), name.clone()];
                add(resolve, export, function, docs, &mut texts, &mut found, notes)?;
            }
        }
    }
    Ok(found.into_values().collect())
}

fn add(
    resolve: &Resolve,
    export: Vec<String>,
    function: &wit_parser::Function,
    docs: &Docs,
    texts: &mut HashMap<wit_parser::Type, Arc<str>>,
    found: &mut BTreeMap<String, Function>,
    notes: &mut Vec<String>,
) -> Result<(), ReadError> {
    let path = export.join(".");
    if !matches!(function.kind, FunctionKind::Freestanding | FunctionKind::AsyncFreestanding) {
        note(notes, format!("{path} belongs to a resource and cannot be called by a job"));
        return Ok(());
    }
    let own = export.last().expect("an export has a name");
    check_name("a function", own)?;
    let group = if let [interface, _] = &*export { exported_group(interface) } else { None };
    let name = group.map_or_else(|| snake_case(own), |group| format!("{group}.{}", snake_case(own)));
    if let Some(other) = found.get(&name) {
        if other.export.len() < export.len() {
            note(notes, format!("{path} is hidden by the export {} at the root", other.export[0]));
            return Ok(());
        }
        return Err(ReadError::Clash { name, first: other.export.join("."), second: path });
    }
    if found.len() >= MAX_FUNCTIONS {
        let what = format!("exports more than {MAX_FUNCTIONS} functions");
        return Err(ReadError::TooMuch { what, limit: MAX_FUNCTIONS });
    }
    if function.params.len() > MAX_PARAMS {
        let what = format!("has a function {path} with {} parameters", function.params.len());
        return Err(ReadError::TooMuch { what, limit: MAX_PARAMS });
    }
    let mut text = |ty: &wit_parser::Type| match texts.entry(*ty) {
        Entry::Occupied(known) => Ok(Arc::clone(known.get())),
        Entry::Vacant(new) => {
            let what = || format!("has a function {path} with a type that is too long to write down");
            let text = types::text(resolve, ty).map_err(|_| ReadError::TooMuch { what: what(), limit: MAX_TYPE })?;
            Ok::<_, ReadError>(Arc::clone(new.insert(text.into())))
        }
    };
    let mut params: Vec<Param> = Vec::with_capacity(function.params.len());
    for param in &function.params {
        check_name("a parameter", &param.name)?;
        let name = snake_case(&param.name);
        if params.iter().any(|other| *other.name == *name) {
            return Err(ReadError::Clash {
                first: format!("{path} with a parameter {name}"),
                second: "another".into(),
                name,
            });
        }
        let rest = match name.as_str() {
            "args" if types::is_data_list(resolve, &param.ty) => Rest::Args,
            "kwargs" if types::is_data(resolve, &param.ty) => Rest::Kwargs,
            _ => Rest::No,
        };
        params.push(Param {
            name: name.into(),
            ty: text(&param.ty)?,
            optional: types::is_option(resolve, &param.ty),
            rest,
        });
    }
    let result = function.result.as_ref().map(&mut text).transpose()?;
    let doc = docs.function(&export);
    found.insert(name.clone(), Function { name, export, params, result, doc });
    Ok(())
}

fn check_name(what: &str, name: &str) -> Result<(), ReadError> {
    if name.len() > MAX_NAME {
        let what = format!("has {what} whose name has {} bytes", name.len());
        return Err(ReadError::TooMuch { what, limit: MAX_NAME });
    }
    Ok(())
}

/// Adds a note for the author. A hundred notes are as useful as ten thousand.
fn note(notes: &mut Vec<String>, text: String) {
    if notes.len() < 100 {
        notes.push(text);
    }
}
