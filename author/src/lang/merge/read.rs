//! The core modules of a component, and what each gets of the others.

use std::collections::HashMap;

use wasmparser::{ComponentAlias, ExternalKind, Instance, Operator, Parser, Payload, TypeRef};

use super::{Result, Unmerged};

/// The kinds of things that modules import and export, as indices of arrays.
pub(super) const FUNC: usize = 0;
pub(super) const TABLE: usize = 1;
pub(super) const MEMORY: usize = 2;
pub(super) const GLOBAL: usize = 3;

fn kind_of(kind: ExternalKind) -> Result<usize> {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => Ok(FUNC),
        ExternalKind::Table => Ok(TABLE),
        ExternalKind::Memory => Ok(MEMORY),
        ExternalKind::Global => Ok(GLOBAL),
        ExternalKind::Tag => Err(Unmerged::Has("a tag")),
    }
}

/// A core module, as far as it is looked at before it is merged.
#[derive(Default)]
pub(super) struct Core<'a> {
    imports: Vec<(usize, &'a str, &'a str)>,
    pub(super) exports: HashMap<&'a str, (usize, u32)>,
    /// Number of its own things of each kind, and of types, elements and data.
    pub(super) own: [u32; 4],
    pub(super) types: u32,
    pub(super) elements: u32,
    pub(super) data: u32,
    globals: Vec<(bool, wasmparser::ConstExpr<'a>)>,
    /// Whether it has a start function.
    starts: bool,
}

impl<'a> Core<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut core = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TypeSection(types) => {
                    for group in types {
                        core.types += u32::try_from(group?.types().len()).unwrap_or(u32::MAX);
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        let kind = match import.ty {
                            TypeRef::Func(_) | TypeRef::FuncExact(_) => FUNC,
                            TypeRef::Table(_) => TABLE,
                            TypeRef::Memory(_) => MEMORY,
                            TypeRef::Global(_) => GLOBAL,
                            TypeRef::Tag(_) => return Err(Unmerged::Has("a tag")),
                        };
                        core.imports.push((kind, import.module, import.name));
                    }
                }
                Payload::FunctionSection(functions) => core.own[FUNC] = functions.count(),
                Payload::TableSection(tables) => core.own[TABLE] = tables.count(),
                Payload::MemorySection(memories) => core.own[MEMORY] = memories.count(),
                Payload::GlobalSection(globals) => {
                    core.own[GLOBAL] = globals.count();
                    for global in globals {
                        let global = global?;
                        core.globals.push((global.ty.mutable, global.init_expr));
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        core.exports.insert(export.name, (kind_of(export.kind)?, export.index));
                    }
                }
                Payload::ElementSection(elements) => core.elements = elements.count(),
                Payload::DataSection(data) => core.data = data.count(),
                Payload::StartSection { .. } => core.starts = true,
                Payload::TagSection(_) => return Err(Unmerged::Has("a tag")),
                _ => {}
            }
        }
        Ok(core)
    }

    pub(super) fn imported(&self, kind: usize) -> impl Iterator<Item = &(usize, &'a str, &'a str)> {
        self.imports.iter().filter(move |import| import.0 == kind)
    }
}

