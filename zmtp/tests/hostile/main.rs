//! Peers that violate the protocol: each loses its connection, and no other peer is affected.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod crowds;
mod grammar;
mod unfinished;
mod unread;

use brine_zmtp::Router;
use bytes::Bytes;
use common::*;

/// The end of every test: an honest peer is served.
async fn still_serves(router: &mut Router) {
    let mut honest = Raw::peer(router.endpoint(), "REQ", 1).await;
    honest.send(b"\x01\0\0\x06honest").await;
    let incoming = loop {
        let incoming = request(router).await;
        if incoming.payload == "honest" {
            break incoming;
        }
    };
    incoming.reply.send(Bytes::from("reply")).await.unwrap();
    assert_eq!(honest.message().await, frames(&["", "reply"]));
}

fn long_frame(flags: u8, length: u64) -> Vec<u8> {
    [&[flags | 2][..], &length.to_be_bytes()].concat()
}
