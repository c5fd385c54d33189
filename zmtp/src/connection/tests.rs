//! A connection whose peer is a socket in the same process.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::*;

const GRACE: Duration = Duration::from_secs(1);

fn pair(write_stall: Duration) -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let peer = Established { stream: Stream::Unix(ours), knows_3_1: true, input: BytesMut::new() };
    let decoder = DecoderLimits { max_message: 100, max_frames: 1, max_command: 100 };
    let config = ConnectionConfig {
        decoder,
        heartbeat: Heartbeat::OFF,
        write_stall,
        min_write_rate: 1 << 30,
        read_grace: GRACE,
        min_read_rate: 100,
    };
    (Connection::new(peer, config), theirs)
}

fn number(number: u32) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

#[tokio::test]
async fn pongs_that_nobody_takes_are_bounded() {
    let (mut connection, mut theirs) = pair(Duration::from_millis(200));
    let pings = encode_command(&Command::Ping { ttl: 0, context: number(0) }).repeat(100);
    let flood = tokio::spawn(async move { while theirs.write_all(&pings).await.is_ok() {} });
    let closed = loop {
        match connection.next(true).await {
            Ok(_) => assert!(connection.outgoing.commands() <= MAX_CONTROL),
            Err(closed) => break closed,
        }
    };
    assert!(matches!(closed, Closed::Stalled(_)), "{closed}");
    assert!(connection.outgoing.commands() <= MAX_CONTROL && connection.input.len() <= 2 * READ_LEN);
    flood.abort();
}

/// Data that a peer does not accept stays in memory, so accepting a little now and then is not enough.
#[tokio::test]
async fn who_takes_a_little_now_and_then_is_dropped() {
    let (mut connection, mut theirs) = pair(Duration::from_secs(2));
    connection.push_message(Bytes::from(vec![0; 100 << 20]));
    let drip = async {
        let mut some = vec![0; 64 << 10];
        while let Ok(1..) = theirs.read(&mut some).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let closed = async {
        let closed = loop {
            if let Err(closed) = connection.next(true).await {
                break closed;
            }
        };
        drop(connection);
        closed
    };
    let (closed, ()) = timeout(Duration::from_secs(30), async { tokio::join!(closed, drip) }).await.unwrap();
    assert!(matches!(closed, Closed::Slow(_)), "{closed}");
}

#[tokio::test]
async fn pings_that_had_to_wait_are_answered_in_order() {
    const COUNT: u32 = 100_000;
    let (mut connection, theirs) = pair(Duration::from_secs(30));
    let serving = tokio::spawn(async move { while connection.next(true).await.is_ok() {} });
    let (mut pongs, mut pings) = theirs.into_split();
    let mut sending = tokio::spawn(async move {
        for context in 0..COUNT {
            let ping = Command::Ping { ttl: 0, context: number(context) };
            pings.write_all(&encode_command(&ping)).await.unwrap();
        }
        pings
    });
    // The connection accepts no further PINGs once the PONGs are not read.
    assert!(timeout(Duration::from_millis(200), &mut sending).await.is_err());
    for context in 0..COUNT {
        let expected = encode_command(&Command::Pong { context: number(context) });
        let mut pong = vec![0; expected.len()];
        timeout(Duration::from_secs(30), pongs.read_exact(&mut pong)).await.unwrap().unwrap();
        assert_eq!(pong, expected);
    }
    serving.abort();
}

/// One read brings thousands of empty messages. Whoever runs on the same thread gets its turn between them.
#[tokio::test]
async fn many_small_messages_leave_others_their_turn() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    const TURN: usize = 256;
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let (mut connection, mut theirs) = pair(Duration::from_secs(30));
    let flood = tokio::spawn(async move { while theirs.write_all(&[0; 64 << 10]).await.is_ok() {} });
    let serving = tokio::spawn(async move {
        while connection.next(true).await.is_ok() {
            TAKEN.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut before = 0;
    while before < 100_000 {
        tokio::task::yield_now().await;
        let taken = TAKEN.load(Ordering::Relaxed);
        assert!(taken - before <= TURN, "{} in one turn", taken - before);
        before = taken;
    }
    serving.abort();
    flood.abort();
}

/// The allowance grows with what has arrived, so that a slow line that works is not cut off.
#[tokio::test]
async fn a_message_may_take_as_long_as_its_bytes_allow() {
    const STEP: Duration = Duration::from_millis(150);
    let (mut connection, mut theirs) = pair(Duration::from_secs(30));
    let sending = async {
        theirs.write_all(&[0, 100]).await.unwrap();
        let started = Instant::now();
        for _ in 0..10 {
            theirs.write_all(&[7; 10]).await.unwrap();
            tokio::time::sleep(STEP).await;
        }
        assert!(started.elapsed() > GRACE);
    };
    let (event, ()) = tokio::join!(connection.next(true), sending);
    assert!(matches!(event, Ok(Event::Message(_))));
}

#[tokio::test]
async fn time_in_which_nothing_is_read_does_not_count_for_a_message() {
    let (mut connection, mut theirs) = pair(Duration::from_secs(30));
    theirs.write_all(&[0, 10, 7]).await.unwrap();
    assert!(timeout(GRACE / 3, connection.next(true)).await.is_err());
    assert!(timeout(2 * GRACE, connection.next(false)).await.is_err());
    assert!(timeout(GRACE / 3, connection.next(true)).await.is_err());
    let closed = timeout(Duration::from_secs(30), connection.next(true)).await.unwrap();
    assert!(matches!(closed, Err(Closed::Late(100))), "{closed:?}");
}
