//! Messages that anyone may send to port 4506, as far as they are read without a key, and the loads in them.
#![no_main]

use brine_protocol::auth::AuthRequest;
use brine_protocol::envelope::Envelope;
use brine_protocol::job::{self, JobLoad, PublishRequest, ReturnLoad};
use brine_protocol::msgpack::Limits;
use brine_protocol::target::{Target, TargetType};
use brine_protocol::value::ValueExt as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(envelope) = Envelope::decode(data, &Limits::ENVELOPE) else { return };
    let sent = envelope.encode();
    assert_eq!(Envelope::decode(&sent, &Limits::ENVELOPE).expect("what we sent, we read").encode(), sent);
    let Envelope::Clear { load, version } = envelope else { return };
    if let Ok(request) = AuthRequest::parse(&load, version, 2) {
        let again = AuthRequest::parse(&request.to_load(), version, 2).expect("what we sent, we read");
        assert_eq!(again.to_load(), request.to_load());
        let _ = request.key();
    }
    if let Ok(job) = JobLoad::parse(&load) {
        for call in &job.calls {
            let _ = job::split_kwargs(&call.arg);
        }
    }
    if let Ok(request) = PublishRequest::parse(load.clone()) {
        let jid = "20261120134740245008".parse().expect("a jid");
        let _ = request.publish(&jid, "", None).to_load();
    }
    let _ = ReturnLoad::parse(load.clone(), &"m".parse().expect("an id")).encode();
    if let Some(tgt) = load.get("tgt") {
        for kind in [TargetType::Glob, TargetType::List, TargetType::Pcre] {
            let _ = Target::parse(kind, tgt, ":");
        }
    }
});
