//! The project's own rules, checked over its manifests and sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Lines of one source file, at most.
const LONGEST_FILE: usize = 800;

/// What no pure crate may have anywhere in its closure: a runtime, a network, a process, a terminal, randomness.
const IMPURE: &[&str] = &[
    "async-std",
    "crossterm",
    "duct",
    "fastrand",
    "getrandom",
    "gix",
    "hyper",
    "libc",
    "mio",
    "nix",
    "rand",
    "reqwest",
    "rustix",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
    "tokio-util",
    "ureq",
    "walkdir",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// For this platform alone: what other ones need may not even have been downloaded.
fn metadata() -> Value {
    let compiler = Command::new("rustc").arg("-vV").current_dir(root()).output().unwrap();
    let compiler = String::from_utf8(compiler.stdout).unwrap();
    let platform = compiler.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", platform])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// Our crates, each by its name.
fn ours(metadata: &Value) -> BTreeMap<&str, &Value> {
    let packages = list(&metadata["packages"]).iter().filter(|package| package["source"].is_null());
    packages.map(|package| (text(&package["name"]), package)).collect()
}

/// The names of what a crate's manifest depends on, those for its tests left out.
fn dependencies(package: &Value) -> BTreeSet<&str> {
    let used = list(&package["dependencies"]).iter().filter(|dependency| dependency["kind"] != "dev");
    used.map(|dependency| text(&dependency["name"])).collect()
}

/// Every package that is built into one, by name.
fn closure<'m>(metadata: &'m Value, name: &str) -> BTreeSet<&'m str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node)).collect();
    let names: BTreeMap<&str, &str> =
        list(&metadata["packages"]).iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let mut open: Vec<&str> = names.iter().filter(|(_, known)| **known == name).map(|(id, _)| *id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in list(&nodes[id]["deps"]) {
            // Build scripts and macros run on the builder's machine, tests in none of its users'.
            let built_in =
                list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null() && kind["target"].is_null());
            if built_in {
                open.push(text(&dependency["pkg"]));
            }
        }
    }
    seen.into_iter().map(|id| names[id]).collect()
}

/// The rows of the table below a heading of ARCHITECTURE.md, cells trimmed.
fn table(heading: &str) -> Vec<Vec<String>> {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = document.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The folder of a crate, and all its Rust files below `parts`.
fn rust_files(package: &Value, parts: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(text(&package["manifest_path"])).parent().unwrap().to_owned();
    let mut found = Vec::new();
    for part in parts.iter().map(|part| folder.join(part)).filter(|part| part.is_dir()) {
        sources(&part, &mut found);
    }
    found
}

#[test]
fn the_arrows_between_the_crates_are_those_of_the_map() {
    let metadata = metadata();
    let short = |name: &str| name.trim_start_matches("ralphloop-").to_owned();
    let crates = ours(&metadata);
    let named: BTreeSet<String> = table("The map").iter().map(|row| short(row[0].split('`').nth(1).unwrap())).collect();
    assert_eq!(crates.keys().map(|name| short(name)).collect::<BTreeSet<_>>(), named, "crates and rows of the map");
    let want = BTreeMap::from([
        ("core", vec![]),
        ("spec", vec!["core"]),
        ("agent", vec!["core"]),
        ("engine", vec!["agent", "core", "spec"]),
        ("builtin", vec!["agent", "engine"]),
        ("tui", vec!["core"]),
        ("ralphloop", vec!["agent", "builtin", "core", "engine", "spec", "tui"]),
        ("testkit", vec![]),
    ]);
    for (name, package) in &crates {
        let name = short(name);
        let uses: Vec<String> =
            dependencies(package).into_iter().filter(|used| crates.contains_key(used)).map(short).collect();
        assert_eq!(uses, want[name.as_str()], "what {name} uses");
    }
}

#[test]
fn nothing_impure_is_built_into_a_pure_crate() {
    let metadata = metadata();
    for name in ["ralphloop-core", "ralphloop-spec", "ralphloop-agent"] {
        let built_in = closure(&metadata, name);
        assert!(built_in.len() > 1, "{name}: {built_in:?}");
        let impure: Vec<&&str> = built_in.iter().filter(|used| IMPURE.contains(used)).collect();
        assert!(impure.is_empty(), "{name} has {impure:?} in it");
    }
    assert!(closure(&metadata, "ralphloop-engine").contains("tokio"), "the search itself finds what is there");
}

#[test]
fn the_program_is_built_without_what_only_tests_need() {
    assert!(!closure(&metadata(), "ralphloop").contains("ralphloop-testkit"));
}

#[test]
fn every_dependency_of_a_crate_is_named_in_its_sources() {
    let metadata = metadata();
    for (name, package) in ours(&metadata) {
        let files = rust_files(package, &["src", "tests", "examples", "benches"]);
        let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        for dependency in list(&package["dependencies"]) {
            let used = text(&dependency["name"]).replace('-', "_");
            let named = [format!("{used}::"), format!("use {used};"), format!("extern crate {used}")];
            assert!(named.iter().any(|form| code.contains(form)), "{name} depends on {used} and does not use it");
        }
    }
}

#[test]
fn every_dependency_of_the_workspace_is_used_by_a_crate_and_has_its_reason_in_the_table() {
    let metadata = metadata();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, section) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let section = section.split("\n[").next().unwrap();
    let listed: BTreeSet<&str> =
        section.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.trim()).collect();
    let crates = ours(&metadata);
    let used: BTreeSet<&str> = crates
        .values()
        .flat_map(|package| list(&package["dependencies"]))
        .map(|dependency| text(&dependency["name"]))
        .collect();
    assert_eq!(listed, used, "what the workspace lists, and what its crates use");
    let explained: BTreeSet<String> = table("Dependencies")
        .iter()
        .flat_map(|row| row[0].split(", ").map(|name| name.trim_end_matches(" (tests)").to_owned()).collect::<Vec<_>>())
        .collect();
    let foreign: BTreeSet<String> =
        used.iter().filter(|name| !crates.contains_key(*name)).map(|name| (*name).to_owned()).collect();
    assert_eq!(explained, foreign, "the table of ARCHITECTURE.md, and what is used");
}

#[test]
fn no_source_file_is_too_long_to_read() {
    let metadata = metadata();
    for package in ours(&metadata).values() {
        for file in rust_files(package, &["src"]) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            assert!(lines <= LONGEST_FILE, "{} has {lines} lines; split it by subject", file.display());
        }
    }
}

#[test]
fn nothing_in_the_tree_speaks_of_the_machine_that_it_was_written_on() {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    if !output.status.success() {
        return; // an archive of the sources has no list of its files
    }
    // Put together here, so that this file does not contain them itself.
    let words = [["/work", "/"].concat(), ["/root", "/"].concat()];
    let mut found = Vec::new();
    for path in String::from_utf8(output.stdout).unwrap().split('\0').filter(|path| !path.is_empty()) {
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            found.extend(
                words.iter().filter(|word| line.contains(*word)).map(|word| format!("{path}:{}: {word}", number + 1)),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
