//! `functions`: call functions of other modules, each in an instance of its own with its own module's grants.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        // It calls what it is told to, as who asks could; each function has its own module's grants.
        ("mine", Standard::All),
        // The same for whoever may call `test.*`, which is often all that users may: so only what needs no grant of its own.
        ("test", Standard::Names(&["test.*", "sys.*", "grains.*", "config.items"])),
    ],
    reported_for_all: true,
    ..Declaration::new("functions", "call functions of other modules", &["brine:host/functions"], Kind::Names)
};

/// `brine:host/functions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionsOp {
    /// Calls a function of any module in an instance of its own, with that module's grants. Answered by a map: `value`,
    /// `retcode`, `success`, and what it used of the caller's: `written`, `new_files`.
    Call {
        /// `test.ping`
        function: String,
        /// A MessagePack array.
        args: ByteBuf,
        /// A MessagePack map with text keys.
        kwargs: ByteBuf,
        /// Bytes that the caller may still write, and files that it may still make: what it calls may no more.
        written_left: u64,
        /// As above.
        new_files_left: u64,
    },
}

impl Operation for FunctionsOp {
    const INTERFACE: &'static str = "brine:host/functions";

    fn size(&self) -> Size {
        let Self::Call { function, args, kwargs, .. } = self;
        Size { names: function.len(), content: args.len() + kwargs.len(), ..Size::default() }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Call { function, args, kwargs, .. } = &self;
        forms::function(function)?;
        forms::size("the arguments", args.len().saturating_add(kwargs.len()), forms::MAX_BULK)?;
        granted.permit_name(Capability::Functions, function, format_args!("call {function}"))?;
        Ok(self)
    }
}
