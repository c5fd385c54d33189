//! What a recording on disk has in it, and what it must not have.

use brine_recording::{Head, HostCall, Written, pack, unpack};
use brine_sandbox_wire::{
    ByteBuf, FailKind, FunctionsOp, HostError, HostOp, HttpOp, HttpRequest, Limits, Outcome, PillarOp, ProcessOp,
    ProcessRun, Sha256Hex, StatesOp,
};
use rmpv::Value;

use super::*;
use crate::kernel::value;
use crate::settings::RecordingSettings;
use crate::testing::yaml;

const KEY: &str =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";

fn head(kwargs: &str) -> Head {
    Head {
        module: "m".into(),
        sha256: Sha256Hex::from([1; 32]),
        function: "f".into(),
        args: ByteBuf::from(vec![0x90]),
        kwargs: ByteBuf::from(value::encode(&yaml(kwargs))),
        context: JobContext::default(),
        limits: Limits::default(),
        time: 0,
        brine: String::new(),
        secrets: 0,
    }
}

fn call(name: &str, op: &HostOp, told: &Value) -> HostCall {
    let told = pack(&Ok::<_, HostError>(ByteBuf::from(value::encode(told))));
    HostCall { name: name.into(), asked: ByteBuf::from(pack(op)), told: ByteBuf::from(told), hidden: Vec::new() }
}

/// Makes the file of a call that returned this, and reads it.
fn kept(kwargs: &str, calls: Vec<HostCall>, returned: &str, known: &[Value]) -> (Recording, Vec<u8>) {
    let mut written = Written::new(1 << 20);
    calls.into_iter().for_each(|call| assert!(!written.call(call)));
    let outcome = Outcome::Returned { value: value::encode(&Value::from(returned)), retcode: 0 };
    let recorded = Recorded { head: head(kwargs), frames: written.take(0).unwrap_or_default(), outcome };
    let bytes = file(recorded, known, &RecordingSettings::default().secrets).unwrap();
    (Recording::from_bytes(&bytes).unwrap(), bytes)
}

#[track_caller]
fn has_none(bytes: &[u8], secrets: &[&str]) {
    for secret in secrets {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret} is in {}", String::from_utf8_lossy(bytes));
    }
}

fn told(call: &HostCall) -> Value {
    let told: Result<ByteBuf, HostError> = unpack(&call.told).unwrap();
    value::decode(&told.unwrap()).unwrap()
}

#[test]
fn the_pillar_is_replaced_wherever_it_goes() {
    let get = HostOp::Pillar(PillarOp::Get { key: "db".into(), delimiter: None });
    let pillar = call("pillar.get", &get, &yaml("{user: app, password: hunter2, port: 5432, pin: '17'}"));
    let argv = vec!["/bin/db".to_owned(), "--password=hunter2".to_owned()];
    let run = HostOp::Process(ProcessOp::Run(Box::new(ProcessRun { argv, ..ProcessRun::default() })));
    let program = call("process.run", &run, &yaml("{stdout: 'logged in with hunter2 as app'}"));
    let (recording, bytes) = kept("{}", vec![pillar, program], "it is hunter2", &[]);
    has_none(&bytes, &["hunter2"]);
    let [pillar, program] = &recording.calls[..] else { panic!() };
    let told_pillar = told(pillar);
    assert_eq!(told_pillar["port"], Value::from(5432));
    assert_eq!(told_pillar["password"], Value::from("<secret"));
    // Texts too short to be found elsewhere are replaced where they were told.
    assert_eq!((&told_pillar["user"], &told_pillar["pin"]), (&Value::from("<se"), &Value::from("<s")));
    assert_eq!(told(program)["stdout"], Value::from("logged in with <secret as app"));
    let asked: HostOp = unpack(&program.asked).unwrap();
    assert!(format!("{asked:?}").contains("--password=<secret\""), "{asked:?}");
    assert_eq!((program.hidden.len(), recording.end.hidden.len(), recording.head.secrets), (1, 1, 1));
    let Outcome::Returned { value, .. } = &recording.end.outcome else { panic!() };
    assert_eq!(value::decode(value).unwrap(), Value::from("it is <secret"));
    // A replay that has the value from elsewhere is the same.
    assert!(
        recording.end.is_same(&Outcome::Returned { value: value::encode(&Value::from("it is hunter2")), retcode: 0 })
    );
    assert!(
        !recording.end.is_same(&Outcome::Returned { value: value::encode(&Value::from("it's hunter2!")), retcode: 0 })
    );
}

