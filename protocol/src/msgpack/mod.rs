//! MessagePack in Salt's two flavours (§2).
//!
//! The network flavour is used for ZMQ payloads and Crypticle plaintext. It encodes text and bytes with the same old
//! raw codes, so a reader turns every byte string that is UTF-8 into text. The disk flavour is used for events, the job
//! cache and signatures, and distinguishes text from bytes. Readers accept both. Decoding is bounded in bytes, depth
//! and items, and allocates only for bytes that have arrived; otherwise 16 MB of nils would become 640 MB of values.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{
    DecodeError, Limits, Pick, decode, decode_disk, decode_entries, decode_picked, decode_prefix, decode_raw,
};
pub(crate) use encode::room;
pub use encode::{
    encode_disk, encode_disk_bytes_into, encode_disk_into, encode_disk_last_entry_into, encode_network,
    encode_network_bytes, encode_network_into,
};
