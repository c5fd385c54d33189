//! `network`: what is computed from addresses. What looks at the host is the module's.

use std::net::{Ipv4Addr, Ipv6Addr};

use brine_addresses::functions;

use super::Answer;
use super::call::{Call, Row};
use crate::data::CallError;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row::new("calc_net", "ip_addr netmask?", calc_net),
    Row::new("convert_cidr", "cidr", convert_cidr),
    Row::new("ip_in_subnet", "ip_addr cidr", ip_in_subnet),
    Row::new("iphexval", "ip", |call| made(functions::iphexval(&text(&call.need("ip"))))),
    Row::new("is_loopback", "ip_addr", |call| made(functions::is_loopback(&text(&call.need("ip_addr"))))),
    Row::new("is_private", "ip_addr", |call| made(functions::is_private(&text(&call.need("ip_addr"))))),
    Row::new("reverse_ip", "ip_addr", |call| made(functions::reverse_ip(&text(&call.need("ip_addr"))))),
];

/// An address as text. Python reads one from a number too; of other values this is what the message shows.
fn text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Int(number) => match (u32::try_from(*number), u128::try_from(*number)) {
            (Ok(number), _) => Ipv4Addr::from(number).to_string(),
            (_, Ok(number)) => Ipv6Addr::from(number).to_string(),
            _ => number.to_string(),
        },
        other => other.short_repr(),
    }
}

fn made<T: Into<Value>>(made: Result<T, String>) -> Answer {
    made.map(Into::into).map_err(CallError::python)
}

fn calc_net(call: &Call<'_>) -> Answer {
    let netmask = call.given("netmask").map(|mask| match mask {
        // The length of a prefix.
        Value::Int(length) => length.to_string(),
        other => text(other),
    });
    made(functions::calc_net(&text(&call.need("ip_addr")), netmask.as_deref()))
}

fn convert_cidr(call: &Call<'_>) -> Answer {
    let made = functions::convert_cidr(&text(&call.need("cidr"))).map_err(CallError::python)?;
    Ok(Value::dict([
        ("network".into(), made.network.into()),
        ("netmask".into(), made.netmask.into()),
        ("broadcast".into(), made.broadcast.into()),
    ]))
}

fn ip_in_subnet(call: &Call<'_>) -> Answer {
    let addresses: Vec<String> = match call.need("ip_addr") {
        Value::List(items) => items.borrow().iter().map(text).collect(),
        Value::Tuple(items) => items.iter().map(text).collect(),
        one => vec![text(&one)],
    };
    made(functions::in_subnet(&text(&call.need("cidr")), addresses.iter().map(String::as_str)))
}
