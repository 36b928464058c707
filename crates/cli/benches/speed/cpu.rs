//! The processor time of twenty stories, git's own taken off, beside the shell loop's.

use std::os::unix::fs::symlink;
use std::process::Command;

use nix::sys::resource::UsageWho;
use ralphloop_testkit::scene::Scene;

use crate::roles::{self, used};
use crate::story::shell_loop;
use crate::table::{Table, median};
use crate::world;

const STORIES: usize = 20;
const ROUNDS: usize = 3;

pub(crate) fn measure(table: &mut Table) {
    let (mut ours, mut loops, mut ratios, mut gits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // They are removed at the end: a file system looks long for a place among those that were just freed.
    let mut scenes = Vec::new();
    for _ in 0..ROUNDS {
        let bare = noting_git(world::scene(1000, STORIES));
        let (of_loop, git_of_loop) = spent(&bare, shell_loop(&bare, STORIES));
        let scene = noting_git(world::scene(1000, STORIES));
        let (of_run, git_of_run) = spent(&scene, world::command(&scene, "work", "text", world::TRIVIAL_GATE));
        ours.push(of_run);
        loops.push(of_loop);
        ratios.push(of_run / of_loop);
        gits.push(git_of_run / git_of_loop);
        scenes.extend([bare, scene]);
    }
    table.note("processor time of 20 stories, without git", median(ours), "ms");
    table.note("the same of the shell loop", median(loops), "ms");
    table.note("git's own processor time to the shell loop's", median(gits), "times");
    table.at_most("processor time to the shell loop's, without git", median(ratios), 2.0, "times");
}

/// The scene with a `git` on its path that notes its own processor time.
fn noting_git(mut scene: Scene) -> Scene {
    let real = std::fs::canonicalize(scene.outside("tools/git")).unwrap();
    symlink(std::env::current_exe().unwrap(), scene.outside("bin/git")).unwrap();
    scene.set_env(roles::REAL_GIT, real);
    scene.set_env(roles::GIT_NOTES, world::notes(&scene, "git"));
    scene
}

/// Milliseconds of a command and all it starts, without git's; and git's.
fn spent(scene: &Scene, mut command: Command) -> (f64, f64) {
    let before = used(UsageWho::RUSAGE_CHILDREN);
    assert!(command.status().unwrap().success());
    let all = (used(UsageWho::RUSAGE_CHILDREN) - before) as f64;
    let git: f64 = world::noted(scene, "git").iter().map(|call| call[0]).sum();
    ((all - git) / 1000.0, git / 1000.0)
}
