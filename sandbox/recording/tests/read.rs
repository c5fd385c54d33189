//! What is no recording is refused, whoever made it, and takes no memory by what it claims.
#![allow(clippy::unwrap_used, reason = "it is test code")]

use std::io::{self, Read};

use brine_recording::{
    End, Entry, Head, HostCall, MAGIC, MAX_CALLS, MAX_FILE, Recording, RecordingError, Written, entries, entry,
    is_same, unpack,
};
use brine_sandbox_wire::{ByteBuf, FailKind, JobContext, Limits, Outcome, Sha256Hex};
use proptest::prelude::*;

fn head() -> Head {
    Head {
        module: "hello".into(),
        sha256: Sha256Hex::from([7; 32]),
        function: "world".into(),
        args: ByteBuf::from(vec![0x90]),
        kwargs: ByteBuf::from(vec![0x80]),
        context: JobContext { jid: "1".into(), function: "hello.world".into(), ..JobContext::default() },
        limits: Limits::default(),
        time: 1_795_000_000,
        brine: "0.1.0".into(),
        secrets: 2,
    }
}

fn call(name: &str, told: &[u8]) -> HostCall {
    let (asked, told) = (ByteBuf::from(vec![0x90]), ByteBuf::from(told.to_vec()));
    HostCall { name: name.into(), asked, told, hidden: vec![(0, 1)] }
}

fn recording() -> Recording {
    let calls = vec![call("grains.items", b"\x80"), call("wasi:random/random.get-random-u64", &[1; 300])];
    let outcome = Outcome::Returned { value: vec![0xc0], retcode: 0 };
    Recording { head: head(), calls, full: false, end: End { outcome, hidden: Vec::new() } }
}

#[track_caller]
fn refused(bytes: &[u8], why: &str) {
    assert_eq!(Recording::from_bytes(bytes).unwrap_err().to_string(), why);
}

#[test]
fn what_is_written_is_read() {
    let recording = recording();
    assert_eq!(Recording::from_bytes(&recording.to_bytes()).unwrap(), recording);
    let outcome = Outcome::Failed { kind: FailKind::Function, message: "no".into(), retcode: 3 };
    let full = Recording { full: true, end: End { outcome, hidden: vec![(0, 2)] }, ..recording };
    assert_eq!(Recording::from_reader(&*full.to_bytes()).unwrap(), full);
}

/// A recording that is cut off anywhere is refused, and says how far it goes.
#[test]
fn cut_off() {
    let bytes = recording().to_bytes();
    for length in 0..bytes.len() {
        let error = Recording::from_bytes(&bytes[..length]).unwrap_err();
        match length < MAGIC.len() {
            true => {
                assert!(matches!(error, RecordingError::NoRecording | RecordingError::Version), "{length}: {error}")
            }
            false => assert!(matches!(error, RecordingError::Truncated { .. }), "{length}: {error}"),
        }
    }
    let last = "is cut off: it ends after 2 calls of the host, without the end of the call";
    refused(&bytes[..bytes.len() - 1], last);
}

#[test]
fn other_files() {
    refused(b"", "is no recording of a call");
    refused(b"\0asm\x0d\0\x01\0", "is no recording of a call");
    refused(b"brine-recording 2\n", "is a recording in a form that this version does not know");
}

/// A file of 1 GiB is read as far as a recording may go, and no further.
#[test]
fn a_large_file_is_not_read_to_its_end() {
    struct Counted<R>(R, u64);
    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1 += read as u64;
            Ok(read)
        }
    }
    let mut file = Counted(MAGIC.chain(io::repeat(0).take(1 << 30)), 0);
    let error = Recording::from_reader(&mut file).unwrap_err();
    assert_eq!(error.to_string(), "is larger than the 24 MiB that a recording may have");
    assert_eq!(file.1, MAX_FILE + 1);
}

