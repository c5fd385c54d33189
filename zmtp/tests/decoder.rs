//! For any bytes, however they are split, the decoder returns the same result and never panics.

use brine_zmtp::frame::{Command, Decoded, Decoder, DecoderLimits, FrameError, encode_command, encode_message};
use bytes::Bytes;
use proptest::prelude::*;

const LIMITS: DecoderLimits = DecoderLimits { max_message: 600, max_frames: 5, max_command: 300 };

/// The result of decoding `bytes`, cut at the given places, up to the first error.
fn decode(bytes: &[u8], cuts: &[usize]) -> (Vec<Decoded>, Option<FrameError>) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
    cuts.sort_unstable();
    let mut decoder = Decoder::new(LIMITS);
    let mut items = Vec::new();
    for pair in cuts.windows(2) {
        let mut part = &bytes[pair[0]..pair[1]];
        loop {
            match decoder.decode(&mut part) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => return (items, Some(error)),
            }
        }
        assert!(part.is_empty(), "it takes everything it is given");
        assert!(decoder.buffered() <= LIMITS.max_message.max(LIMITS.max_command) + LIMITS.max_message);
    }
    (items, None)
}

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (any::<u16>(), bytes(17)).prop_map(|(ttl, context)| Command::Ping { ttl, context }),
        bytes(17).prop_map(|context| Command::Pong { context }),
        bytes(280).prop_map(Command::Subscribe),
        bytes(280).prop_map(Command::Cancel),
        bytes(255).prop_map(Command::Error),
    ]
}

fn item() -> impl Strategy<Value = Decoded> {
    prop_oneof![
        prop::collection::vec(bytes(120), 1..=5).prop_map(Decoded::Message),
        bytes(600).prop_map(|frame| Decoded::Message(vec![frame])),
        command().prop_map(Decoded::Command),
    ]
}

fn encode(items: &[Decoded]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for item in items {
        bytes.extend_from_slice(&match item {
            Decoded::Message(frames) => encode_message(frames),
            Decoded::Command(command) => encode_command(command),
        });
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_written_is_read_however_it_is_split(
        items in prop::collection::vec(item(), 0..10),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        prop_assert_eq!(decode(&encode(&items), &cuts), (items, None));
    }

    #[test]
    fn noise_is_read_the_same_however_it_is_split(
        noise in prop::collection::vec(any::<u8>(), 0..2000),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        prop_assert_eq!(decode(&noise, &cuts), decode(&noise, &[]));
    }

    /// Noise that resembles frames gets further into the decoder.
    #[test]
    fn mutated_traffic_is_read_the_same_however_it_is_split(
        items in prop::collection::vec(item(), 1..10),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let mut bytes = encode(&items);
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let one_by_one: Vec<usize> = (0..bytes.len()).collect();
        let whole = decode(&bytes, &[]);
        prop_assert_eq!(&decode(&bytes, &cuts), &whole);
        prop_assert_eq!(&decode(&bytes, &one_by_one), &whole);
    }

    #[test]
    fn commands_never_panic(body in prop::collection::vec(any::<u8>(), 0..300), name in 0usize..7) {
        let names: [&[u8]; 7] = [b"READY", b"ERROR", b"PING", b"PONG", b"SUBSCRIBE", b"CANCEL", b""];
        let name = names[name];
        let _ = Command::parse(&[&[name.len() as u8], name, &body].concat());
        let _ = Command::parse(&body);
    }
}
