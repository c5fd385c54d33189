//! `brine:host/functions`: calls functions of other modules through the broker, which runs each in an instance of its
//! own.

use brine_sandbox_wire::{ByteBuf, FunctionsOp, HostOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::functions::{Data, Host, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack::{self, Item, Malformed, Reader, Writer};

pub(super) const LINKS: Links =
    &[("brine:host/functions", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn call(
        &mut self,
        function: String,
        args: Vec<Data>,
        kwargs: Data,
    ) -> wasmtime::Result<Result<Data, String>> {
        self.call_function("functions.call", function, &args, kwargs, HostOp::Functions).await
    }
}

impl Guest {
    /// Asks the broker for a call by an operation of either interface that has one.
    pub(super) async fn call_function(
        &mut self,
        what: &'static str,
        function: String,
        args: &[Data],
        kwargs: Data,
        operation: impl FnOnce(FunctionsOp) -> HostOp,
    ) -> wasmtime::Result<Result<Data, String>> {
        let args = match array(args) {
            Ok(args) => ByteBuf::from(args),
            Err(error) => return Ok(Err(format!("an argument is not one MessagePack value: {error}"))),
        };
        if let Err(error) = msgpack::map(&kwargs.msgpack) {
            return Ok(Err(format!("the keyword arguments are not a dict with text for keys: {error}")));
        }
        let kwargs = ByteBuf::from(kwargs.msgpack);
        let (written_left, new_files_left) = self.files.budget.left();
        let call = FunctionsOp::Call { function, args, kwargs, written_left, new_files_left };
        let answer = match self.ask(what, operation(call)).await? {
            Ok(answer) => answered(&answer).map_err(|error| super::odd(what, &error))?,
            Err(error) => return Ok(Err(error)),
        };
        self.files.budget.spend(answer.written, answer.new_files);
        Ok(answer.value.map(|msgpack| Data { msgpack }))
    }
}

fn array(args: &[Data]) -> Result<Vec<u8>, Malformed> {
    // The size of the request is bounded when it is sent.
    let mut out = Writer::new(usize::MAX);
    let full = |_| Malformed::TooMany;
    out.array(args.len()).map_err(full)?;
    for arg in args {
        let items = msgpack::check(&arg.msgpack)?;
        out.raw(&arg.msgpack, items).map_err(full)?;
    }
    Ok(out.into_bytes())
}

/// How a called function ended.
#[derive(Debug, PartialEq)]
struct Called {
    /// The function's value, or the text of its failure.
    value: Result<Vec<u8>, String>,
    /// Bytes that the function wrote and files that it made.
    written: u64,
    new_files: u64,
}

fn answered(answer: &[u8]) -> Result<Called, Malformed> {
    let (mut value, mut success) = (None, true);
    let (mut written, mut new_files) = (0, 0);
    let number = |inner| {
        Reader::new(inner).item().map(|item| if let Item::Int(n) = item { n.try_into().unwrap_or(u64::MAX) } else { 0 })
    };
    for (key, inner) in msgpack::map(answer)? {
        match key {
            "value" => value = Some(inner),
            "written" => written = number(inner)?,
            "new_files" => new_files = number(inner)?,
            "success" => success = Reader::new(inner).item()? != Item::Bool(false),
            _ => {}
        }
    }
    let value = value.ok_or(Malformed::Unexpected)?;
    let value = if success {
        Ok(value.to_vec())
    } else {
        Err(match Reader::new(value).item()? {
            Item::Str(text) => text.to_owned(),
            _ => crate::value::show::show(value),
        })
    };
    Ok(Called { value, written, new_files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let map = |value: &[u8], success: u8| [b"\x82\xa5value", value, b"\xa7success", &[success]].concat();
        let called = |value| Called { value, written: 0, new_files: 0 };
        assert_eq!(answered(&map(&[0x05], 0xc3)), Ok(called(Ok(vec![5]))));
        assert_eq!(answered(&map(b"\xa2no", 0xc2)), Ok(called(Err("no".into()))));
        assert_eq!(answered(&map(&[0xc2], 0xc2)), Ok(called(Err("False".into()))));
        let spent = b"\x83\xa5value\x05\xa7written\xcd\x01\x00\xa9new_files\x03";
        assert_eq!(answered(spent), Ok(Called { value: Ok(vec![5]), written: 256, new_files: 3 }));
        assert_eq!(answered(&[0x80]), Err(Malformed::Unexpected));
        assert_eq!(answered(&[0xc0]), Err(Malformed::Unexpected));
    }
}
