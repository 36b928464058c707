//! Which gates a project has, read from its manifests; nothing is run.
//!
//! The project's own folder decides. Only if nothing in it gives a gate are the folders below looked at: all of the
//! first level, in the order of their names, and if they give none, all of the second. A gate found there begins with
//! `cd FOLDER &&`.
//!
//! In one folder every language's manifest gives its gates (below, in this order). A `justfile`, else a `Makefile`,
//! gives gates only where no manifest does, since its recipes mostly call the same commands again.
//!
//! | manifest | gates |
//! |---|---|
//! | `Cargo.toml` | `cargo check`; `cargo clippy --all-targets -- -D warnings` where clippy is installed; `cargo test` |
//! | `package.json` | its scripts `typecheck`, `lint`, `test`, `build`, by the package manager in use |
//! | `pyproject.toml`, `setup.py`, … | `ruff check .`, `mypy .`, `pytest`, each only if the project configures or depends on it |
//! | `go.mod` | `go vet ./...`, `go test ./...` |
//! | `justfile` | its recipes `check`, `lint`, `test` |
//! | `Makefile` | its targets `check`, `lint`, `test` |

mod cargo;
mod go;
mod just;
mod make;
mod node;
mod python;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Gate;

/// Manifests beyond this are not read.
const MAX_MANIFEST: u64 = 4 << 20;
/// Folders that hold other people's code, or code that is not the project's own.
const NOT_THE_PROJECT: &[&str] =
    &["node_modules", "target", "vendor", "third_party", "dist", "build", "venv", "fixtures", "testdata", "examples"];

/// A gate and the manifest that it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundGate {
    /// The gate.
    pub gate: Gate,
    /// The manifest, relative to the project.
    pub from: PathBuf,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The gates, in the order in which they run.
    pub gates: Vec<FoundGate>,
    /// Manifests that could not be read, relative to the project, and why: gates may be missing.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Whether a program is installed. [`on_path`] asks the `PATH`.
pub type IsInstalled<'a> = &'a dyn Fn(&str) -> bool;

/// The gates of the project in that folder.
pub fn find(project: &Path, is_installed: IsInstalled<'_>) -> Found {
    let mut found = Found::default();
    let mut level = vec![PathBuf::new()];
    for _ in 0..=2 {
        for folder in &level {
            Place { project, folder, is_installed, found: &mut found }.look();
        }
        if !found.gates.is_empty() {
            break;
        }
        level = level.iter().flat_map(|folder| folders_in(project, folder)).collect();
    }
    found
}

/// Whether `program` can be started. A program of the Rust toolchain that rustup only stands in for counts if some
/// installed toolchain has it.
pub fn on_path(program: &str) -> bool {
    let Some(paths) = std::env::var_os("PATH") else { return false };
    let Some(folder) = std::env::split_paths(&paths).find(|dir| dir.join(program).is_file()) else { return false };
    if !program.starts_with("cargo") || !folder.join("rustup").is_file() {
        return true;
    }
    let home = std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".rustup")));
    let Some(toolchains) = home.and_then(|home| fs::read_dir(home.join("toolchains")).ok()) else { return false };
    toolchains.flatten().any(|toolchain| toolchain.path().join("bin").join(program).is_file())
}

/// Folders directly below, sorted; links and hidden ones are left out.
fn folders_in(project: &Path, folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(project.join(folder)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && !NOT_THE_PROJECT.contains(&name.as_str()))
        .collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// One folder that is looked at, and where what it gives goes.
struct Place<'a> {
    project: &'a Path,
    /// Relative to the project; empty for the project itself.
    folder: &'a Path,
    is_installed: IsInstalled<'a>,
    found: &'a mut Found,
}

impl Place<'_> {
    fn look(&mut self) {
        let before = self.found.gates.len();
        cargo::look(self);
        node::look(self);
        python::look(self);
        go::look(self);
        if self.found.gates.len() == before {
            just::look(self);
        }
        if self.found.gates.len() == before {
            make::look(self);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.project.join(self.folder).join(name).exists()
    }

    /// A manifest's text; `None` if there is none. One that is there and can't be read is noted.
    fn read(&mut self, name: &str) -> Option<String> {
        let path = self.project.join(self.folder).join(name);
        let text = match fs::metadata(&path) {
            Ok(meta) if !meta.is_file() => return None,
            Ok(meta) if meta.len() > MAX_MANIFEST => Err(io::Error::other("it is too large")),
            Ok(_) => fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => Err(e),
        };
        text.map_err(|e| self.unreadable(name, e.to_string())).ok()
    }

    fn unreadable(&mut self, name: &str, why: String) {
        self.found.unreadable.push((self.folder.join(name), why));
    }

    fn add(&mut self, name: &str, command: &str, from: &str) {
        let gate = if self.folder.as_os_str().is_empty() {
            Gate { name: name.to_owned(), command: command.to_owned() }
        } else {
            let folder = self.folder.to_string_lossy();
            Gate { name: format!("{name} ({folder})"), command: format!("cd {} && {command}", quoted(&folder)) }
        };
        self.found.gates.push(FoundGate { gate, from: self.folder.join(from) });
    }
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if word.chars().all(plain) && !word.starts_with('-') {
        return word.to_owned();
    }
    format!("'./{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
