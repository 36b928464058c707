//! The power goes after any line of a journal: everything that was only in memory is lost, and the run ends all the same as
//! one that nobody disturbed.
//!
//! The repository lies on a file system of its own in a file, which then holds what a real disk would: what was written
//! out. That needs root and a loop device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ralphloop_testkit::scene::{Scene, eventually};

use crate::crash::{FLAGS, at_every_line, end_of, facts, kill_at, kind, ready_in};
use crate::world::{binary, passes, start};

/// Room for a small repository, worktrees and the file system's own log; most of it is never written.
const BYTES: u64 = 160 << 20;

/// A file system in a file, mounted where a scene has its repository.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    fn of(scene: &Scene) -> Self {
        let disk = Self { image: scene.outside("disk"), at: scene.repo() };
        fs::File::create(&disk.image).unwrap().set_len(BYTES).unwrap();
        call("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], &[&disk.image]);
        disk.mount();
        disk
    }

    fn mount(&self) {
        // Nothing is written out just because a few seconds have passed.
        call("mount", &["-o", "loop,commit=300"], &[&self.image, &self.at]);
    }

    /// What is in memory alone is gone.
    fn lose_power(&self) {
        let left = self.image.with_extension("left");
        eventually("a look at the disk while nothing is written to it", || {
            call("cp", &["--sparse=always"], &[&self.image, &left]);
            Command::new("cmp").arg("--silent").args([&self.image, &left]).status().unwrap().success()
        });
        call("umount", &[], &[&self.at]);
        fs::rename(left, &self.image).unwrap();
        self.mount();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.at).status());
    }
}

fn call(program: &str, flags: &[&str], paths: &[&Path]) {
    let output = Command::new(program).args(flags).args(paths).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether this machine lets us mount a file system: tried with a small one.
fn can_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (image, at) = (folder.path().join("disk"), folder.path().join("at"));
    fs::create_dir(&at).unwrap();
    fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
    let works = |program: &str, flags: &[&str], paths: &[&Path]| {
        Command::new(program).args(flags).args(paths).output().is_ok_and(|output| output.status.success())
    };
    works("mkfs.ext4", &["-q", "-F"], &[&image])
        && works("mount", &["-o", "loop"], &[&image, &at])
        && works("umount", &[], &[&at])
}

/// A scene on a disk of its own. The disk goes first.
fn on_a_disk() -> (Disk, Scene) {
    let scene = Scene::without_repository(binary());
    let disk = Disk::of(&scene);
    scene.init_repository();
    let scene = ready_in(scene);
    (disk, scene)
}

/// Does it for a run in the checkout, or in worktrees.
#[expect(clippy::print_stderr, reason = "what was not tested is said")]
fn the_power_goes_after_any_line(place: &[&str]) {
    if !can_mount() {
        eprintln!("SKIPPED: only root with a loop device can take the power from a disk");
        return;
    }
    let flags = [FLAGS, place].concat();
    let (undisturbed, lines) = {
        let (_disk, scene) = on_a_disk();
        start(&scene, &flags).wait().exits(0);
        (end_of(&scene), facts(&scene.journals().pop().unwrap()).len())
    };
    let hit = at_every_line(lines, |at| {
        let (disk, scene) = on_a_disk();
        call("sync", &["--file-system"], &[&scene.repo()]);
        let held = kill_at(&scene, start(&scene, &flags), at)?;
        disk.lose_power();
        let last = held.last().map(kind).unwrap_or_default();
        let place = format!("the power went after line {} of the journal, {last}", held.len());
        assert_eq!(scene.git(&["fsck", "--no-dangling", "--no-progress"]), "", "{place}");
        let said_landed = held.iter().filter(|fact| kind(fact) == "landed").count();
        // The last line may have been lost, and with it what it tells.
        assert!(scene.landed().len() + usize::from(last == "landed") >= said_landed, "{place}: a landed story is gone");
        let resume = ["resume", "--headless"];
        let outcome = if scene.journals().is_empty() { start(&scene, &flags).wait() } else { scene.run(&resume) };
        let said = outcome.output();
        assert!(outcome.code() == Some(0) || said.contains("is finished"), "{place}: {said}");
        let mut end = end_of(&scene);
        assert!(end.stories_with_kept_work.is_superset(&undisturbed.stories_with_kept_work), "{place}: {end:?}");
        end.stories_with_kept_work.clone_from(&undisturbed.stories_with_kept_work);
        assert_eq!(end, undisturbed, "{place}: {said}");
        assert!(passes(&scene, "S1") && passes(&scene, "S2"), "{place}");
        for kept in scene.kept_refs() {
            scene.git(&["show", "--stat", &kept]);
        }
        scene.git(&["gc", "--quiet"]);
        scene.nothing_runs();
        Some(last)
    });
    let telling = ["landed", "reverted", "agent_started", "checkpoint_taken"];
    assert!(telling.iter().filter(|kind| hit.contains(**kind)).count() >= 2, "{hit:?}");
}

#[test]
fn when_the_power_goes_after_any_line_of_its_journal_a_run_ends_as_if_undisturbed() {
    the_power_goes_after_any_line(&[]);
}

#[test]
fn when_the_power_goes_worktrees_are_made_whole_again_and_what_landed_is_there() {
    the_power_goes_after_any_line(&["--worktree"]);
}
