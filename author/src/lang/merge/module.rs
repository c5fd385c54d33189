//! The merged module: the sections of all members, one behind the other, with their numbers changed.

use std::collections::{HashMap, HashSet};

use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, Elements, ExportKind, ExportSection,
    FunctionSection, GlobalSection, MemorySection, Module, TableSection, TypeSection,
};
use wasmparser::{ElementItems, ElementKind, Parser, Payload};

use super::read::{FUNC, GLOBAL, Linked, MEMORY, TABLE, Thing};
use super::{Result, Unmerged};

type Recoded<T> = std::result::Result<T, reencode::Error<Unmerged>>;

/// The numbers of a member's things in the merged module.
struct Renumbered<'l, 'a> {
    linked: &'l Linked<'a>,
    instance: u32,
    things: [Vec<u32>; 4],
    types: u32,
    elements: u32,
    data: u32,
}

impl Reencode for Renumbered<'_, '_> {
    type Error = Unmerged;

    fn function_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.things[FUNC][index as usize])
    }

    fn table_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.things[TABLE][index as usize])
    }

    fn memory_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.things[MEMORY][index as usize])
    }

    fn global_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.things[GLOBAL][index as usize])
    }

    fn type_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.types + index)
    }

    fn element_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.elements + index)
    }

    fn data_index(&mut self, index: u32) -> Recoded<u32> {
        Ok(self.data + index)
    }

    fn const_expr(&mut self, expression: wasmparser::ConstExpr<'_>) -> Recoded<ConstExpr> {
        match self.linked.number(self.instance, &expression).map_err(reencode::Error::UserError)? {
            Some(number) => Ok(ConstExpr::i32_const(number)),
            None => reencode::utils::const_expr(self, expression),
        }
    }
}

/// The sections of the merged module.
#[derive(Default)]
struct Sections {
    types: TypeSection,
    functions: FunctionSection,
    tables: TableSection,
    memories: MemorySection,
    globals: GlobalSection,
    exports: ExportSection,
    elements: ElementSection,
    code: CodeSection,
    data: DataSection,
    data_count: u32,
}

impl Sections {
    fn add(&mut self, module: &[u8], numbers: &mut Renumbered<'_, '_>) -> Result<()> {
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => numbers.parse_type_section(&mut self.types, section)?,
                Payload::FunctionSection(section) => numbers.parse_function_section(&mut self.functions, section)?,
                Payload::TableSection(section) => numbers.parse_table_section(&mut self.tables, section)?,
                Payload::MemorySection(section) => numbers.parse_memory_section(&mut self.memories, section)?,
                Payload::GlobalSection(section) => numbers.parse_global_section(&mut self.globals, section)?,
                Payload::ElementSection(section) => {
                    for element in section {
                        self.add_element(element?, numbers)?;
                    }
                }
                Payload::CodeSectionEntry(body) => numbers.parse_function_body(&mut self.code, body)?,
                Payload::DataSection(section) => {
                    self.data_count += section.count();
                    numbers.parse_data_section(&mut self.data, section)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_element(&mut self, element: wasmparser::Element<'_>, numbers: &mut Renumbered<'_, '_>) -> Result<()> {
        let items = match element.items {
            ElementItems::Functions(functions) => {
                let all = functions.into_iter().map(|index| Ok(numbers.function_index(index?)?));
                Elements::Functions(all.collect::<Result<Vec<u32>>>()?.into())
            }
            ElementItems::Expressions(ty, all) => {
                let ty = numbers.ref_type(ty)?;
                let all = all.into_iter().map(|expression| Ok(numbers.const_expr(expression?)?));
                Elements::Expressions(ty, all.collect::<Result<Vec<ConstExpr>>>()?.into())
            }
        };
        match element.kind {
            ElementKind::Active { table_index, offset_expr } => {
                let table = numbers.table_index(table_index.unwrap_or(0))?;
                let offset = numbers.const_expr(offset_expr)?;
                self.elements.active((table > 0).then_some(table), &offset, items);
            }
            ElementKind::Passive => {
                self.elements.passive(items);
            }
            ElementKind::Declared => {
                self.elements.declared(items);
            }
        }
        Ok(())
    }

    fn module(self) -> Module {
        let mut module = Module::new();
        module.section(&self.types).section(&self.functions).section(&self.tables).section(&self.memories);
        module.section(&self.globals).section(&self.exports).section(&self.elements);
        module.section(&DataCountSection { count: self.data_count }).section(&self.code).section(&self.data);
        module
    }
}

/// The name of an export of the merged module.
pub(super) fn export_name(instance: u32, name: &str) -> String {
    format!("{instance}:{name}")
}

/// The module of all members, with those of their exports that the component names.
pub(super) fn module_of(linked: &Linked<'_>) -> Result<Module> {
    let mut bases = HashMap::new();
    let mut next = ([0_u32; 4], 0, 0, 0);
    for instance in &linked.members {
        let core = linked.core(*instance).ok_or(Unmerged::Has("an instance of nothing"))?;
        bases.insert(*instance, next);
        let (things, types, elements, data) = next;
        let things = [FUNC, TABLE, MEMORY, GLOBAL].map(|kind| things[kind] + core.own[kind]);
        next = (things, types + core.types, elements + core.elements, data + core.data);
    }
    if next.0[MEMORY] > 1 {
        return Err(Unmerged::Has("several memories"));
    }
    let number = |thing: Thing| {
        let (instance, kind, index) = linked.own(thing)?;
        let (things, ..) = bases.get(&instance).ok_or(Unmerged::Has("an import of something else"))?;
        Ok::<u32, Unmerged>(things[kind] + index)
    };
    let mut sections = Sections::default();
    for instance in linked.members.iter().copied() {
        let core = linked.core(instance).ok_or(Unmerged::Has("an instance of nothing"))?;
        let (_, types, elements, data) = bases[&instance];
        let mut things: [Vec<u32>; 4] = Default::default();
        for kind in [FUNC, TABLE, MEMORY, GLOBAL] {
            let imported = u32::try_from(core.imported(kind).count()).unwrap_or(u32::MAX);
            let all = (0..imported.saturating_add(core.own[kind])).map(|index| number((instance, kind, index)));
            things[kind] = all.collect::<Result<_>>()?;
        }
        let mut numbers = Renumbered { linked, instance, things, types, elements, data };
        let module = linked.module(instance).ok_or(Unmerged::Has("an instance of nothing"))?;
        sections.add(linked.whole.modules[module], &mut numbers)?;
    }
    let mut exported = HashSet::new();
    for (instance, name) in linked.whole.things.iter().flatten().flatten() {
        if linked.members.contains(instance) && exported.insert((instance, name)) {
            let core = linked.core(*instance).ok_or(Unmerged::Has("an instance of nothing"))?;
            let (kind, index) = core.exports.get(name).ok_or(Unmerged::Has("an alias of nothing"))?;
            let of = [ExportKind::Func, ExportKind::Table, ExportKind::Memory, ExportKind::Global][*kind];
            sections.exports.export(&export_name(*instance, name), of, number((*instance, *kind, *index))?);
        }
    }
    Ok(sections.module())
}
