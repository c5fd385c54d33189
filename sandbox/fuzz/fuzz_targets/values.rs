//! Arguments of a job by the types of any function: bound, lowered, lifted again.
#![no_main]

use brine_executor::value::lift::lift;
use brine_executor::value::lower::{ValueBudget, lower_all};
use brine_executor::value::msgpack::{self, Writer};
use brine_executor::value::show::show;
use brine_executor::value::signature::{Signature, TypedParam};
use brine_executor::value::ty::{Int, Name, Ty};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// Bytes that values may take: small enough that the fuzzer meets the bound.
const BUDGET: usize = 256 << 10;
const NAMES: [&str; 6] = ["a", "name", "max-depth", "args", "kwargs", "ok"];

fn names(u: &mut Unstructured<'_>) -> Result<Vec<Name>> {
    let count = u.int_in_range(1..=NAMES.len())?;
    Ok(NAMES[..count].iter().map(|name| Name::new(name)).collect())
}

fn ty(u: &mut Unstructured<'_>, depth: usize) -> Result<Ty> {
    let inner = |u: &mut Unstructured<'_>| ty(u, depth + 1).map(Box::new);
    let kinds = if depth > 4 { 9 } else { 21 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => Ty::Bool,
        1 => Ty::Int(Int::S8),
        2 => Ty::Int(Int::U64),
        3 => Ty::F32,
        4 => Ty::F64,
        5 => Ty::Char,
        6 => Ty::Text,
        7 => Ty::Bytes,
        8 => Ty::Data,
        9 => Ty::Enum(names(u)?),
        10 => Ty::List(inner(u)?),
        11 => Ty::Fixed(inner(u)?, u.int_in_range(0..=3)?),
        12 => Ty::Dict(inner(u)?),
        13 => {
            let count = u.int_in_range(0..=3)?;
            Ty::Tuple((0..count).map(|_| ty(u, depth + 1)).collect::<Result<_>>()?)
        }
        14 => {
            let names = names(u)?;
            Ty::Record(names.into_iter().map(|name| Ok((name, ty(u, depth + 1)?))).collect::<Result<_>>()?)
        },
        15 => {
            let names = names(u)?;
            let case = |name| Ok((name, if u.arbitrary()? { Some(ty(u, depth + 1)?) } else { None }));
            Ty::Variant(names.into_iter().map(case).collect::<Result<_>>()?)
        }
        16 => Ty::Flags(names(u)?),
        17 => Ty::Option(inner(u)?),
        18 => Ty::Result(Some(inner(u)?), None),
        19 => Ty::Result(None, Some(inner(u)?)),
        20 => Ty::Int(Int::U8),
        _ => Ty::Foreign("resource"),
    })
}

fn signature(u: &mut Unstructured<'_>) -> Result<Signature> {
    let count = u.int_in_range(1..=3)?;
    let params = NAMES[..6 - count].iter().rev().take(count).map(|name| Ok(TypedParam::new(name, ty(u, 0)?)));
    let params = params.collect::<Result<_>>()?;
    Ok(Signature { name: "test.f".into(), params, result: None })
}

fn one_line(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?}");
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // Types from the front, values behind them.
    let mut u = Unstructured::new(data);
    let Ok(signature) = signature(&mut u) else { return };
    let rest = u.take_rest();
    let (args, kwargs) = match rest.split_first() {
        Some((&length, rest)) if usize::from(length) <= rest.len() => rest.split_at(rest.len() - usize::from(length)),
        _ => (rest, &[0x80][..]),
    };
    if let Ok(items) = msgpack::check(args) {
        assert!(items > 0);
        one_line(&show(args));
        rmpv::decode::read_value_with_max_depth(&mut &*args, 1024).expect("what is checked, others read");
    }
    let given = match signature.bind(args, kwargs) {
        Ok(given) => given,
        Err(misfit) => return one_line(&signature.refusal(&misfit)),
    };
    let values = match lower_all(&signature, &given, &mut ValueBudget::new(BUDGET)) {
        Ok(values) => values,
        Err(misfit) => return one_line(&signature.refusal(&misfit)),
    };
    for (param, value) in signature.params.iter().zip(&values) {
        let mut out = Writer::new(1 << 20);
        if let Err(unfit) = lift(value, &param.ty, &mut out) {
            one_line(&unfit.to_string());
            continue;
        }
        let lifted = out.into_bytes();
        // A case without its value may become a dict of one key, which is a level more.
        if let Err(error) = msgpack::check(&lifted) {
            assert_eq!(error, msgpack::Malformed::TooDeep);
            continue;
        }
        // As it came out, it goes in, and comes out the same.
        let one = Signature {
            name: "test.f".into(),
            params: [TypedParam::new("value", param.ty.clone())].into(),
            result: None,
        };
        let mut again = Writer::new(2 << 20);
        again.array(1).expect("there is room");
        again.raw(&lifted, 1).expect("there is room");
        let again = again.into_bytes();
        let Ok(given) = one.bind(&again, &[0x80]) else { continue };
        let back = lower_all(&one, &given, &mut ValueBudget::new(BUDGET * 4)).unwrap_or_else(|error| {
            panic!("{error} for {:?}: {}", param.ty, show(&lifted));
        });
        let mut out = Writer::new(1 << 20);
        lift(&back[0], &param.ty, &mut out).expect("it did before");
        assert_eq!(out.into_bytes(), lifted, "{:?}", param.ty);
    }
});
