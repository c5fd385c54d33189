//! `brine:host/functions`: functions of other modules, asked of the broker, which runs each in an instance of its own.

use brine_sandbox_wire::{ByteBuf, FunctionsOp, HostOp};

use super::bindings::brine::host::functions::{Data, Host};
use crate::guest::Guest;
use crate::value::msgpack::{self, Item, Malformed, Reader, Writer};

impl Host for Guest {
    async fn call(
        &mut self,
        function: String,
        args: Vec<Data>,
        kwargs: Data,
    ) -> wasmtime::Result<Result<Data, String>> {
        let what = "functions.call";
        let args = match array(&args) {
            Ok(args) => ByteBuf::from(args),
            Err(error) => return Ok(Err(format!("an argument is not one MessagePack value: {error}"))),
        };
        if let Err(error) = msgpack::map(&kwargs.msgpack) {
            return Ok(Err(format!("the keyword arguments are not a dict with text for keys: {error}")));
        }
        let kwargs = ByteBuf::from(kwargs.msgpack);
        let value = match self.ask(what, HostOp::Functions(FunctionsOp::Call { function, args, kwargs })).await? {
            Ok(answer) => answered(&answer),
            Err(error) => return Ok(Err(error)),
        };
        Ok(match value.map_err(|error| super::odd(what, &error))? {
            Ok(msgpack) => Ok(Data { msgpack }),
            Err(error) => Err(error),
        })
    }
}

fn array(args: &[Data]) -> Result<Vec<u8>, Malformed> {
    // The request's size is bounded where it is sent.
    let mut out = Writer::new(usize::MAX);
    let full = |_| Malformed::TooMany;
    out.array(args.len()).map_err(full)?;
    for arg in args {
        let items = msgpack::check(&arg.msgpack)?;
        out.raw(&arg.msgpack, items).map_err(full)?;
    }
    Ok(out.into_bytes())
}

/// The value, or the text of a return that failed.
fn answered(answer: &[u8]) -> Result<Result<Vec<u8>, String>, Malformed> {
    let (mut value, mut success) = (None, true);
    for (key, inner) in msgpack::map(answer)? {
        match key {
            "value" => value = Some(inner),
            "success" => success = Reader::new(inner).item()? != Item::Bool(false),
            _ => {}
        }
    }
    let value = value.ok_or(Malformed::Unexpected)?;
    if success {
        return Ok(Ok(value.to_vec()));
    }
    Ok(Err(match Reader::new(value).item()? {
        Item::Str(text) => text.to_owned(),
        _ => crate::value::show::show(value),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let map = |value: &[u8], success: u8| [b"\x82\xa5value", value, b"\xa7success", &[success]].concat();
        assert_eq!(answered(&map(&[0x05], 0xc3)), Ok(Ok(vec![5])));
        assert_eq!(answered(&map(b"\xa2no", 0xc2)), Ok(Err("no".into())));
        assert_eq!(answered(&map(&[0xc2], 0xc2)), Ok(Err("False".into())));
        assert_eq!(answered(&[0x80]), Err(Malformed::Unexpected));
        assert_eq!(answered(&[0xc0]), Err(Malformed::Unexpected));
    }
}
