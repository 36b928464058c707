//! Landing: what is committed, what is not, and that a refusal leaves everything as it was.
use std::path::PathBuf;

use ralphloop_engine::git::{Checkpoint, HoldBack, LandError, Landed, Landing, Repository, SnapshotLimits};

use tokio_util::sync::CancellationToken;

use crate::fingerprint;
use crate::world::World;

const MESSAGE: &str =
    "feat(S-1): the first story\n\nRalphloop-Run: run-1\nRalphloop-Story: S-1\nRalphloop-Attempt: 1\n";

pub(crate) fn landing() -> Landing {
    Landing {
        message: MESSAGE.to_owned(),
        kept_under: "refs/ralphloop/run-1/s-1/1".to_owned(),
        write_back: Vec::new(),
        hold_back: HoldBack::default(),
        guard: None,
        seal: None,
        walls: None,
        allow_empty: false,
        as_looked_at: false,
        stop: CancellationToken::new(),
    }
}

async fn begin(world: &World) -> (Repository, Checkpoint) {
    let repository = world.open().await;
    let checkpoint = repository.checkpoint("run-1-S-1-1").await.unwrap();
    (repository, checkpoint)
}

async fn lands(world: &World, agent: &str) -> Landed {
    let (repository, checkpoint) = begin(world).await;
    world.sh(agent);
    repository.land(&checkpoint, &landing()).await.unwrap()
}

/// `git status` without what the user had lying about.
fn status(world: &World) -> String {
    world.sh("git status --porcelain | grep -v '^?? note.txt' || true")
}

