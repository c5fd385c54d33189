//! `brine:host/modules`: the minion's modules, through the broker.

use brine_sandbox_wire::{HostOp, ModulesOp};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::modules as wit;
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/modules", |linker| wit::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

#[derive(Deserialize)]
struct Module {
    name: String,
    doc: Option<String>,
    sha256: String,
    origin: String,
    functions: Vec<Function>,
    imports: Vec<String>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    parameters: Vec<Parameter>,
    result: Option<String>,
    doc: Option<String>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    r#type: String,
    optional: bool,
    rest: bool,
}

impl From<Module> for wit::Module {
    fn from(module: Module) -> Self {
        let Module { name, doc, sha256, origin, functions, imports } = module;
        Self { name, doc, sha256, origin, functions: functions.into_iter().map(Into::into).collect(), imports }
    }
}

impl From<Function> for wit::Function {
    fn from(function: Function) -> Self {
        let Function { name, parameters, result, doc } = function;
        Self { name, parameters: parameters.into_iter().map(Into::into).collect(), result, doc }
    }
}

impl From<Parameter> for wit::Parameter {
    fn from(parameter: Parameter) -> Self {
        let Parameter { name, r#type, optional, rest } = parameter;
        Self { name, type_: r#type, optional, rest }
    }
}

impl wit::Host for Guest {
    async fn names(&mut self) -> wasmtime::Result<Vec<String>> {
        let what = "modules.names";
        let value = self.ask_or_end(what, HostOp::Modules(ModulesOp::Names)).await?;
        Ok(super::parsed(what, &value)?)
    }

    async fn describe(&mut self, name: String) -> wasmtime::Result<Option<wit::Module>> {
        let what = "modules.describe";
        let value = self.ask_or_end(what, HostOp::Modules(ModulesOp::Describe { name })).await?;
        Ok(super::parsed::<Option<Module>>(what, &value)?.map(Into::into))
    }

    async fn states(&mut self, name: String) -> wasmtime::Result<Vec<wit::Function>> {
        let what = "modules.states";
        let value = self.ask_or_end(what, HostOp::Modules(ModulesOp::States { name })).await?;
        Ok(super::parsed::<Vec<Function>>(what, &value)?.into_iter().map(Into::into).collect())
    }

    async fn sync(&mut self, saltenv: Option<Vec<String>>) -> wasmtime::Result<Result<Vec<String>, String>> {
        let what = "modules.sync";
        match self.ask(what, HostOp::Modules(ModulesOp::Sync { saltenv })).await? {
            Ok(value) => Ok(Ok(super::parsed(what, &value)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn refresh_facts(&mut self, grains: bool, pillar: bool) -> wasmtime::Result<Result<(), String>> {
        let what = "modules.refresh-facts";
        match self.ask(what, HostOp::Modules(ModulesOp::RefreshFacts { grains, pillar })).await? {
            Ok(value) => {
                super::truth(what, &value)?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn refresh_pillar(
        &mut self,
        clean_cache: bool,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<bool, String>> {
        let what = "modules.refresh-pillar";
        match self.ask(what, HostOp::Modules(ModulesOp::RefreshPillar { clean_cache, timeout_ms })).await? {
            Ok(value) => Ok(Ok(super::truth(what, &value)?)),
            Err(error) => Ok(Err(error)),
        }
    }
}
