//! What is known of packages and files.

use brine_apt::arguments::Keywords;
use brine_apt::dpkg;
use brine_guest::{Result, Value, changes};

use crate::available;
use crate::host::{self, How};

/// The package that owns each file: a text for one file, a dict for several.
pub(crate) fn owner(paths: &[String]) -> Result<Value> {
    host::check_family()?;
    let mut found: Vec<(Value, Value)> = Vec::new();
    for path in paths {
        let done = host::run(&["dpkg-query", "--search", "--", path], How::default())?;
        let owner = done.stdout.split(':').next().unwrap_or_default().to_owned();
        found.retain(|(known, _)| known.text() != Some(path));
        found.push((path.clone().into(), owner.into()));
    }
    Ok(match found.len() {
        0 => "".into(),
        1 => found.remove(0).1,
        _ => Value::Dict(found),
    })
}

/// The package that owns a file; False where there is no such file, and an empty text where nobody owns it.
pub(crate) fn which(path: &str) -> Result<Value> {
    host::check_family()?;
    // What was not granted is not looked at: dpkg alone knows of it then.
    if !path.starts_with('/') || matches!(changes::look(path, true), Ok(None)) {
        return Ok(false.into());
    }
    owner(&[path.to_owned()])
}

/// The installed packages that dpkg knows by these names, or all.
fn installed(names: &[String]) -> Result<Result<Vec<String>>> {
    host::check_family()?;
    let mut argv = ["dpkg-query", "--showformat", "${db:Status-Status}\t${binary:Package}\n", "--show", "--"]
        .map(str::to_owned)
        .to_vec();
    argv.extend(names.iter().cloned());
    let done = host::run_words(argv, How::default())?;
    if done.code != 0 {
        return Ok(Err(format!("Error:  {}", done.stderr)));
    }
    let lines = done.stdout.lines().filter_map(|line| line.split_once('\t'));
    Ok(Ok(lines.filter(|(status, _)| *status == "installed").map(|(_, name)| name.to_owned()).collect()))
}

fn files(package: &str) -> Result<Vec<String>> {
    let done = host::run(&["dpkg-query", "--listfiles", "--", package], How::default())?;
    Ok(done.stdout.lines().map(str::to_owned).collect())
}

/// All files of packages.
pub(crate) fn file_list(names: &[String]) -> Result<Value> {
    let packages = match installed(names)? {
        Ok(packages) => packages,
        Err(why) => return Ok(why.into()),
    };
    let mut all = Vec::new();
    for package in &packages {
        all.extend(files(package)?);
    }
    all.sort();
    all.dedup();
    Ok(Value::dict([("errors", Value::List(Vec::new())), ("files", all.into())]))
}

/// The files of packages, by package.
pub(crate) fn file_dict(names: &[String]) -> Result<Value> {
    let packages = match installed(names)? {
        Ok(packages) => packages,
        Err(why) => return Ok(why.into()),
    };
    let mut all = Vec::new();
    for package in packages {
        let files = files(&package)?;
        all.push((package.into(), files.into()));
    }
    Ok(Value::dict([("errors", Value::List(Vec::new())), ("packages", Value::Dict(all))]))
}

/// What dpkg knows of installed packages, by package.
pub(crate) fn info_installed(names: &[String], keywords: &Keywords) -> Result<Value> {
    host::check_family()?;
    let format = dpkg::info_format();
    let mut argv: Vec<String> = ["dpkg-query", "--showformat", &format, "--show", "--"].map(str::to_owned).to_vec();
    argv.extend(names.iter().cloned());
    let done = host::run_words(argv, How::default())?;
    if done.code != 0 {
        return match keywords.is_true("failhard", true) {
            true => Err(format!("Error getting packages information: {}", done.stderr)),
            false => Ok(Value::Dict(Vec::new())),
        };
    }
    let mut all = Value::Dict(Vec::new());
    for fields in dpkg::info(&done.stdout) {
        let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let (Some(package), "i") = (field("package"), field("status").and_then(|s| s.get(1..2)).unwrap_or("i")) else {
            continue;
        };
        let mut told: Vec<(Value, Value)> = Vec::new();
        for (name, value) in &fields {
            let name = match &name[..] {
                "package" => "name",
                "origin" => "vendor",
                "section" => "group",
                "maintainer" => "packager",
                "homepage" => "url",
                "status" | "installed_size" => continue,
                other => other,
            };
            told.push((name.into(), value.clone().into()));
        }
        if let Some(license) = license(package)? {
            told.push(("license".into(), license.into()));
        }
        all.update(&Value::Dict(vec![(package.into(), Value::Dict(told))]), false);
    }
    Ok(all)
}

/// The licenses that a package's file of copyrights names.
fn license(package: &str) -> Result<Option<String>> {
    let Some(content) = host::read(&format!("/usr/share/doc/{package}/copyright"))? else { return Ok(None) };
    let content = String::from_utf8_lossy(&content);
    let mut found: Vec<&str> =
        content.lines().filter_map(|line| line.strip_prefix("License:")).map(str::trim).collect();
    found.sort_unstable();
    found.dedup();
    Ok(Some(found.join(", ")).filter(|found| !found.is_empty()))
}

/// What apt knows of packages: fields by version by package.
pub(crate) fn show(names: &[String], keywords: &Keywords) -> Result<Value> {
    if keywords.truthy("refresh") {
        available::refresh_db(&Value::None, false, None)?;
    }
    let wanted: Vec<String> = match keywords.get("filter") {
        None | Some(Value::None) => Vec::new(),
        Some(Value::List(names)) => names.iter().map(|name| name.to_text().to_lowercase()).collect(),
        Some(text) => text.to_text().to_lowercase().split(',').map(|name| name.trim().to_owned()).collect(),
    };
    if names.is_empty() { Ok(Value::Dict(Vec::new())) } else { available::show(names, &wanted) }
}