fn files(world: &World) -> String {
    world.sh("git diff --name-only HEAD~1 HEAD | tr '\\n' ' '")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_inspected_just_now_lands_whole_without_a_second_walk() {
    let world = World::new();
    let (repository, checkpoint) = begin(&world).await;
    world.sh(
        "echo new >new.txt; echo x >>a.txt; rm dir/b.txt; mkdir -p made; echo m >made/m; echo l >x.log; git add a.txt",
    );
    let inspected = repository.inspect(&checkpoint).await.unwrap();
    assert!(!inspected.changes.is_empty());
    let landed = repository.land(&checkpoint, &Landing { as_looked_at: true, ..landing() }).await.unwrap();
    assert_eq!(files(&world), "a.txt dir/b.txt made/m new.txt ");
    assert_eq!(status(&world), "");
    assert!(world.exists("note.txt") && world.exists("x.log"));
    assert_eq!(world.sh("git rev-parse HEAD").trim(), landed.commit.as_str());
    assert_eq!(repository.tree_id().await.unwrap(), inspected.tree);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_attempt_changed_is_one_commit_and_the_users_files_are_in_none() {
    let world = World::new();
    let landed =
        lands(&world, "echo new >new.txt; echo x >>a.txt; rm dir/b.txt; echo l >x.log; chmod +x dir/deep/c.txt").await;
    assert_eq!(files(&world), "a.txt dir/b.txt dir/deep/c.txt new.txt ");
    assert_eq!(status(&world), "");
    assert!(world.exists("note.txt") && world.exists(".env") && world.exists("x.log"));
    assert_eq!(world.sh("git rev-parse HEAD").trim(), landed.commit.as_str());
    assert_eq!(world.sh("git log -1 --format=%B").trim(), MESSAGE.trim());
    assert_eq!(landed.kept, None);
    assert!(landed.notes.is_empty(), "{:?}", landed.notes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agents_own_commits_become_the_stories_one_and_stay_reachable() {
    let world = World::new();
    let base = world.sh("git rev-parse HEAD");
    let landed = lands(
        &world,
        "echo 1 >one.txt; git add -A; git commit -qm 'agent: part'; echo 2 >two.txt; echo 3 >three.txt; git add three.txt",
    )
    .await;
    assert_eq!(world.sh("git rev-parse HEAD~1"), base);
    assert_eq!(files(&world), "one.txt three.txt two.txt ");
    assert_eq!(status(&world), "");
    assert!(!world.sh("git log --format=%s").contains("part"));
    let kept = landed.kept.unwrap();
    assert!(world.sh(&format!("git log --format=%s {}", kept.reference)).contains("agent: part"));
    assert!(world.exists("note.txt") && !world.sh("git ls-tree -r --name-only HEAD").contains("note.txt"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_on_another_branch_lands_on_the_users() {
    let world = World::new();
    lands(&world, "git checkout -q -b agents; echo 1 >one.txt; git add one.txt; git commit -qm agent").await;
    assert_eq!(world.sh("git symbolic-ref HEAD").trim(), "refs/heads/main");
    assert_eq!(files(&world), "one.txt ");
    assert!(!world.sh("git branch").contains("agents"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_refuses_leaves_work_index_and_head_and_its_words_are_told() {
    let world = World::new();
    world.sh("printf '#!/bin/sh\\ngit diff --cached --name-only | grep -q bad && { echo HOOK-SAYS-NO; exit 1; }\\nexit 0\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let (repository, checkpoint) = begin(&world).await;
    world.sh("echo bad >bad.txt; echo x >>a.txt");
    let before = fingerprint::of(&world);
    let mut landing = landing();
    landing.write_back.push((PathBuf::from("dir/b.txt"), b"ticked".to_vec()));
    match repository.land(&checkpoint, &landing).await {
        Err(LandError::HookRefused { output }) => assert!(output.contains("HOOK-SAYS-NO"), "{output}"),
        other => panic!("{other:?}"),
    }
    let after = fingerprint::of(&world);
    let differences: Vec<_> = before
        .difference(&after)
        .into_iter()
        .filter(|line| !line.starts_with("dir") && !line.starts_with(':') && !line.starts_with("git ls-files --stage"))
        .collect();
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(world.read("dir/b.txt"), "two\n", "the spec is as it was");
    world.sh("rm bad.txt");
    repository.land(&checkpoint, &landing).await.unwrap();
    assert_eq!(files(&world), "a.txt dir/b.txt ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_hook_does_not_run() {
    let world = World::new();
    let landed = lands(
        &world,
        "echo x >>a.txt; printf '#!/bin/sh\\nexit 1\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config user.name Agent",
    )
    .await;
    assert_eq!(world.sh("git log -1 --format=%an").trim(), "Test");
    assert_eq!(landed.commit.as_str(), world.sh("git rev-parse HEAD").trim());
    assert!(!world.exists(".git/hooks/pre-commit"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_rewrites_is_looked_at_and_told() {
    let world = World::new();
    world.sh("printf '#!/bin/sh\\necho formatted >>a.txt; git add a.txt\\necho loose >>dir/b.txt\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let landed = lands(&world, "echo x >>a.txt").await;
    assert_eq!(landed.changed_by_hooks, [PathBuf::from("a.txt")]);
    assert_eq!(landed.left_dirty, [PathBuf::from("dir/b.txt")]);
    assert!(world.sh("git show HEAD:a.txt").contains("formatted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_or_a_signer_that_hangs_is_stopped() {
    for setup in [
        "printf '#!/bin/sh\\necho $$ >$W/pid; exec sleep 999\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "printf '#!/bin/sh\\necho $$ >$W/pid; exec sleep 999\\n' >$W/gpg; chmod +x $W/gpg; git config commit.gpgsign true; git config gpg.program $W/gpg; git config user.signingkey X",
    ] {
        let world = World::new();
        world.sh(setup);
        let git = world.git_with_timeout(std::time::Duration::from_secs(2)).env("W", world.beside(""));
        let repository = Repository::open(&world.top, git, SnapshotLimits::default()).await.unwrap();
        let checkpoint = repository.checkpoint("c").await.unwrap();
        world.sh("echo x >>a.txt");
        let head = world.sh("git rev-parse HEAD");
        let refused = repository.land(&checkpoint, &landing()).await;
        assert!(matches!(refused, Err(LandError::TimedOut { .. })), "{refused:?}");
        assert_eq!(world.sh("git rev-parse HEAD"), head);
        assert!(!world.exists(".git/index.lock"));
        assert_eq!(world.read("a.txt"), "one and more\nx\n", "the work is in the tree");
        let pid = std::fs::read_to_string(world.beside("pid")).unwrap();
        assert!(!PathBuf::from(format!("/proc/{}", pid.trim())).exists(), "what hung is gone");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signer_that_fails_is_told_as_such() {
    let world = World::new();
    world.sh("printf '#!/bin/sh\\nexit 2\\n' >$W/gpg; chmod +x $W/gpg; git config commit.gpgsign true; git config gpg.program $W/gpg; git config user.signingkey X");
    let (repository, checkpoint) = begin(&world).await;
    world.sh("echo x >>a.txt");
    let refused = repository.land(&checkpoint, &landing()).await;
    assert!(matches!(refused, Err(LandError::NotSigned { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_dumps_and_dependency_trees_are_held_back_kept_and_out_of_the_way() {
    let world = World::new();
    let landed = lands(
        &world,
        "echo ok >ok.txt; echo K=sk-FAKE >app.env; printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\nFAKE\\n' >key.txt; mkdir -p node_modules/p; echo x >node_modules/p/i.js; head -c 12000000 /dev/zero >core.bin",
    )
    .await;
    assert_eq!(files(&world), "ok.txt ");
    assert!(!world.sh("git log -p HEAD").contains("sk-FAKE"));
    let held: Vec<_> = landed.held_back.iter().map(|held| held.path.display().to_string()).collect();
    assert_eq!(held, ["app.env", "core.bin", "key.txt", "node_modules/p/i.js"]);
    assert_eq!(status(&world), "", "the next story starts in a clean tree");
    assert!(!world.exists("node_modules"));
    let kept = landed.kept.unwrap();
    assert_eq!(world.sh(&format!("git show {}:app.env", kept.reference)), "K=sk-FAKE\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_users_untracked_file_is_not_committed_even_if_the_agent_did() {
    let world = World::new();
    let landed = lands(&world, "echo agent >>note.txt; git add -A; git commit -qm all; echo x >>a.txt").await;
    assert_eq!(files(&world), "a.txt ");
    assert_eq!(world.read("note.txt"), "note\nagent\n");
    assert!(landed.notes.iter().any(|note| note.contains("note.txt")), "{:?}", landed.notes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_the_place_of_a_folder_with_the_users_files_stops_the_landing() {
    let world = World::new();
    world.sh("mkdir -p build $W/out; echo img >build/i.png; echo p >$W/out/p");
    let (repository, checkpoint) = begin(&world).await;
    world.sh("mv build $W/moved; ln -s $W/out build; git add -f build; echo x >>a.txt");
    let refused = repository.land(&checkpoint, &landing()).await;
    assert!(matches!(refused, Err(LandError::Suspicious { .. })), "{refused:?}");
    repository.revert(&checkpoint).await.unwrap();
    assert_eq!(world.read("build/i.png"), "img\n");
    assert_eq!(std::fs::read_to_string(world.beside("out/p")).unwrap(), "p\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tracked_folder_replaced_by_a_link_out_of_the_repository_stops_the_landing() {
    let world = World::new();
    world.sh("mkdir $W/out; echo p >$W/out/p");
    let (repository, checkpoint) = begin(&world).await;
    world.sh("rm -r dir; ln -s $W/out dir");
    assert!(matches!(repository.land(&checkpoint, &landing()).await, Err(LandError::Suspicious { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_land() {
    let world = World::new();
    lands(&world, "mkdir 'a b'; echo x >'a b/ünï 文.txt'; echo y >$'tab\\tname'; echo z >$'new\\nline'; echo d >-dash; echo q >'qu\"ote'; rm a.txt; mkdir a.txt; echo in >a.txt/in").await;
    assert_eq!(status(&world), "");
    world.sh("git cat-file -e 'HEAD:a b/ünï 文.txt'; git cat-file -e $'HEAD:tab\\tname'; git cat-file -e $'HEAD:new\\nline'; git cat-file -e HEAD:-dash; git cat-file -e HEAD:a.txt/in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_line_ends_are_applied_as_by_git() {
    let world = World::new();
    world.sh("git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; printf '*.big filter=up\\n*.txt text\\n' >.gitattributes; git add .gitattributes; git commit -qm f");
    lands(&world, "printf 'new content' >n.big; printf 'a\\r\\nb\\r\\n' >n.txt").await;
    assert_eq!(world.sh("git show HEAD:n.big"), "NEW CONTENT");
    assert_eq!(world.sh("git show HEAD:n.txt"), "a\nb\n");
    assert_eq!(status(&world), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_subdirectory_everything_changed_lands_and_the_neighbours_files_stay() {
    let world = World::new();
    world.sh("mkdir -p apps/web apps/api; echo w >apps/web/w; echo a >apps/api/a; git add apps; git commit -qm apps; echo wip >apps/api/wip.txt");
    let repository = world.open_at(&world.top.join("apps/web"), SnapshotLimits::default()).await;
    assert_eq!(repository.places().project, world.top.join("apps/web"));
    assert_eq!(repository.places().top, world.top);
    let checkpoint = repository.checkpoint("c").await.unwrap();
    world.sh("echo ok >apps/web/ok.txt");
    repository.land(&checkpoint, &landing()).await.unwrap();
    assert_eq!(files(&world), "apps/web/ok.txt ");
    assert_eq!(world.read("apps/api/wip.txt"), "wip\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submodules_new_commit_lands_and_can_be_read() {
    let world = World::new();
    world.sh("git init -q -b main $W/lib; cd $W/lib; git config user.name T; git config user.email t@example.invalid; echo l >l; git add .; git commit -qm l; cd - >/dev/null; git -c protocol.file.allow=always submodule --quiet add $W/lib lib; git commit -qm sub; git -C lib config user.name T; git -C lib config user.email t@example.invalid");
    lands(&world, "cd lib; echo more >m; git add m; git commit -qm 'in lib'").await;
    world.sh("git -C lib cat-file -e $(git ls-tree HEAD lib | cut -d' ' -f3 | cut -f1):m");
    assert_eq!(status(&world), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_specs_file_is_part_of_the_commit_if_it_is_tracked() {
    let world = World::new();
    world.sh("echo '- [ ] 1' >tasks.md; git add tasks.md; git commit -qm spec; echo '{}' >prd.json");
    let (repository, checkpoint) = begin(&world).await;
    world.sh("echo x >>a.txt");
    let mut landing = landing();
    landing.write_back =
        vec![("tasks.md".into(), b"- [x] 1\n".to_vec()), ("prd.json".into(), b"{\"passes\":true}".to_vec())];
    repository.land(&checkpoint, &landing).await.unwrap();
    assert_eq!(files(&world), "a.txt tasks.md ");
    assert_eq!(world.read("prd.json"), "{\"passes\":true}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_landing_is_found_again_by_its_trailers() {
    let world = World::new();
    let base = world.sh("git rev-parse HEAD").trim().into();
    let landed = lands(&world, "echo x >>a.txt").await;
    world.sh("echo user >u; git add u; git commit -qm 'by hand'");
    let repository = world.open().await;
    let (run, story) = ("run-1".into(), "S-1".into());
    assert_eq!(
        repository.find_landed("HEAD", &base, &run, &story).await.unwrap().map(|one| one.commit),
        Some(landed.commit.clone())
    );
    assert_eq!(repository.find_landed("HEAD", &base, &run, &"S-2".into()).await.unwrap(), None);
    assert_eq!(repository.find_landed("HEAD", &base, &"run-2".into(), &story).await.unwrap(), None);
    let all = repository.landed_since(Some(&base)).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].commit.clone(), all[0].attempt.as_str()), (landed.commit, "1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r43_a_failed_attempt_is_kept_whole_and_its_difference_can_be_shown() {
    let world = World::new();
    let (repository, checkpoint) = begin(&world).await;
    world.sh("echo part >part.txt; git add -A; git commit -qm part; git branch aside; echo loose >loose.txt; echo l >x.log; rm dir/b.txt; echo $'odd\\n' >$'odd\\nname'");
    let agents = world.sh("git rev-parse HEAD");
    let kept = repository.keep(&checkpoint, "refs/ralphloop/run-1/s-1/1", "S-1#1").await.unwrap();
    repository.revert(&checkpoint).await.unwrap();
    let names = world.sh(&format!("git ls-tree -r -z --name-only {} | tr '\\n\\0' '@\\n'", kept.reference));
    for name in ["part.txt", "loose.txt", "x.log", "odd@name"] {
        assert!(names.lines().any(|line| line == name), "{name} in {names}");
    }
    assert!(!names.contains("dir/b.txt"));
    world.sh(&format!("git merge-base --is-ancestor {} {}", agents.trim(), kept.reference));
    let patch = String::from_utf8(repository.diff(&kept.reference).await.unwrap()).unwrap();
    assert!(patch.contains("+loose") && patch.contains("-two"), "{patch}");
    assert!(repository.kept_refs().iter().any(|(name, _)| *name == kept.reference));
    // Kept again, what was kept before stays reachable.
    world.sh("echo again >again.txt");
    repository.keep(&checkpoint, &kept.reference, "S-1#1").await.unwrap();
    world.sh(&format!(
        "git merge-base --is-ancestor {} {}; git cat-file -e {}:again.txt",
        kept.commit, kept.reference, kept.reference
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_was_cut_off_is_taken_back_without_what_the_user_has_not_checked_out() {
    let world = World::new();
    world.sh(
        "mkdir far; echo 1 >far/x; git add far; git commit -qm 1; echo 2 >far/x; echo 2 >a.txt; git commit -qam 2; \
         git branch new; git reset -q --hard HEAD~1; git sparse-checkout set --no-cone '/*' '!/far/'",
    );
    let [old, new] = ["HEAD", "new"].map(|name| world.sh(&format!("git rev-parse {name}")).trim().into());
    let branch = world.sh("git symbolic-ref HEAD");
    let before = world.read("a.txt");
    // Git has taken it away, and was about to write the new one.
    world.sh("rm a.txt");
    world.open().await.undo_half_advance(branch.trim(), &old, &new).await.unwrap();
    assert_eq!((world.read("a.txt"), world.exists("far")), (before, false));
    assert_eq!(status(&world), "");
}
