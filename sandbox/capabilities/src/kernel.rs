//! `kernel`: read what the kernel says of this host as a whole.

use crate::prelude::*;

/// The tables that there are: below `/proc`, but for `interfaces`, `load-averages`, `localtime`, `memory-used`, those of processes and the public keys. None has what single
/// processes are told or tell, such as arguments and variables, but for `process-arguments`, which no module has by default.
pub(crate) const TABLES: [&str; 28] = [
    "cpuinfo",
    "diskstats",
    "filesystems",
    "interfaces",
    "load-averages",
    "loadavg",
    "localtime",
    "meminfo",
    "memory-used",
    "minion.pub",
    "minion_master.pub",
    "net/arp",
    "net/dev",
    "net/ipv6_route",
    "net/netstat",
    "net/route",
    "net/tcp",
    "net/tcp6",
    "net/udp",
    "net/udp6",
    "process-arguments",
    "process-list",
    "processes",
    "stat",
    "swaps",
    "uptime",
    "version",
    "vmstat",
];

/// Those that the kernel makes of a few numbers, and whose size does not grow with the host, or hardly.
const SMALL: [&str; 8] =
    ["load-averages", "loadavg", "localtime", "meminfo", "memory-used", "swaps", "uptime", "version"];

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        ("dnsutil", Standard::Names(&["localtime"])),
        ("key", Standard::Names(&["minion.pub", "minion_master.pub"])),
        ("load", Standard::Names(&["load-averages"])),
        ("memusage", Standard::Names(&["memory-used"])),
        // Whom this host talks to (`net/tcp` and the others) is the owner's to open.
        ("network", Standard::Names(&["interfaces", "net/arp", "net/ipv6_route", "net/route"])),
        ("network_info", Standard::Names(&["net/dev"])),
        (
            "ps",
            Standard::Names(&[
                "cpuinfo",
                "diskstats",
                "filesystems",
                "meminfo",
                "net/dev",
                "process-list",
                "processes",
                "stat",
                "vmstat",
            ]),
        ),
        (
            "status",
            Standard::Names(&[
                "cpuinfo",
                "diskstats",
                "loadavg",
                "localtime",
                "meminfo",
                "net/dev",
                "net/netstat",
                "stat",
                "uptime",
                "version",
                "vmstat",
            ]),
        ),
        ("swapusage", Standard::Names(&["swaps"])),
    ],
    wrong_name,
    ..Declaration::new("kernel", "read the kernel's counters", &["brine:host/kernel"], Kind::Names)
};

fn wrong_name(name: &str) -> Option<String> {
    let known = TABLES.contains(&name) || name.contains('*');
    (!known).then(|| format!("there is no table {name:?}; there are {}", TABLES.join(", ")))
}

/// `brine:host/kernel`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelOp {
    /// Reads a table. Returns its bytes.
    Read {
        /// One of [`TABLES`].
        table: String,
    },
}

impl KernelOp {
    /// Whether reading the table takes less than waking a thread for it.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let Self::Read { table } = self;
        SMALL.contains(&table.as_str())
    }
}

impl Operation for KernelOp {
    const INTERFACE: &'static str = "brine:host/kernel";

    fn size(&self) -> Size {
        let Self::Read { table } = self;
        Size::names(table.len())
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Read { table } = &self;
        forms::text("the name of a table", table, forms::MAX_WORD, Form::Line)?;
        if !TABLES.contains(&table.as_str()) {
            return Err(malformed("the table", &format!("is none of {}", TABLES.join(", "))));
        }
        granted.permit_name(Capability::Kernel, table, format_args!("read {table}"))?;
        Ok(self)
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }

    fn is_foreseeable(&self) -> bool {
        self.is_small()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_in_grants_and_requests() {
        assert_eq!(wrong_name("loadavg"), None);
        assert_eq!(wrong_name("net/*"), None);
        for name in ["../etc/shadow", "1/environ", "self/mem", "kcore"] {
            assert!(wrong_name(name).is_some_and(|why| why.contains("there is no table")), "{name}");
        }
        let mut granted = Grants::default();
        let names = crate::Names::only(&["loadavg"]);
        granted.put(Capability::Kernel, ["brine:host/kernel"], Grant::Names(names), &crate::Host::default());
        let who = Asker { module: "m", minion_id: "id", ..Asker::default() };
        let read = |table: &str| KernelOp::Read { table: table.into() }.check(&who, &granted);
        assert!(read("loadavg").is_ok());
        assert!(matches!(read("meminfo"), Err(Refusal::NotGranted { .. })));
        assert!(matches!(read("../etc/shadow"), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn no_module_sees_the_arguments_of_processes_unasked() {
        for (module, standard) in DECLARATION.standard {
            let Standard::Names(names) = standard else { panic!("{module} has all tables") };
            assert!(!names.contains(&"process-arguments"), "{module}");
        }
    }

    #[test]
    fn only_small_tables_are_read_before_a_module_asks() {
        let foreseeable = |table: &&str| KernelOp::Read { table: (*table).into() }.is_foreseeable();
        let all: Vec<&str> = TABLES.into_iter().filter(foreseeable).collect();
        assert_eq!(all, SMALL);
    }
}
