//! The stored form of a description. Each type and each list of parameters is stored once, however many functions share
//! it, so that a small component has a small description. The stored form may come from a process that read hostile
//! bytes.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Function, MAX_DESCRIPTION, MAX_FUNCTIONS, MAX_PARAMS, ModuleInfo, Param, ReadError, Rest};

/// The version of the form. A description of another version is made again from the component.
pub const FORM: u32 = 4;

#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    version: Option<String>,
    doc: Option<String>,
    functions: Vec<WrittenFunction>,
    signatures: Vec<Signature>,
    /// Types in WIT's syntax.
    types: Vec<String>,
    imports: Vec<String>,
    notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenFunction {
    name: String,
    export: Vec<String>,
    signature: usize,
    doc: Option<String>,
}

/// Refers to types by their index.
#[derive(Serialize, Deserialize)]
struct Signature {
    /// Name, type, whether it is optional, and whether it takes the rest.
    params: Vec<(String, usize, bool, Rest)>,
    result: Option<usize>,
}

impl From<ModuleInfo> for Written {
    fn from(info: ModuleInfo) -> Self {
        let (mut types, mut places) = (Vec::new(), HashMap::new());
        let mut place = |ty: &Arc<str>| {
            *places.entry(Arc::clone(ty)).or_insert_with(|| {
                types.push(ty.to_string());
                types.len() - 1
            })
        };
        let (mut signatures, mut known) = (Vec::new(), HashMap::new());
        let all = info.functions.into_iter().chain(info.states).chain(info.beacons);
        let functions = all.map(|Function { name, export, params, result, doc }| {
            let signature = *known.entry((params, result)).or_insert_with_key(|(params, result)| {
                let params = params
                    .iter()
                    .map(|Param { name, ty, optional, rest }| (name.to_string(), place(ty), *optional, *rest));
                signatures.push(Signature { params: params.collect(), result: result.as_ref().map(&mut place) });
                signatures.len() - 1
            });
            WrittenFunction { name, export, signature, doc }
        });
        let functions = functions.collect();
        let ModuleInfo { version, doc, imports, notes, .. } = info;
        Self { version, doc, functions, signatures, types, imports, notes }
    }
}

impl TryFrom<Written> for ModuleInfo {
    type Error = ReadError;

    fn try_from(written: Written) -> Result<Self, ReadError> {
        let Written { version, doc, functions, signatures, types, imports, notes } = written;
        // Checked before shared parts are expanded for each use.
        if functions.len() > MAX_FUNCTIONS {
            return Err(ReadError::TooMuch {
                what: "is described with too many functions".into(),
                limit: MAX_FUNCTIONS,
            });
        }
        if signatures.iter().any(|signature| signature.params.len() > MAX_PARAMS) {
            return Err(ReadError::TooMuch { what: "is described with too many parameters".into(), limit: MAX_PARAMS });
        }
        let types: Vec<Arc<str>> = types.into_iter().map(Arc::from).collect();
        let ty = |place: usize| types.get(place).cloned().ok_or(ReadError::Garbled);
        let signatures = signatures.into_iter().map(|Signature { params, result }| {
            let params = params
                .into_iter()
                .map(|(name, place, optional, rest)| Ok(Param { name: name.into(), ty: ty(place)?, optional, rest }));
            Ok((params.collect::<Result<Vec<Param>, ReadError>>()?, result.map(ty).transpose()?))
        });
        let signatures = signatures.collect::<Result<Vec<_>, ReadError>>()?;
        let functions = functions.into_iter().map(|WrittenFunction { name, export, signature, doc }| {
            let (params, result) = signatures.get(signature).cloned().ok_or(ReadError::Garbled)?;
            Ok(Function { name, export, params, result, doc })
        });
        let all = functions.collect::<Result<Vec<_>, ReadError>>()?;
        let [functions, states, beacons] = Self::sorted(all);
        Ok(Self { version, doc, functions, states, beacons, imports, notes })
    }
}

impl ModuleInfo {
    /// Serialises the description.
    ///
    /// # Errors
    ///
    /// It is larger than [`MAX_DESCRIPTION`].
    pub fn write(&self) -> Result<Vec<u8>, ReadError> {
        // Serde cannot fail on these types.
        let bytes = serde_json::to_vec(self).map_err(|_| ReadError::Garbled)?;
        bounded(&bytes).map(|()| bytes)
    }

    /// Parses the output of [`ModuleInfo::write`], and checks all bounds again.
    ///
    /// # Errors
    ///
    /// It is too large or invalid.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        bounded(bytes)?;
        let written: Written = serde_json::from_slice(bytes).map_err(|_| ReadError::Garbled)?;
        let info = Self::try_from(written)?;
        info.check().map(|()| info)
    }
}

fn bounded(bytes: &[u8]) -> Result<(), ReadError> {
    match bytes.len() {
        0..=MAX_DESCRIPTION => Ok(()),
        size => {
            let what = format!("has a description (functions, types, docs) of {size} bytes");
            Err(ReadError::TooMuch { what, limit: MAX_DESCRIPTION })
        }
    }
}