/// The pillar of the host that a call was not told itself: it comes by a state's arguments, or by another function.
#[test]
fn the_pillar_is_replaced_where_it_was_not_asked_for() {
    let known = [yaml("{deep: [{password: 'correct horse'}], motd: \"first line here\\nsecond line here\"}")];
    let function = |name: &str| {
        let (args, kwargs) = (ByteBuf::from(vec![0x90]), ByteBuf::from(vec![0x80]));
        let op = FunctionsOp::Call { function: name.into(), args, kwargs, written_left: 0, new_files_left: 0 };
        HostOp::Functions(op)
    };
    let pillar = ByteBuf::from(value::encode(&yaml("{a: of-this-run}")));
    let use_pillar = HostOp::States(StatesOp::UsePillar { pillar });
    let calls = vec![
        call("functions.call", &function("pillar.get"), &yaml("{value: s3cr3t}")),
        call("states.use-pillar", &use_pillar, &Value::Nil),
        call("functions.call", &function("test.echo"), &yaml("{value: 'correct horse, s3cr3t'}")),
    ];
    let kwargs = "{contents: 'pass: correct horse, second line here'}";
    let (recording, bytes) = kept(kwargs, calls, "second line here", &known);
    has_none(&bytes, &["correct horse", "s3cr3t", "second line", "of-this-run"]);
    assert_eq!(recording.head.secrets, 4);
    // What is around the secrets stays MessagePack.
    let asked: HostOp = unpack(&recording.calls[1].asked).unwrap();
    let HostOp::States(StatesOp::UsePillar { pillar }) = asked else { panic!("{asked:?}") };
    assert_eq!(value::decode(&pillar).unwrap()["a"].as_str().unwrap().len(), "of-this-run".len());
}

#[test]
fn marked_names_are_replaced() {
    let run = ProcessRun {
        argv: vec!["/bin/x".into()],
        env: vec![("DB_PASSWORD".into(), "swordfish".into()), ("HOME".into(), "/home/app".into())],
        ..ProcessRun::default()
    };
    let get = HttpRequest {
        url: "https://example.org/".into(),
        headers: vec![("Authorization".into(), "Bearer abcdef".into()), ("Accept".into(), "text/html".into())],
        ..HttpRequest::default()
    };
    let calls = vec![
        call("process.run", &HostOp::Process(ProcessOp::Run(Box::new(run))), &Value::from("swordfish")),
        call("http.send", &HostOp::Http(HttpOp::Request(Box::new(get))), &yaml("{api_token: qwertz}")),
    ];
    let kwargs = "{password: opensesame, name: www, pillar: {a: {b: from-the-cli}}, key: ordinary}";
    let (recording, bytes) = kept(kwargs, calls, "qwertz opensesame", &[]);
    has_none(&bytes, &["swordfish", "Bearer abcdef", "opensesame", "qwertz", "from-the-cli"]);
    let text = String::from_utf8_lossy(&bytes);
    assert!(["/home/app", "text/html", "www", "ordinary"].iter().all(|kept| text.contains(kept)), "{text}");
    assert_eq!(recording.head.secrets, 5);
}

/// Also a key that is read in two parts.
#[test]
fn private_keys_are_replaced() {
    let read = |part: &str| {
        let told = pack(&Ok::<_, ()>(ByteBuf::from(part.as_bytes().to_vec())));
        let name = "wasi:io/streams.input-stream.blocking-read".into();
        HostCall { name, asked: ByteBuf::from(vec![0x90]), told: ByteBuf::from(told), hidden: Vec::new() }
    };
    let (first, second) = KEY.split_at(50);
    let calls = vec![read(KEY), read(first), read(second), read("the next file")];
    let (recording, bytes) = kept("{}", calls, KEY, &[]);
    has_none(&bytes, &["b3BlbnNzaC1r", "XktdjEA", "AAAA"]);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("-----BEGIN OPENSSH PRIVATE KEY-----") && text.contains("the next file"), "{text}");
    let certificate = "-----BEGIN CERTIFICATE-----\nb3BlbnNzaC1rZXktdjEA\n-----END CERTIFICATE-----\n";
    let (_, bytes) = kept("{}", vec![read(certificate)], "", &[]);
    assert!(String::from_utf8_lossy(&bytes).contains("b3BlbnNzaC1rZXktdjEA"));
    assert_eq!(recording.calls.len(), 4);
}

#[test]
fn a_failure_has_no_secrets_either() {
    let outcome = Outcome::Failed { kind: FailKind::Function, message: "no such user: geheim1".into(), retcode: 1 };
    let recorded = Recorded { head: head("{}"), frames: Vec::new(), outcome };
    let bytes = file(recorded, &[yaml("{x: geheim1}")], &[]).unwrap();
    has_none(&bytes, &["geheim1"]);
    let end = Recording::from_bytes(&bytes).unwrap().end;
    assert_eq!(end.hidden, [(14, 7)]);
}

/// An executor whose guest escaped sends what it likes.
#[test]
fn what_is_no_recording_is_not_kept() {
    let outcome = Outcome::Returned { value: vec![0xc0], retcode: 0 };
    let try_frames = |frames: Vec<u8>| file(Recorded { head: head("{}"), frames, outcome: outcome.clone() }, &[], &[]);
    assert!(try_frames(Vec::new()).is_ok());
    assert!(try_frames(vec![0, 0, 0, 9, 1]).is_err());
    let forged = brine_recording::entry(&Entry::Head(Box::new(head("{}"))));
    assert_eq!(try_frames(forged).unwrap_err(), "the executor sent what is no call of the host");
    // A pillar that cannot be read could not be cleaned of secrets.
    let get = HostOp::Pillar(PillarOp::Items);
    let mut odd = call("pillar.items", &get, &Value::Nil);
    odd.told = ByteBuf::from(pack(&Ok::<_, HostError>(ByteBuf::from(vec![0xc1]))));
    let error = try_frames(brine_recording::entry(&Entry::Call(odd))).unwrap_err();
    assert_eq!(error, "an answer of the pillar cannot be read");
}
