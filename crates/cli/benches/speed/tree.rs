//! Checkpoint and revert on a large tree, beside `git status` of it.

use std::fs;
use std::time::{Duration, Instant};

use ralphloop_engine::git::Repository;
use ralphloop_engine::process::{Spawner, SupervisorProgram};
use ralphloop_testkit::scene::Scene;

use crate::table::{Table, median, ms};
use crate::world::binary;

const TRACKED: usize = 100_000;
const UNTRACKED: usize = 5_000;
/// Files of a mebibyte in the ignored folder.
const IGNORED: usize = 1_000;
const ROUNDS: usize = 9;

pub(crate) fn measure(table: &mut Table) {
    let scene = large();
    let spawner = Spawner::new(SupervisorProgram { program: binary(), args: vec!["__supervise".into()] });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let place = ralphloop_engine::start::open(&scene.repo(), spawner, Duration::from_mins(1)).await.unwrap();
        rounds(table, &scene, &place.repository).await;
    });
}

async fn rounds(table: &mut Table, scene: &Scene, repository: &Repository) {
    // Warm: the first checkpoint reads the untracked files.
    let first = Instant::now();
    let checkpoint = repository.checkpoint("warm").await.unwrap();
    table.note("first checkpoint of 100,000 files", ms(first.elapsed()), "ms");
    repository.drop_checkpoint(&checkpoint).await.unwrap();
    let (mut statuses, mut checkpoints, mut reverts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut checkpoint_ratios, mut revert_ratios) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        scene.git(&["status", "--porcelain"]);
        let status = ms(began.elapsed());
        let began = Instant::now();
        let checkpoint = repository.checkpoint(&format!("c{round}")).await.unwrap();
        let taken = ms(began.elapsed());
        for file in 0..20 {
            scene.write(&format!("d{file}/f1"), format!("changed {round}\n"));
            scene.write(&format!("d{file}/new"), "new\n");
        }
        let began = Instant::now();
        repository.revert(&checkpoint).await.unwrap();
        let reverted = ms(began.elapsed());
        repository.drop_checkpoint(&checkpoint).await.unwrap();
        statuses.push(status);
        checkpoints.push(taken);
        reverts.push(reverted);
        checkpoint_ratios.push(taken / status);
        revert_ratios.push(reverted / status);
    }
    assert_eq!(scene.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    table.note("git status of 100,000 files", median(statuses), "ms");
    table.note("checkpoint", median(checkpoints), "ms");
    table.note("revert of 40 files", median(reverts), "ms");
    table.at_most("checkpoint to git status", median(checkpoint_ratios), 2.0, "times");
    table.at_most("revert to git status", median(revert_ratios), 2.0, "times");
}

/// 100,000 tracked files, 5,000 untracked ones, and an ignored folder of a gibibyte.
fn large() -> Scene {
    let scene = Scene::new(binary());
    for folder in 0..TRACKED / 100 {
        fs::create_dir_all(scene.path(&format!("d{folder}"))).unwrap();
        for file in 0..100 {
            fs::write(scene.path(&format!("d{folder}/f{file}")), format!("file {folder} {file}\n")).unwrap();
        }
    }
    scene.write(".gitignore", "ignored/\n");
    scene.commit_all("All");
    for file in 0..UNTRACKED {
        scene.write(&format!("loose{}/u{}", file / 100, file % 100), format!("loose {file}\n"));
    }
    for file in 0..IGNORED {
        scene.write(&format!("ignored/i{}/f{file}", file / 50), "");
        // Its size counts, and nobody reads it.
        fs::File::options()
            .write(true)
            .open(scene.path(&format!("ignored/i{}/f{file}", file / 50)))
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
    }
    scene.git(&["status"]);
    scene
}
