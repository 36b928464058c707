//! Finds what a scene has started, by a mark in the environment that every child inherits.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks everything started in a scene; its value is the scene's folder.
pub const MARK: &str = "TESTKIT_SCENE";

/// Process ids with the mark of this scene. Zombies have no environment and do not count.
pub fn alive_with_mark(scene: &Path) -> Vec<u32> {
    let wanted = format!("{MARK}={}", scene.display()).into_bytes();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.split(|&b| b == 0).any(|entry| entry == wanted))
        })
        .collect()
}

/// Kills everything with the mark.
pub(super) fn end_with_mark(scene: &Path) {
    for pid in alive_with_mark(scene) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let _gone_already = kill_process(pid, Signal::KILL);
        }
    }
}
