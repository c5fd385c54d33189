//! A pillar of forty files.

use std::fmt::Write as _;
use std::path::Path;

use super::write;

/// The files that the top file names, the map that they import, and itself.
const FILES: usize = 38;

/// Writes it: half of the files for all minions, half by grains; each with some of what pillars have.
pub(super) fn write_all(root: &Path) {
    let mut top = String::from("base:\n  '*':\n");
    for n in 0..FILES / 2 {
        let _ = writeln!(top, "    - part{n:02}");
    }
    top += "  'swarm_group:*':\n    - match: grain\n";
    for n in FILES / 2..FILES {
        let _ = writeln!(top, "    - part{n:02}");
    }
    write(root, "top.sls", &top);
    write(
        root,
        "map.jinja",
        "{% set ports = {'http': 80, 'https': 443, 'ssh': 22} %}\n{% macro address(net, n) -%}10.{{ net }}.{{ n // 250 }}.{{ n % 250 }}{%- endmacro %}\n",
    );
    for n in 0..FILES {
        let text = format!(
            "{{% from 'map.jinja' import ports, address with context %}}\n\
             {{% set id = grains['id'] %}}\n\
             part{n:02}:\n  minion: {{{{ id }}}}\n  number: {n}\n  addresses:\n\
             {{% for at in range(5) %}}    - {{{{ address({n}, at * 60) }}}}\n{{% endfor %}}\
             \x20 ports:\n{{% for name, port in ports.items() %}}    {{{{ name }}}}: {{{{ port + {n} }}}}\n{{% endfor %}}\
             {{% if id.endswith('7') %}}  lucky: true\n{{% endif %}}\
             \x20 users:\n    alice: {{uid: 1{n:03}, groups: [wheel, part{n:02}], shell: /bin/bash}}\n    bob:\n      uid: 2{n:03}\n      keys:\n        - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\n\
             shared:\n  of_{n:02}: {{{{ salt['pillar.get']('part00:number', 'none') }}}}\n  list_{n:02}: [1, 2, 3]\n"
        );
        write(root, &format!("part{n:02}.sls"), &text);
    }
}
