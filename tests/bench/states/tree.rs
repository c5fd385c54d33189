//! The SLS files: a suite as formulas have it, with a map that merges defaults, what is of a family, and the pillar.

use std::fmt::Write as _;
use std::path::Path;

/// States of the suite: eleven of each part, and two for all.
pub(super) const CHUNKS: usize = PARTS * 11 + 2;
const PARTS: usize = 12;
/// Files of each part.
const FILES: usize = 6;
/// Files that are in order.
pub(super) const MANAGED: usize = 500;
/// States that do nothing.
pub(super) const NOPS: usize = 200;

const MAP: &str = r#"{%- import_yaml "suite/defaults.yaml" as defaults %}
{%- import_yaml "suite/osfamilymap.yaml" as osfamilymap %}
{%- set family = salt["grains.filter_by"](osfamilymap, grain="os_family") or {} %}
{%- set suite = salt["slsutil.merge"](defaults["suite"], family) %}
{%- set suite = salt["slsutil.merge"](suite, salt["pillar.get"]("suite", {})) %}
{%- for name, part in suite.parts.items() %}
{%- do part.update({"names": [], "user": part.get("user", name)}) %}
{%- for key in part.options %}
{%- if key.startswith("option_") %}{%- do part.names.append(key|replace("option_", "")) %}{%- endif %}
{%- endfor %}
{%- endfor %}
"#;

const MACROS: &str = r#"{%- macro option(name, value) -%}
{%- if value is mapping -%}
{%- for key, inner in value|dictsort %}
{{ option(name ~ "." ~ key, inner) }}
{%- endfor -%}
{%- elif value is string -%}{{ name }} = "{{ value }}"
{%- elif value is iterable -%}{{ name }} = {{ value|join(", ") }}
{%- else -%}{{ name }} = {{ value }}
{%- endif -%}
{%- endmacro %}
"#;

const PART: &str = r#"{%- from "suite/map.jinja" import suite with context %}
{%- from "suite/macros.jinja" import option with context %}
{%- set part = suite.parts["PART"] %}
include:
  - suite.common
PART-package:
  pkg.installed:
    - pkgs: {{ part.packages|json }}
PART-user:
  user.present:
    - name: {{ part.user }}
    - system: True
    - require: [{pkg: PART-package}]
PART-folder:
  file.directory:
    - name: /etc/PART/conf.d
    - makedirs: True
    - require: [{user: PART-user}, {file: suite-folder}]
{%- for name in part.names %}
PART-{{ name }}:
  file.managed:
    - name: /etc/PART/conf.d/{{ name }}.conf
    - mode: '{{ part.get("mode", "0644") }}'
    - contents: |
        {{ option(name, part.options["option_" ~ name])|indent(8) }}
    - require: [{file: PART-folder}]
    - watch_in: [{service: PART-service}]
{%- endfor %}
PART-reload:
  cmd.run:
    - name: PART --check
    - onchanges: [{file: /etc/PART/conf.d/*}]
    - require_in: [{service: PART-service}]
PART-service:
  service.running:
    - name: PART
    - enable: True
"#;

/// The files by their path, the last ones with files below `folder`.
pub(super) fn files(folder: &Path) -> Vec<(String, String)> {
    let folder = folder.display();
    let names: Vec<String> = (0..PARTS).map(|n| format!("part{n:02}")).collect();
    let mut defaults = String::from("suite:\n  folder: /etc/suite\n  parts:\n");
    let mut families = String::new();
    for name in &names {
        let _ = writeln!(defaults, "    {name}:\n      packages: [{name}, {name}-utils]\n      options:");
        for n in 0..FILES {
            let value = match n % 4 {
                0 => n.to_string(),
                1 => format!("'text of {n}'"),
                2 => format!("[a{n}, b{n}, c{n}]"),
                _ => format!("{{enabled: true, limit: {n}}}"),
            };
            let _ = writeln!(defaults, "        option_{n:02}: {value}");
        }
    }
    for family in ["Debian", "RedHat", "Suse", "Arch"] {
        let _ = writeln!(families, "{family}:\n  parts:");
        for name in &names {
            let _ = writeln!(
                families,
                "    {name}:\n      packages: [{name}-{0}]\n      options: {{option_01: '{family}'}}",
                family.to_lowercase()
            );
        }
    }
    let mut all = vec![
        ("suite/defaults.yaml".to_owned(), defaults),
        ("suite/osfamilymap.yaml".to_owned(), families),
        ("suite/map.jinja".to_owned(), MAP.to_owned()),
        ("suite/macros.jinja".to_owned(), MACROS.to_owned()),
        (
            "suite/common.sls".to_owned(),
            "{%- from \"suite/map.jinja\" import suite with context %}\nsuite-folder:\n  file.directory: [name: {{ suite.folder }}]\n"
                .to_owned(),
        ),
        (
            "suite/init.sls".to_owned(),
            format!(
                "include:\n{}suite-done:\n  test.nop:\n    - require: [{{sls: suite.{}}}]\n",
                names.iter().map(|name| format!("  - suite.{name}\n")).collect::<String>(),
                names[PARTS - 1]
            ),
        ),
        (
            "managed.sls".to_owned(),
            format!(
                "{{% for n in range({MANAGED}) %}}\nf{{{{ n }}}}:\n  file.managed:\n    - name: {folder}/f{{{{ n }}}}\n    - mode: '0644'\n    \
                 - contents: |\n        # file {{{{ n }}}}\n        option = {{{{ n * 7 }}}}\n{{% endfor %}}\n"
            ),
        ),
        ("nops.sls".to_owned(), format!("{{% for n in range({NOPS}) %}}\nn{{{{ n }}}}: test.nop\n{{% endfor %}}\n")),
    ];
    all.extend(names.iter().map(|name| (format!("suite/{name}.sls"), PART.replace("PART", name))));
    all
}