#[test]
fn hostile_lengths() {
    let head = entry(&Entry::Head(Box::new(head())));
    for length in [1_u32, 1 << 20, u32::MAX] {
        let frame = [&length.to_be_bytes()[..], b""].concat();
        refused(
            &[MAGIC, &head, &frame].concat(),
            "is cut off: it ends after 0 calls of the host, without the end of the call",
        );
    }
    // Lengths within an entry: text, bytes, an array, a map of 4 GiB.
    for marker in [0xdb_u8, 0xc6, 0xdd, 0xdf] {
        let claims = [&[marker][..], &[0xff; 4]].concat();
        let bodies = [
            claims.clone(),
            [b"\x81\xa4Call".as_slice(), &claims].concat(),
            [b"\x81\xa4Call\x83\xa4name\xa1x\xa5asked".as_slice(), &claims].concat(),
            [b"\x81\xa4Call\x84\xa4name\xa1x\xa5asked\xc4\0\xa4told\xc4\0\xa6hidden".as_slice(), &claims].concat(),
        ];
        for body in bodies {
            let length = u32::try_from(body.len()).unwrap().to_be_bytes();
            let error = Recording::from_bytes(&[MAGIC, &head, &length, &body].concat()).unwrap_err();
            assert!(matches!(error, RecordingError::Malformed { number: 2, .. }), "{marker:x}: {error}");
        }
    }
    // Nesting.
    let deep = [vec![0x91; 100_000], vec![0xc0]].concat();
    let length = u32::try_from(deep.len()).unwrap().to_be_bytes();
    let error = Recording::from_bytes(&[MAGIC, &length, &deep].concat()).unwrap_err();
    assert!(matches!(error, RecordingError::Malformed { number: 1, .. }), "{error}");
    // Bytes behind an entry.
    let length = u32::try_from(head.len() - 4 + 1).unwrap().to_be_bytes();
    let error = Recording::from_bytes(&[MAGIC, &length, &head[4..], b"\0"].concat()).unwrap_err();
    assert_eq!(error.to_string(), "is damaged: entry 1 cannot be read (there are bytes behind it)");
}

#[test]
fn entries_have_their_places() {
    let head = entry(&Entry::Head(Box::new(head())));
    let call = entry(&Entry::Call(call("x", b"\xc0")));
    let end = Entry::End(Box::new(recording().end));
    let (full, end) = (entry(&Entry::Full), entry(&end));
    for (entries, number) in [
        (vec![&call], 1),
        (vec![&head, &head], 2),
        (vec![&head, &full, &call], 3),
        (vec![&head, &full, &full], 3),
        (vec![&head, &end, &end], 3),
        (vec![&head, &end, &call], 3),
    ] {
        let bytes = [MAGIC.to_vec(), entries.into_iter().flatten().copied().collect()].concat();
        refused(&bytes, &format!("is damaged: entry {number} is out of place"));
    }
    let many = call.repeat(MAX_CALLS as usize + 1);
    refused(&[MAGIC, &head, &many].concat(), "has more than the 200000 calls of the host that a recording may have");
}

#[test]
fn the_bound_is_kept_and_said_once() {
    let one = entry(&Entry::Call(call("x", b"\xc0"))).len() as u64;
    let mut written = Written::new(2 * one);
    assert!(!written.call(call("x", b"\xc0")) && !written.call(call("x", b"\xc0")) && !written.is_full());
    assert!(written.call(call("x", b"\xc0")) && written.is_full());
    assert!(!written.call(call("x", b"\xc0")));
    assert_eq!(written.take(1 << 20), None);
    let mut seen = Vec::new();
    entries(&written.take(0).unwrap(), |_, entry| {
        seen.push(matches!(entry, Entry::Full));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [false, false, true]);
    assert_eq!(written.take(0), None);
}

#[test]
fn markers_equal_what_they_stand_for() {
    let (recorded, hidden) = (b"key=<secret>;x", [(4, 8)]);
    assert!(is_same(recorded, &hidden, b"key=<secret>;x") && is_same(recorded, &hidden, b"key=hunter22;x"));
    assert!(!is_same(recorded, &hidden, b"kez=hunter22;x") && !is_same(recorded, &hidden, b"key=hunter22;y"));
    assert!(!is_same(recorded, &hidden, b"key=hunter2;x") && !is_same(recorded, &hidden, b"key=hunter22;xx"));
    assert!(!is_same(recorded, &[], b"key=hunter22;x"));
    // Places that are none.
    for odd in [(100, 8), (u32::MAX, u32::MAX), (0, u32::MAX), (14, 1)] {
        assert!(is_same(recorded, &[odd], recorded));
    }
}

proptest! {
    /// Whatever the bytes are, reading them ends with a recording or an error.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = Recording::from_bytes(&bytes);
        let _ = Recording::from_bytes(&[MAGIC, &bytes].concat());
        let _ = unpack::<Entry>(&bytes);
    }

    /// A damaged recording is refused, or is one that can be written again.
    #[test]
    fn changed_bytes(places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = recording().to_bytes();
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(read) = Recording::from_bytes(&bytes) {
            prop_assert_eq!(Recording::from_bytes(&read.to_bytes()).unwrap(), read);
        }
    }

    /// Comparing never looks outside of the bytes.
    #[test]
    fn any_places(
        recorded in proptest::collection::vec(any::<u8>(), 0..40),
        hidden in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..4),
        small in proptest::collection::vec((0_u32..50, 0_u32..50), 0..4),
    ) {
        prop_assert!(is_same(&recorded, &hidden, &recorded));
        prop_assert!(is_same(&recorded, &small, &recorded));
        let longer = [&recorded[..], b"x"].concat();
        prop_assert!(!is_same(&recorded, &small, &longer));
    }
}