/// A core instance of the component.
#[derive(Debug)]
enum CoreInstance<'a> {
    Of { module: u32, args: HashMap<&'a str, u32> },
    Exports(HashMap<&'a str, (usize, u32)>),
}

/// What a component has of core modules.
#[derive(Default)]
pub(super) struct Whole<'a> {
    pub(super) modules: Vec<&'a [u8]>,
    instances: Vec<CoreInstance<'a>>,
    /// Core things by kind: an export of an instance, or something else.
    pub(super) things: [Vec<Option<(u32, &'a str)>>; 4],
}

impl<'a> Whole<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut whole = Self::default();
        let mut depth = 0_u32;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ModuleSection { unchecked_range, .. } => {
                    if depth == 0 {
                        let module = bytes.get(unchecked_range.start..unchecked_range.end);
                        whole.modules.push(module.ok_or(Unmerged::Has("a module that is cut off"))?);
                    }
                    depth += 1;
                }
                Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::InstanceSection(section) if depth == 0 => {
                    for instance in section {
                        whole.instances.push(match instance? {
                            Instance::Instantiate { module_index, args } => CoreInstance::Of {
                                module: module_index,
                                args: args.iter().map(|arg| (arg.name, arg.index)).collect(),
                            },
                            Instance::FromExports(exports) => {
                                let export = |export: &wasmparser::Export<'a>| {
                                    Ok((export.name, (kind_of(export.kind)?, export.index)))
                                };
                                CoreInstance::Exports(exports.iter().map(export).collect::<Result<_>>()?)
                            }
                        });
                    }
                }
                Payload::ComponentAliasSection(section) if depth == 0 => {
                    for alias in section {
                        if let ComponentAlias::CoreInstanceExport { kind, instance_index, name } = alias? {
                            whole.things[kind_of(kind)?].push(Some((instance_index, name)));
                        }
                    }
                }
                Payload::ComponentCanonicalSection(section) if depth == 0 => {
                    for function in section {
                        if !matches!(function?, wasmparser::CanonicalFunction::Lift { .. }) {
                            whole.things[FUNC].push(None);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(whole)
    }
}

/// A thing of a core instance: the instance, the kind, and its number there.
pub(super) type Thing = (u32, usize, u32);

/// The component with its core modules read.
pub(super) struct Linked<'a> {
    pub(super) whole: Whole<'a>,
    cores: Vec<Core<'a>>,
    /// The instances that are merged, in their order.
    pub(super) members: Vec<u32>,
}

impl<'a> Linked<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let whole = Whole::read(bytes)?;
        let cores = whole.modules.iter().map(|module| Core::read(module)).collect::<Result<Vec<_>>>()?;
        let mut linked = Self { whole, cores, members: Vec::new() };
        let mut uses = vec![0_u32; linked.cores.len()];
        for instance in &linked.whole.instances {
            if let CoreInstance::Of { module, .. } = instance {
                uses[*module as usize] += 1;
            }
        }
        let all = 0..u32::try_from(linked.whole.instances.len()).unwrap_or(0);
        let once = |at: &u32| {
            let module = linked.module(*at).filter(|module| uses[*module] == 1);
            module.is_some_and(|module| !linked.cores[module].starts)
        };
        linked.members = all.filter(once).collect();
        loop {
            let before = linked.members.len();
            let stay: Vec<u32> = linked.members.iter().copied().filter(|at| linked.is_closed(*at)).collect();
            linked.members = stay;
            if linked.members.len() == before {
                return Ok(linked);
            }
        }
    }

    pub(super) fn module(&self, instance: u32) -> Option<usize> {
        match self.whole.instances.get(instance as usize)? {
            CoreInstance::Of { module, .. } => Some(*module as usize),
            CoreInstance::Exports(_) => None,
        }
    }

    pub(super) fn core(&self, instance: u32) -> Option<&Core<'a>> {
        self.cores.get(self.module(instance)?)
    }

    /// Whether all imports of an instance come from merged ones.
    fn is_closed(&self, instance: u32) -> bool {
        self.core(instance).is_some_and(|core| {
            core.imports.iter().all(|(_, module, name)| {
                self.supplied(instance, module, name).is_some_and(|thing| self.members.contains(&thing.0))
            })
        })
    }

    /// Returns the thing that an instance gets for an import. None: it is no core module's.
    fn supplied(&self, instance: u32, module: &str, name: &str) -> Option<Thing> {
        let CoreInstance::Of { args, .. } = self.whole.instances.get(instance as usize)? else { return None };
        let (mut at, mut name) = (*args.get(module)?, name);
        // Each step leads to an instance that stands before.
        loop {
            match self.whole.instances.get(at as usize)? {
                CoreInstance::Of { .. } => {
                    let (kind, index) = self.core(at)?.exports.get(name)?;
                    return Some((at, *kind, *index));
                }
                CoreInstance::Exports(exports) => {
                    let (kind, index) = exports.get(name)?;
                    (at, name) = (*self.whole.things[*kind].get(*index as usize)?)?;
                }
            }
        }
    }

    /// Follows an import to the instance whose own thing it is. Returns the number among its own.
    pub(super) fn own(&self, mut thing: Thing) -> Result<Thing> {
        loop {
            let (instance, kind, index) = thing;
            let core = self.core(instance).ok_or(Unmerged::Has("an instance of nothing"))?;
            let imported = core.imported(kind).count();
            let Some((_, module, name)) = core.imported(kind).nth(index as usize) else {
                return Ok((instance, kind, index - u32::try_from(imported).unwrap_or(0)));
            };
            thing = self.supplied(instance, module, name).ok_or(Unmerged::Has("an import of something else"))?;
        }
    }

    /// The value of a constant expression, if it is a number.
    pub(super) fn number(&self, instance: u32, expression: &wasmparser::ConstExpr<'_>) -> Result<Option<i32>> {
        let mut stack = Vec::new();
        for operator in expression.get_operators_reader() {
            let pair = |stack: &mut Vec<i32>| Some((stack.pop()?, stack.pop()?));
            let value = match operator? {
                Operator::I32Const { value } => Some(value),
                Operator::GlobalGet { global_index } => {
                    let (instance, _, index) = self.own((instance, GLOBAL, global_index))?;
                    match self.core(instance).and_then(|core| core.globals.get(index as usize)) {
                        Some((false, init)) => self.number(instance, init)?,
                        _ => None,
                    }
                }
                Operator::I32Add => pair(&mut stack).map(|(b, a)| a.wrapping_add(b)),
                Operator::I32Sub => pair(&mut stack).map(|(b, a)| a.wrapping_sub(b)),
                Operator::I32Mul => pair(&mut stack).map(|(b, a)| a.wrapping_mul(b)),
                Operator::End => break,
                _ => None,
            };
            let Some(value) = value else { return Ok(None) };
            stack.push(value);
        }
        Ok(stack.pop())
    }
}
