//! What git said of ignored paths is asked for again as soon as it may have changed.
use crate::world::World;

/// Changes after which git's answer may be another one, each after the one before.
const CHANGES: &[(&str, &str)] = &[
    ("a pattern of the same length", "sed -i 's/build/bulid/' .gitignore"),
    ("a new file that is ignored", "echo x >new.log"),
    ("a new file that is not", "echo x >new.txt"),
    ("a new folder of both", "mkdir -p fresh; echo x >fresh/a.log; echo x >fresh/a.txt"),
    ("a list of patterns in a folder", "echo 'a.txt' >fresh/.gitignore"),
    ("the list gone again", "rm fresh/.gitignore"),
    ("patterns of the repository's own", "echo 'note.txt' >>.git/info/exclude"),
    ("the user's patterns", "mkdir -p $HOME/.config/git; echo 'new.txt' >$HOME/.config/git/ignore"),
    ("the user's patterns changed", "echo 'new.nothing' >$HOME/.config/git/ignore"),
    ("patterns named by a setting", "echo fresh >$W/patterns; git config core.excludesFile $W/patterns"),
    ("the named patterns changed", "echo nothing >$W/patterns"),
    (
        "a setting of an included file",
        "printf '[core]\\n\\texcludesFile = %s\\n' $W/more >$W/included; echo new.txt >$W/more; git config include.path $W/included",
    ),
    ("the included file changed", "printf '[core]\\n\\texcludesFile = %s\\n' $W/none >$W/included"),
    ("a tracked file that leaves the index and is ignored", "echo a.txt >>.gitignore; git rm -q --cached a.txt"),
    ("an ignored file that is added by force", "git add -f new.log"),
    ("a repository in a folder", "git init -q fresh/inner; echo x >fresh/inner/y.log"),
    ("that repository gone", "rm -rf fresh/inner/.git"),
    ("line ends converted", "git config core.autocrlf input; printf 'a\\r\\n' >dir/b.txt"),
];

#[tokio::test]
async fn what_is_remembered_of_git_never_differs_from_what_git_says() {
    let world = World::new();
    let repository = world.open().await;
    world.settle();
    repository.tree_id().await.unwrap();
    for (what, change) in CHANGES {
        world.sh(change);
        let remembered = repository.tree_id().await.unwrap();
        assert_eq!(remembered, world.open().await.tree_id().await.unwrap(), "after {what}");
        world.settle();
        assert_eq!(repository.tree_id().await.unwrap(), remembered, "settled, after {what}");
    }
}

#[tokio::test]
async fn a_tracked_file_in_a_large_ignored_folder_is_kept_by_the_next_checkpoint() {
    let world = World::new();
    let limits = ralphloop_engine::git::SnapshotLimits { ignored_files: 3, ..Default::default() };
    let repository = world.open_at(&world.top, limits).await;
    world.sh("mkdir build; touch build/1 build/2 build/3 build/4 build/5");
    let first = repository.checkpoint("first").await.unwrap();
    assert!(first.notes.iter().any(|note| note.contains("build")), "{:?}", first.notes);
    repository.drop_checkpoint(&first).await.unwrap();
    world.settle();
    repository.tree_id().await.unwrap();
    world.sh("echo kept >build/3; git add -f build/3; git commit -qm 'Add it by force'");
    let second = repository.checkpoint("second").await.unwrap();
    world.sh("echo changed >build/3");
    repository.revert(&second).await.unwrap();
    assert_eq!(world.read("build/3"), "kept\n");
}

#[tokio::test]
async fn a_large_ignored_folder_that_has_become_small_is_kept_again() {
    let world = World::new();
    let limits = ralphloop_engine::git::SnapshotLimits { ignored_files: 3, ..Default::default() };
    let repository = world.open_at(&world.top, limits).await;
    world.sh("mkdir -p build/deep; touch build/deep/1 build/deep/2 build/deep/3 build/deep/4");
    for name in ["first", "second"] {
        let large = repository.checkpoint(name).await.unwrap();
        assert!(large.notes.iter().any(|note| note.contains("build")), "{:?}", large.notes);
        repository.drop_checkpoint(&large).await.unwrap();
    }
    world.sh("rm build/deep/[234]; echo kept >build/deep/1");
    let small = repository.checkpoint("small").await.unwrap();
    assert_eq!(small.notes, Vec::<String>::new());
    world.sh("echo changed >build/deep/1");
    repository.revert(&small).await.unwrap();
    assert_eq!(world.read("build/deep/1"), "kept\n");
}
