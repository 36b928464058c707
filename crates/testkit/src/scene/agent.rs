//! Where the scripted agent's program is, and that it is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The built `scripted-claude`. Cargo builds binaries of dependencies only when asked, so a run of one crate's
/// tests may find none, or an old one; it is built then, once a process.
pub(super) fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(locate).clone()
}

fn locate() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/<profile>/deps/<test>
    let profile = test.parent().and_then(Path::parent).expect("tests lie in the target folder");
    let program = profile.join("scripted-claude");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    if modified(&program).is_none_or(|built| newest(&manifest.join("src")).is_none_or(|source| source > built)) {
        build(&manifest.join("Cargo.toml"), profile.parent().expect("a profile lies in the target folder"));
    }
    assert!(program.exists(), "{} was not built: run `cargo build --workspace --bins`", program.display());
    program
}

fn build(manifest: &Path, target: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--bin", "scripted-claude", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .output()
        .expect("cargo can be started from a test");
    assert!(output.status.success(), "scripted-claude: {}", String::from_utf8_lossy(&output.stderr));
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}

fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|e| e.path());
    entries.filter_map(|path| if path.is_dir() { newest(&path) } else { modified(&path) }).max()
}
