//! One page of a list. A cursor is the place of the page's last item in the order of the list, so that items that come
//! and go between two pages neither repeat nor hide others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, map};

use super::Refusal;
use super::args::{Args, wrong};

/// Items of a page, without `limit`.
const LIMIT: usize = 100;
/// Bound on the items of a page.
const LIMIT_MAX: usize = 500;
/// Between the two texts of a place. Neither has it: ids, versions and names are printable.
const BETWEEN: char = '\0';

/// A place in a list: what it is sorted by, then the name.
pub(super) type Place = (String, String);

/// The page that is asked for.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) limit: usize,
    /// The last item of the page before.
    pub(super) after: Option<Place>,
}

impl Page {
    /// Reads `limit` and `cursor`.
    pub(super) fn new(args: &Args) -> Result<Self, Refusal> {
        let limit = args.count("limit", 1, LIMIT_MAX)?.unwrap_or(LIMIT);
        let read = |cursor: &str| {
            let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
            let (sorted, name) = text.split_once(BETWEEN)?;
            Some((sorted.to_owned(), name.to_owned()))
        };
        let after = args.text("cursor")?;
        let after = after.map(|cursor| read(cursor).ok_or_else(|| wrong("cursor", "the next of a page before")));
        Ok(Self { limit, after: after.transpose()? })
    }

    /// Returns this page of a sorted list, and the place of its last item if others follow.
    pub(super) fn of<T>(
        &self,
        sorted: Vec<T>,
        backwards: bool,
        place: impl Fn(&T) -> Place,
    ) -> (Vec<T>, Option<Place>) {
        let is_after = |item: &T| {
            self.after.as_ref().is_none_or(|after| {
                let here = place(item);
                if backwards { here < *after } else { here > *after }
            })
        };
        let mut rest = sorted.into_iter().filter(is_after);
        let items: Vec<T> = rest.by_ref().take(self.limit).collect();
        let next = rest.next().and(items.last()).map(place);
        (items, next)
    }
}

/// Bound on the bytes of the items of a page whose content minions wrote.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Makes the entries of an answer that is a page, with fewer items if they are large.
pub(super) fn bounded(items: Vec<(Place, Value)>, next: Option<&Place>) -> Value {
    let (mut kept, mut last, mut room) = (Vec::new(), None, PAGE_BYTES_MAX);
    for (place, item) in items {
        let bytes = msgpack::encode_disk(&item).len();
        if bytes > room && !kept.is_empty() {
            return entries(kept, last.as_ref());
        }
        room = room.saturating_sub(bytes);
        kept.push(item);
        last = Some(place);
    }
    entries(kept, next)
}

/// Returns the first values that have no more bytes than this together.
pub(super) fn within(values: impl Iterator<Item = Value>, mut bytes: usize) -> Value {
    let mut kept = Vec::new();
    for value in values {
        let Some(rest) = bytes.checked_sub(msgpack::encode_disk(&value).len()) else { break };
        bytes = rest;
        kept.push(value);
    }
    Value::Array(kept)
}

/// Makes the entries of an answer that is a page.
pub(super) fn entries(items: Vec<Value>, next: Option<&Place>) -> Value {
    let next = next.map(|(sorted, name)| URL_SAFE_NO_PAD.encode(format!("{sorted}{BETWEEN}{name}")));
    map([("items", Value::Array(items)), ("next", next.map_or(Value::Nil, Value::from))])
}
