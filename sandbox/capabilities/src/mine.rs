//! `mine`: publish values to the mine, and read those of other minions.

use crate::names::Names;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[("mine", Standard::All)],
    ..Declaration::new("mine", "publish to the mine and read it", &["brine:host/mine"], Kind::Names)
};

/// Upper bound on the bytes of a value's name in the mine.
const MAX_MINE: usize = 256;
/// Upper bound on the names in one request.
const MAX_NAMES: usize = 1_000;
/// Upper bound on the bytes of a target.
const MAX_TARGET: usize = 64 << 10;
/// Upper bound on the bytes of the values in one request.
const MAX_VALUES: usize = 4 << 20;

/// `brine:host/mine`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MineOp {
    /// Puts a value into the mine. Returns true once the master has received it.
    Publish {
        /// The name by which other minions request it.
        name: String,
        /// One MessagePack value.
        data: ByteBuf,
    },
    /// Puts several values into the mine at once. Returns true once the master has received them.
    PublishAll {
        /// Names, each with one MessagePack value.
        values: Vec<(String, ByteBuf)>,
        /// Whether to remove all other values of this minion.
        clear: bool,
    },
    /// Removes a value.
    Delete {
        /// Its name.
        name: String,
    },
    /// Removes all values of this minion.
    Flush,
    /// Reads what other minions published. Returns a map of minions to values.
    Get {
        /// One MessagePack value: the target's expression.
        tgt: ByteBuf,
        /// The target's type: `glob`.
        tgt_type: String,
        /// The names to read.
        names: Vec<String>,
        /// Whether to return a map of names to such maps.
        by_name: bool,
    },
}

fn permit(granted: &Grants, name: &str, what: &str) -> Result<(), Refusal> {
    forms::text("the name in the mine", name, MAX_MINE, Form::Line)?;
    let of = if what == "read" { "of" } else { "to" };
    granted.permit_name(Capability::Mine, name, format_args!("{what} {name} {of} the mine"))
}

/// What concerns all values of this minion needs a grant of any name.
fn permit_all(granted: &Grants, what: &str) -> Result<(), Refusal> {
    match granted.names(Capability::Mine) {
        Names::Any => Ok(()),
        Names::Only(_) => Err(Refusal::not_granted(what, Capability::Mine, Grant::Names(Names::Any))),
    }
}

impl Operation for MineOp {
    const INTERFACE: &'static str = "brine:host/mine";

    fn size(&self) -> Size {
        match self {
            Self::Publish { name, data } => Size { names: name.len(), content: data.len(), ..Size::default() },
            Self::PublishAll { values, .. } => Size {
                names: values.iter().map(|(name, _)| name.len() + Size::NAME).sum(),
                content: values.iter().map(|(_, data)| data.len()).sum(),
                ..Size::default()
            },
            Self::Delete { name } => Size::names(name.len()),
            Self::Flush => Size::default(),
            Self::Get { tgt, tgt_type, names, .. } => {
                Size { names: tgt_type.len() + Size::list(names), content: tgt.len(), ..Size::default() }
            }
        }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        match &self {
            Self::Publish { name, data } => {
                forms::size("the value for the mine", data.len(), forms::MAX_DATA)?;
                permit(granted, name, "publish")?;
            }
            Self::PublishAll { values, clear } => {
                at_most("the values for the mine", values.len())?;
                forms::size("the values for the mine", values.iter().map(|(_, data)| data.len()).sum(), MAX_VALUES)?;
                for (name, data) in values {
                    forms::size("the value for the mine", data.len(), forms::MAX_DATA)?;
                    permit(granted, name, "publish")?;
                }
                if *clear {
                    permit_all(granted, "remove all values of this minion from the mine")?;
                }
            }
            Self::Delete { name } => permit(granted, name, "publish")?,
            Self::Flush => permit_all(granted, "remove all values of this minion from the mine")?,
            Self::Get { tgt, tgt_type, names, .. } => {
                forms::size("the target", tgt.len(), MAX_TARGET)?;
                forms::text("the type of the target", tgt_type, forms::MAX_WORD, Form::Line)?;
                at_most("the names in the mine", names.len())?;
                names.iter().try_for_each(|name| permit(granted, name, "read"))?;
            }
        }
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        let what = match self {
            Self::Publish { name, .. } => format!("publish {name} to the mine"),
            Self::Delete { name } => format!("delete {name} from the mine"),
            Self::PublishAll { .. } => "publish values to the mine".to_owned(),
            Self::Flush => "delete all that this minion has in the mine".to_owned(),
            get @ Self::Get { .. } => return Planned::Look(get),
        };
        Planned::Done(what, Answer::True)
    }
}

fn at_most(what: &str, count: usize) -> Result<(), Refusal> {
    if count > MAX_NAMES { Err(malformed(what, &format!("are more than {MAX_NAMES}"))) } else { Ok(()) }
}
