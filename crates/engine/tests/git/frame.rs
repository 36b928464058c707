//! What is found before a run, and of an attempt's dealings with the repository itself.
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use ralphloop_engine::git::{
    BranchError, ChangeKind, FindingKind, Frame, OpenError, Repair, Repository, SnapshotLimits,
};

use crate::fingerprint;
use crate::world::World;

async fn found(world: &World) -> Vec<FindingKind> {
    let before = fingerprint::of(world);
    let findings = world.open().await.preflight().await.unwrap();
    let after = fingerprint::of(world);
    assert!(before == after, "looking changed {:#?}", before.difference(&after));
    assert!(findings.iter().all(|finding| !finding.message.is_empty() && !finding.remedy.is_empty()));
    findings.into_iter().map(|finding| finding.kind).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r44_a_clean_repository_with_untracked_files_is_ready() {
    assert_eq!(found(&World::new()).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_found_at_once() {
    let world = World::new();
    world.sh("git checkout -q -b side; echo side >a.txt; git commit -qam side; git checkout -q main; echo main >a.txt; git commit -qam main; git checkout -q --detach; git merge -q side >/dev/null || true; git config --unset user.name; git config --unset user.email; git config user.useConfigOnly true; : >.git/config.lock");
    let kinds = found(&world).await;
    for kind in [
        FindingKind::DetachedHead,
        FindingKind::OperationUnderWay,
        FindingKind::Unmerged,
        FindingKind::NoIdentity,
        FindingKind::Locked,
    ] {
        assert!(kinds.contains(&kind), "{kind:?} in {kinds:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_condition_is_named() {
    for (setup, kind) in [
        ("echo x >>a.txt", FindingKind::Dirty),
        ("echo x >n; git add n", FindingKind::Dirty),
        ("git checkout -q --detach", FindingKind::DetachedHead),
        (": >.git/index.lock", FindingKind::Locked),
        ("git bisect start >/dev/null", FindingKind::OperationUnderWay),
    ] {
        let world = World::new();
        world.sh(setup);
        assert_eq!(found(&world).await, [kind], "{setup}");
    }
    let world = World::with("git init -q -b main .; git config user.name T; git config user.email t@example.invalid");
    assert_eq!(found(&world).await, [FindingKind::NoCommits]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_that_git_calls_clean_is_clean() {
    let world = World::new();
    world.sh("printf 'a\\r\\nb\\r\\n' >crlf.txt; printf '*.txt text\\n' >.gitattributes; git -c core.autocrlf=true add . 2>/dev/null; git reset -q note.txt; git commit -qm eol; git config core.autocrlf true; rm -f .git/index; git reset -q; git config core.fileMode false; chmod +x a.txt; touch dir/b.txt; git config core.excludesFile $W/ign; echo 'global*' >$W/ign; echo g >global.tmp");
    assert_eq!(found(&world).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_that_fails_or_hangs_is_found_before_anything_is_paid_for() {
    for (signer, words) in [("exec sleep 999", "passphrase"), ("echo NO-KEY >&2; exit 2", "NO-KEY")] {
        let world = World::new();
        world.sh(&format!("printf '#!/bin/sh\\n{signer}\\n' >$W/gpg; chmod +x $W/gpg; git config commit.gpgsign true; git config gpg.program $W/gpg; git config user.signingkey X"));
        let git = world.git_with_timeout(Duration::from_secs(2));
        let repository = Repository::open(&world.top, git, SnapshotLimits::default()).await.unwrap();
        let findings = repository.preflight().await.unwrap();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].kind == FindingKind::Signing && findings[0].message.contains(words), "{findings:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_without_a_working_tree_is_refused_with_the_reason() {
    let world = World::with(":");
    let open = |path: PathBuf| {
        let git = world.git();
        async move { Repository::open(&path, git, SnapshotLimits::default()).await.err() }
    };
    assert!(matches!(open(world.top.clone()).await, Some(OpenError::NoRepository { .. })));
    world.sh("git init -q --bare b.git; git init -q r");
    assert!(matches!(open(world.top.join("b.git")).await, Some(OpenError::Bare { .. })));
    let inside = open(world.top.join("r/.git")).await;
    assert!(matches!(inside, Some(OpenError::InsideGitDirectory { .. })), "{inside:?}");
    for odd in [&b"two\nlines"[..], b"no\xfftext"] {
        let odd = world.top.join(std::ffi::OsStr::from_bytes(odd));
        std::fs::create_dir(&odd).unwrap();
        let refused = open(odd).await.unwrap();
        assert!(refused.to_string().ends_with("move the repository"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_cannot_be_used_is_found_before_a_run_with_what_mends_it() {
    for (how, mends) in [
        ("git sparse-checkout set --cone --sparse-index dir", "sparse-checkout reapply --no-sparse-index"),
        ("git sparse-checkout disable; head -c 200 .git/index > $W/half; mv $W/half .git/index", "git reset"),
    ] {
        let world = World::new();
        world.sh("mkdir far; echo x > far/x; git add far; git commit -qm far");
        let repository = world.open().await;
        world.sh(how);
        let findings = repository.preflight().await;
        let said = format!("{findings:?}");
        assert!(said.contains(mends), "{how}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_attempt_did_is_measured_whoever_committed_it() {
    let world = World::new();
    let repository = world.open().await;
    let checkpoint = repository.checkpoint("c").await.unwrap();
    assert_eq!(repository.inspect(&checkpoint).await.unwrap().frame, Frame::Intact);
    assert_eq!(repository.tree_id().await.unwrap(), checkpoint.tree);

    world.sh("echo x >>a.txt; git commit -qam agent; echo y >new.txt; rm dir/b.txt; chmod +x dir/deep/c.txt");
    let inspection = repository.inspect(&checkpoint).await.unwrap();
    let changes: Vec<_> =
        inspection.changes.iter().map(|change| (change.path.display().to_string(), change.kind)).collect();
    let expected = [
        ("a.txt", ChangeKind::Modified),
        ("dir/b.txt", ChangeKind::Deleted),
        ("dir/deep/c.txt", ChangeKind::ModeChanged),
        ("new.txt", ChangeKind::Added),
    ];
    assert_eq!(changes, expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert!(
        matches!(&inspection.frame, Frame::Repairable(what) if matches!(what[..], [Repair::Committed { .. }])),
        "{:?}",
        inspection.frame
    );
    assert_ne!(inspection.tree, checkpoint.tree);

    world.sh("git add -A; git reset -q note.txt; git commit -qm more; echo l >y.log");
    assert_eq!(repository.tree_id().await.unwrap(), inspection.tree, "committing and ignored files change no content");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deviations_are_named_and_a_missing_repository_stops_everything() {
    let world = World::new();
    let repository = world.open().await;
    let checkpoint = repository.checkpoint("c").await.unwrap();
    world.sh(
        "git checkout -q -b other; : >.git/index.lock; git rev-parse HEAD >.git/MERGE_HEAD; echo x >.git/hooks/new",
    );
    let Frame::Repairable(what) = repository.inspect(&checkpoint).await.unwrap().frame else { panic!() };
    assert!(what.iter().any(|repair| matches!(repair, Repair::BranchSwitched { .. })), "{what:?}");
    assert!(what.iter().any(|repair| matches!(repair, Repair::StaleLock { .. })), "{what:?}");
    assert!(what.iter().any(|repair| matches!(repair, Repair::OperationUnderWay { operation: "merge" })), "{what:?}");
    assert!(what.iter().any(|repair| matches!(repair, Repair::StateChanged { paths } if paths.iter().any(|path| path.ends_with("hooks/new")))), "{what:?}");
    repository.revert(&checkpoint).await.unwrap();
    assert_eq!(repository.inspect(&checkpoint).await.unwrap().frame, Frame::Intact);

    world.sh("echo work >work.txt; mv .git $W/gone");
    let frame = repository.inspect(&checkpoint).await.unwrap().frame;
    assert!(matches!(&frame, Frame::Broken { why } if why.contains(".git")), "{frame:?}");
    assert!(repository.revert(&checkpoint).await.is_err());
    assert!(!world.exists(".git") && world.exists("work.txt"), "nothing was touched");

    world.sh("git init -q");
    let frame = repository.inspect(&checkpoint).await.unwrap().frame;
    assert!(matches!(frame, Frame::Broken { .. }), "another repository is not ours: {frame:?}");
    assert!(repository.revert(&checkpoint).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_is_made_or_switched_to_and_nothing_is_overwritten() {
    let world = World::new();
    let repository = world.open().await;
    assert!(matches!(repository.switch_to("ralph/x", false).await, Err(BranchError::Missing { .. })));
    repository.switch_to("ralph/x", true).await.unwrap();
    assert_eq!(repository.current_branch().unwrap().as_deref(), Some("refs/heads/ralph/x"));
    world.sh("git add -f note.txt; git commit -qm note");
    repository.switch_to("refs/heads/main", false).await.unwrap();
    world.sh("echo mine >note.txt");
    assert!(matches!(repository.switch_to("ralph/x", true).await, Err(BranchError::Refused { .. })));
    assert_eq!(world.read("note.txt"), "mine\n");
    assert!(matches!(repository.switch_to("a..b", true).await, Err(BranchError::BadName { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_that_was_made_where_the_loop_runs_stops_everything() {
    let world = World::new();
    world.sh("mkdir -p sub/deep; echo x >sub/deep/x; git add -A; git commit -qm sub");
    let at = world.top.join("sub/deep");
    let repository = world.open_at(&at, SnapshotLimits::default()).await;
    let checkpoint = repository.checkpoint("c").await.unwrap();
    world.sh("git init -q other; echo on >sub/deep/lamp");
    assert_eq!(repository.inspect(&checkpoint).await.unwrap().frame, Frame::Intact, "one elsewhere is none of git's");
    world.sh("git init -q sub");
    let frame = repository.inspect(&checkpoint).await.unwrap().frame;
    assert!(matches!(&frame, Frame::Broken { why } if why.contains("sub/.git")), "{frame:?}");
    assert!(world.exists("sub/deep/lamp"), "nothing was touched");
}
