//! A sealed publication that another implementation made (`tests/make_sealed.py`).

use bytes::Bytes;
use serde_json::Value as Json;

use super::{KEYS, hex, list, text, value_of};
use crate::auth::Credentials;
use crate::crypticle::AesKey;
use crate::ids::MinionId;
use crate::receiver::{Received, Receiver};
use crate::sealed::{SealOffer, SigningKey};

#[test]
fn a_sealed_publication_of_another_implementation_opens() {
    let vector: Json = serde_json::from_str(include_str!("../../tests/sealed.json")).unwrap();
    let offer =
        SealOffer { key: hex(&vector["sealed"], "key").try_into().unwrap(), vouch: hex(&vector["sealed"], "sig") };
    let ours = SealOffer::make(&SigningKey::of(&KEYS.master).unwrap(), &KEYS.master).unwrap();
    assert_eq!(ours, offer, "the same key follows from the RSA key, with the same word for it");

    let credentials = Credentials {
        publish_key: AesKey::from_text(text(&vector, "publish_key")).unwrap(),
        session_key: AesKey::from_text(text(&vector, "session_key")).unwrap(),
        publish_port: 4505,
        master: KEYS.master.public().clone(),
        master_is_new: false,
        offer: Some(offer),
        run: None,
    };
    let id = MinionId::new(text(&vector, "id")).unwrap();
    let bytes = |frame: &Json| Bytes::from(hex::decode(frame.as_str().unwrap()).unwrap());
    let frames: Vec<Bytes> = list(&vector, "frames").iter().map(bytes).collect();
    let received = Received::parse(&frames, id.topic().as_bytes()).unwrap().unwrap();
    let mut receiver = Receiver::new(&id, &credentials, true);
    assert_eq!(receiver.open(&received).unwrap().load, value_of(&vector["load"]));
    assert_eq!(receiver.last_serial(), vector["serial"].as_u64().unwrap());
}
