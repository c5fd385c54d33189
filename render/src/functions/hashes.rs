//! `hashutil`: digests and base64 of text.

use super::Answer;
use super::call::{Call, Row};
use crate::data::{CallError, hash};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row::new("digest", "instr checksum?", digest),
    Row::new("md5_digest", "instr", |call| hash::digest("md5", &call.need("instr"))),
    Row::new("sha256_digest", "instr", |call| hash::digest("sha256", &call.need("instr"))),
    Row::new("sha512_digest", "instr", |call| hash::digest("sha512", &call.need("instr"))),
    Row::new("base64_b64encode", "instr", |call| hash::encode(&call.need("instr"))),
    Row::new("base64_b64decode", "instr", |call| hash::decode(&call.need("instr"))),
    Row::new("base64_encodestring", "instr", |call| hash::encode_lines(&call.need("instr"))),
    Row::new("base64_decodestring", "instr", |call| hash::decode(&call.need("instr"))),
    Row::new("hmac_signature", "string shared_secret challenge_hmac", signature),
    Row::new("hmac_compute", "string shared_secret", |call| {
        hash::hmac(&call.need("string"), &call.need("shared_secret")).map(|mac| hash::hex(&mac).into())
    }),
    Row::new("github_signature", "string shared_secret challenge_hmac", github),
];

fn digest(call: &Call<'_>) -> Answer {
    match &*call.text("checksum", "md5") {
        name @ ("md5" | "sha256" | "sha512") => hash::digest(name, &call.need("instr")),
        other => Err(CallError::refused(format!("Hash func '{other}' is not supported."))),
    }
}

fn signature(call: &Call<'_>) -> Answer {
    hash::verify(&call.need("string"), &call.need("shared_secret"), &call.need("challenge_hmac")).map(Value::Bool)
}

/// `sha1=…`, as GitHub signs what it sends to a webhook.
fn github(call: &Call<'_>) -> Answer {
    let challenge = crate::data::text(&call.need("challenge_hmac"))?;
    let (kind, mac) = match challenge.split('=').collect::<Vec<_>>()[..] {
        [_] => return Err(CallError::python("not enough values to unpack (expected 2, got 1)")),
        [kind, mac] => (kind, mac),
        _ => return Err(CallError::python("too many values to unpack (expected 2)")),
    };
    let own = hash::hmac_by(kind, &call.need("string"), &call.need("shared_secret"))?;
    Ok((own == mac).into())
}
