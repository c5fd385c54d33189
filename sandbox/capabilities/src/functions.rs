//! `functions`: call functions of other modules, each in an instance of its own with its own module's grants.

use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        ("archive", Standard::Least),
        // Its states are made of these functions, which have the grant of their own module.
        ("beacon", Standard::Names(&["beacons.*"])),
        // `cmd.script` runs templates that were rendered; what they call runs with the grants of its own module.
        ("cmd", Standard::Names(&["file.apply_template_on_contents"])),
        ("cron", Standard::Least),
        // A serial number is kept in a grain, and name servers are asked by the program `dig`.
        ("dnsutil", Standard::Names(&["grains.setval", "dig.*"])),
        // Templates of files call what the owner grants.
        ("file", Standard::Least),
        // Its state is made of this function, which has the grants of its own module.
        ("firewall", Standard::Names(&["network.connect"])),
        // Maps are rendered there, with the grants of its own module.
        ("jinja", Standard::Names(&["slsutil.renderer"])),
        // Its file is changed by it, with the grants of its own module.
        ("logrotate", Standard::Names(&["file.replace"])),
        // `loop.until` calls what the owner grants it, and asks whether there is such a function.
        ("loop", Standard::Names(&["sys.list_functions"])),
        // `mine` calls functions that its caller names and may call itself; each runs with the grants of its own
        // module.
        ("mine", Standard::All),
        // `module.run` of a state calls what the owner grants it.
        ("module", Standard::Least),
        ("mount", Standard::Least),
        ("pkg", Standard::Least),
        ("pkgrepo", Standard::Least),
        ("postgres_cluster", Standard::Least),
        ("postgres_database", Standard::Least),
        ("postgres_extension", Standard::Least),
        ("postgres_group", Standard::Least),
        ("postgres_initdb", Standard::Least),
        ("postgres_language", Standard::Least),
        ("postgres_privileges", Standard::Least),
        ("postgres_schema", Standard::Least),
        ("postgres_tablespace", Standard::Least),
        ("postgres_user", Standard::Least),
        // Its state is made of this function, which has the grants of its own module.
        ("process", Standard::Names(&["ps.pkill"])),
        // `schedule.move` and `copy` ask other minions by it.
        ("schedule", Standard::Names(&["publish.publish"])),
        // Templates call what the owner grants.
        ("slsutil", Standard::Least),
        // `state` does so for the templates of SLS files.
        ("state", Standard::All),
        // The same for callers of `test.*`, which is often all that users may call: so only functions that need no
        // grant of their own.
        ("test", Standard::Names(&["test.*", "sys.*", "grains.*", "config.items"])),
        // Packages are installed by these, with the grants of their own module.
        ("virtualenv", Standard::Names(&["pip.freeze", "pip.install", "pip.version"])),
    ],
    reported_for_all: true,
    ..Declaration::new("functions", "call functions of other modules", &["brine:host/functions"], Kind::Names)
};

/// `brine:host/functions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionsOp {
    /// Calls a function of any module in a separate instance with that module's grants. Returns a map: `value`,
    /// `retcode`, `success`, and the usage to subtract from the caller's limits: `written`, `new_files`.
    Call {
        /// `test.ping`
        function: String,
        /// A MessagePack array.
        args: ByteBuf,
        /// A MessagePack map with text keys.
        kwargs: ByteBuf,
        /// Bytes that the caller may still write. They bound the called function.
        written_left: u64,
        /// Files that the caller may still create.
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

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}
