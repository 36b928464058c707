//! Every state that a checkpoint has to bring back. Each is saved, which changes nothing, then changed by an "agent", kept,
//! put back, and compared in everything that can be seen, times included.
use crate::fingerprint;
use crate::world::World;

/// Saves `world` as it is, lets `agent` work, and asserts that a revert brings everything back.
pub(crate) async fn brings_back(world: World, agent: &str) {
    for (round, settled) in [("racy", false), ("settled", true)] {
        if settled {
            world.settle();
        }
        let before = fingerprint::of(&world);
        let repository = world.open().await;
        let name = format!("run-{round}");
        let checkpoint = repository.checkpoint(&name).await.unwrap();
        let saved = fingerprint::of(&world);
        assert!(before == saved, "{round}: saving changed {:#?}", before.difference(&saved));

        world.sh(agent);
        let changed = fingerprint::of(&world);
        assert!(before != changed, "{round}: the agent changed nothing, so this proves nothing");

        // Another process finds the checkpoint by its name.
        let (repository, checkpoint) = if settled {
            let again = world.open().await;
            let loaded = again.load(&name).await.unwrap();
            assert_eq!(loaded, checkpoint);
            (again, loaded)
        } else {
            (repository, checkpoint)
        };
        repository.keep(&checkpoint, &format!("refs/ralphloop/run/story/{round}"), "kept").await.unwrap();
        repository.revert(&checkpoint).await.unwrap();
        let after = fingerprint::of(&world);
        assert!(before == after, "{round}: not brought back: {:#?}", before.difference(&after));
        repository.revert(&checkpoint).await.unwrap();
        let twice = fingerprint::of(&world);
        assert!(before == twice, "{round}: a second revert changed {:#?}", before.difference(&twice));
        let fsck = world.output("git fsck --connectivity-only --no-dangling 2>&1");
        assert!(fsck.status.success(), "{round}: {}", String::from_utf8_lossy(&fsck.stdout));
        repository.drop_checkpoint(&checkpoint).await.unwrap();
    }
}

macro_rules! states {
    ($($name:ident: $setup:literal => $agent:literal;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let world = World::new();
                world.sh($setup);
                brings_back(world, $agent).await;
            }
        )*
    };
}

states! {
    a_tracked_file_modified: "echo user >>a.txt" => "echo agent >>a.txt; rm dir/b.txt";
    r40_a_clean_tree: ":" => "echo agent >>a.txt; echo new >new.txt";
    r41_a_clean_tree_while_the_user_has_a_stash: "echo s >>a.txt; git stash -q" => "echo agent >>a.txt; echo new >new.txt";
    r42_an_untracked_file_edited_and_one_deleted_and_one_new:
        "echo mine >mine.txt; echo second >second.txt" => "echo agent >mine.txt; rm second.txt; echo new >new.txt; mkdir -p x/y; echo z >x/y/z";
    an_ignored_file_edited: "echo K=1 >.env" => "echo K=2 >.env; echo l >x.log";
    the_agent_cleans_everything_ignored_too: "mkdir -p build/o; echo x >build/o/x; echo l >a.log" => "git clean -qfdx";
    the_agent_edits_gitignore: "echo K=1 >.env" => "echo >.gitignore; echo K=3 >.env; git add -A";
    the_agent_ignores_its_new_files: ":" => "echo 'new*' >>.gitignore; echo 1 >new.txt; mkdir newdir; echo 2 >newdir/f";
    empty_folders: "mkdir -p empty/inner" => "rmdir empty/inner empty; mkdir other";
    modes: "chmod +x a.txt; chmod 0600 dir/b.txt; chmod 0444 note.txt" =>
        "chmod -x a.txt; chmod 0644 dir/b.txt; chmod 0644 note.txt; echo x >>note.txt; chmod 0700 dir";
    links: "ln -s a.txt l1; git add l1; git commit -qm l; ln -s note.txt l2; ln -s nowhere l3" =>
        "rm l1 l2 l3; ln -s dir l1; echo file >l2; ln -s else l3; ln -s new l4";
    file_and_folder_swapped: ":" => "rm a.txt; mkdir a.txt; echo x >a.txt/x; rm -r dir; echo file >dir";
    files_deleted_by_the_user_before_and_by_the_agent_after: "rm a.txt; rm note.txt" => "rm dir/b.txt; echo back >a.txt; rm .env";
    head_index_and_worktree_all_different: "echo i >a.txt; git add a.txt; echo w >a.txt" =>
        "echo agent >a.txt; git add a.txt; echo more >a.txt; git add note.txt";
    a_staged_delete_with_the_file_kept: "git rm -q --cached a.txt" => "git add a.txt; echo x >>a.txt; git rm -q --cached dir/b.txt";
    intent_to_add: "echo i >ita.txt; git add -N ita.txt" => "echo more >>ita.txt; git add ita.txt";
    assume_unchanged_and_skip_worktree_flags:
        "git update-index --assume-unchanged a.txt; git update-index --skip-worktree dir/b.txt; echo hidden >>a.txt; echo hidden >>dir/b.txt" =>
        "echo agent >a.txt; git update-index --no-assume-unchanged a.txt; git update-index --no-skip-worktree dir/b.txt; git add -A; rm dir/b.txt";
    the_agent_commits: ":" => "echo agent >>a.txt; echo n >n.txt; git add -A; git commit -qm agent; echo loose >>a.txt";
    the_agent_switches_to_a_new_branch_and_commits: ":" => "git checkout -q -b other; echo agent >>a.txt; git commit -qam agent; echo x >x.txt";
    the_agent_stashes: "echo user >>a.txt" => "git stash -q -u";
    the_agent_drops_the_users_stash: "echo user >>a.txt; git stash -q" => "git stash drop -q; git reflog expire --expire=now --all; git gc -q --prune=now";
    the_agent_amends_deletes_a_branch_and_tags: "git branch side HEAD~1; git tag -a -m t annotated" =>
        "echo z >>a.txt; git commit -qa --amend -m amended; git branch -qD side; git tag light; git tag -d annotated >/dev/null";
    the_agent_collects_garbage_after_commit_and_reset:
        "git branch side HEAD~1; git checkout -q side; echo s >s.txt; git add s.txt; git commit -qm side; git checkout -q main; git tag -a -m t annotated side" =>
        "echo agent >>a.txt; git commit -qam agent; git reset -q --hard HEAD~2; git branch -qD side; git tag -d annotated >/dev/null; git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now";
    staged_content_survives_garbage_collection: "echo staged only >a.txt; git add a.txt; echo later >a.txt" =>
        "git reset -q --hard; git reflog expire --expire=now --all; git gc -q --prune=now";
    the_agent_changes_config_and_adds_a_hook: ":" =>
        "git config user.name Agent; git config core.hooksPath /tmp/none; printf '#!/bin/sh\nexit 1\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo x >.git/info/exclude";
    a_merge_in_progress_with_a_conflict:
        "git checkout -q -b side; echo side >a.txt; git commit -qam side; git checkout -q main; echo main >a.txt; git commit -qam main; git merge -q side >/dev/null || true" =>
        "git merge --abort; echo agent >>a.txt; git commit -qam agent";
    an_untracked_nested_repository:
        "git init -q clone; cd clone; git config user.name N; git config user.email n@example.invalid; echo n >n; git add n; git commit -qm n; echo loose >loose" =>
        "cd clone; echo x >>n; rm loose; git commit -qam agent; git branch other; echo y >y";
    an_untracked_nested_repository_deleted_whole:
        "git init -q clone; cd clone; git config user.name N; git config user.email n@example.invalid; echo n >n; git add n; git commit -qm n" =>
        "rm -rf clone";
    the_agent_makes_a_nested_repository: ":" =>
        "git init -q made; cd made; git config user.name N; git config user.email n@example.invalid; echo n >n; git add n; git commit -qm n";
    text_auto_with_mixed_line_ends:
        "printf '* text=auto\n' >.gitattributes; printf 'a\r\nb\nc\r\n' >mixed.txt; git add . 2>/dev/null; git commit -qm eol; printf 'x\r\ny\n' >mixed2.txt" =>
        "printf 'a\nb\n' >mixed.txt; printf 'x\n' >mixed2.txt; git add -A; git commit -qm agent";
    a_filtered_file_clean_before:
        "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; printf '*.big filter=up\n' >.gitattributes; printf 'content\n' >f.big; git add .; git commit -qm f" =>
        "echo agent >f.big; git commit -qam agent";
    a_filtered_file_dirty_before:
        "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; printf '*.big filter=up\n' >.gitattributes; printf 'content\n' >f.big; git add .; git commit -qm f; echo dirty >f.big" =>
        "git checkout -q f.big; echo agent >>f.big";
    a_filter_that_is_missing_at_the_restore:
        "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; git config filter.up.required true; printf '*.big filter=up\n' >.gitattributes; printf 'content\n' >f.big; git add .; git commit -qm f" =>
        "echo agent >f.big; git config filter.up.clean /nonexistent; git config filter.up.smudge /nonexistent";
    odd_names:
        "printf x >$'new\nline'; printf x >$'bad\\xff'; printf x >-dash; printf x >'qu\"ote'; git add -- $'new\nline' $'bad\\xff' -dash; git commit -qm odd; printf y >'un tracked \"'" =>
        "printf z >$'new\nline'; printf z >$'bad\\xff'; rm -- -dash; printf z >'qu\"ote'; printf z >$'more\n\\xfe'; rm 'un tracked \"'";
    a_fifo_and_a_socket:
        "mkfifo pipe; python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind(\"sock\")'" => "rm pipe sock; mkfifo other";

    // Further states.
    hard_links: "ln note.txt second-name; ln a.txt third-name" => "rm note.txt; echo other >second-name; rm third-name; cp a.txt third-name";
    a_hard_link_to_a_file_outside_is_not_written_through:
        "echo outside >$W/outside; echo mine >victim.txt" => "ln -f $W/outside victim.txt";
    read_only_folders: "mkdir -p ro/in; echo x >ro/in/x; chmod 0444 ro/in/x; chmod 0555 ro/in ro" =>
        "chmod 0755 ro ro/in; rm -f ro/in/x; mkdir -p cache/pkg; echo c >cache/pkg/c; chmod 0444 cache/pkg/c; chmod 0555 cache/pkg cache";
    the_same_size_and_time_with_other_content: "echo 11 >same; touch -d '2020-01-01 00:00:00' same" =>
        "echo 22 >same; touch -d '2020-01-01 00:00:00' same";
    the_agent_only_touches: ":" => "touch a.txt note.txt dir; touch -h a.txt";
    a_directory_swapped_for_a_link: "mkdir $W/out; echo precious >$W/out/p" => "mv dir dir.bak; ln -s $W/out dir";
    refs_packed_by_the_agent: "git branch one; git branch two" => "git pack-refs --all; git branch -qD one; git branch three";
    a_stale_lock_and_an_operation_left: ":" => ": >.git/index.lock; git rev-parse HEAD >.git/MERGE_HEAD";
    a_damaged_index: ":" => "echo rubbish >.git/index";
    a_detached_head: "git checkout -q --detach" => "echo x >>a.txt; git commit -qam agent; git checkout -q main";
    a_split_index: "git update-index --split-index" => "echo x >>a.txt; git add a.txt; git update-index --no-split-index";
    a_worktree_folder_with_a_gitignore_of_its_own: "mkdir sub; echo '*' >sub/.gitignore; echo x >sub/x" => "rm -r sub";
    many_commits_and_branches:
        "for i in $(seq 40); do git commit -q --allow-empty -m $i; git branch b$i; done" =>
        "for i in $(seq 40); do git branch -qD b$i; done; git reset -q --hard HEAD~45 2>/dev/null || git reset -q --hard HEAD~40; git reflog expire --expire=now --all; git gc -q --prune=now";
}

/// Attributes and access lists, as `setfattr` and `setfacl` would set them: user 1234 may read. Lists are bytes by acl(5).
const ATTRIBUTES: &str = r"python3 - <<'EOF'
import os, struct
acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *entry) for entry in
    [(1, 6, 0xffffffff), (2, 4, 1234), (4, 4, 0xffffffff), (16, 4, 0xffffffff), (32, 4, 0xffffffff)])
for name in ['a.txt', 'dir/b.txt', 'note.txt', '.env', 'dir']:
    os.setxattr(name, 'user.mine', b'kept \xff ' + name.encode())
    os.setxattr(name, 'system.posix_acl_access', acl)
os.setxattr('dir/deep', 'system.posix_acl_default', acl)
EOF";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_and_access_lists() {
    let world = World::new();
    if !world.output(ATTRIBUTES).status.success() {
        println!("left out: the file system of the temporary folder keeps no attributes or access lists");
        return;
    }
    // Files are replaced, as editors do, edited in place, made where a folder passes its list on; lists and attributes go.
    let agent = "for f in a.txt note.txt .env; do echo agent >new; mv new $f; done; echo in place >>dir/b.txt
        rm dir/deep/c.txt; echo new >dir/deep/new.txt
        python3 -c 'import os; os.removexattr(\"dir\", \"user.mine\"); os.setxattr(\"dir\", \"user.more\", b\"x\"); \
            os.setxattr(\"run.sh\", \"user.more\", b\"x\"); os.removexattr(\"dir/deep\", \"system.posix_acl_default\")'";
    brings_back(world, agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_where_the_system_lets_us() {
    let world = World::new();
    let given = "ln -s a.txt link; chown 1234:1235 a.txt note.txt dir/deep; chown -h 1234 link; chown :1235 dir/b.txt";
    if !world.output(given).status.success() {
        println!("left out: only root gives files to others");
        return;
    }
    brings_back(
        world,
        "for f in a.txt dir/b.txt; do echo agent >new; mv new $f; done; chown 0:0 note.txt dir/deep; chown -h 0 link",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_without_commits() {
    let world = World::with("git init -q -b main .; echo x >x.txt; echo s >s.txt; git add s.txt");
    brings_back(world, "echo agent >>x.txt; git add -A; rm s.txt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_commits_in_a_repository_without_commits() {
    let world = World::with(
        "git init -q -b main .; git config user.name T; git config user.email t@example.invalid; echo x >x.txt; echo s >s.txt; git add s.txt",
    );
    brings_back(world, "git add -A; git commit -qm agent; echo y >y.txt").await;
}

const WITH_SUBMODULE: &str = r"
git init -q -b main $W/lib; cd $W/lib; git config user.name T; git config user.email t@example.invalid; echo l >l; git add .; git commit -qm l; cd - >/dev/null
git -c protocol.file.allow=always submodule --quiet add $W/lib lib; git commit -qm sub
git -C lib config user.name T; git -C lib config user.email t@example.invalid
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submodule_with_dirty_content() {
    let world = World::new();
    world.sh(WITH_SUBMODULE);
    world.sh("echo dirty >>lib/l; echo new >lib/new");
    brings_back(world, "echo agent >lib/l; rm lib/new; echo x >lib/x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submodule_in_which_the_agent_commits() {
    let world = World::new();
    world.sh(WITH_SUBMODULE);
    brings_back(world, "cd lib; echo agent >>l; git commit -qam agent; cd ..; git add lib; git commit -qm bump").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_linked_worktree_with_the_main_one_untouched() {
    let world = World::new();
    world.sh("git worktree add -q -b linked $W/linked");
    let linked = world.beside("linked").canonicalize().unwrap();
    let world = world.moved_to(linked);
    world.sh("echo user >user.txt; echo wip >>a.txt; git add a.txt");
    let main_top = world.open().await.places().common_dir.parent().unwrap().to_owned();
    let linked = world.top.clone();
    let world = world.moved_to(main_top.clone());
    let main = fingerprint::of(&world);
    let world = world.moved_to(linked);
    let before = fingerprint::of(&world);
    let repository = world.open().await;
    let checkpoint = repository.checkpoint("linked").await.unwrap();
    world.sh("echo agent >>a.txt; git commit -qam agent; rm user.txt; git checkout -q -b elsewhere; echo x >x");
    repository.revert(&checkpoint).await.unwrap();
    let after = fingerprint::of(&world);
    assert!(before == after, "{:#?}", before.difference(&after));
    let world = world.moved_to(main_top);
    let now = fingerprint::of(&world);
    assert!(main == now, "{:#?}", main.difference(&now));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_huge_ignored_folder_is_left_alone_and_said_so() {
    let world = World::new();
    world.sh("mkdir build; for i in $(seq 50); do echo $i >build/$i; done; truncate -s 100M big.bin");
    let limits = ralphloop_engine::git::SnapshotLimits { ignored_files: 20, ..Default::default() };
    let repository = world.open_at(&world.top, limits).await;
    let checkpoint = repository.checkpoint("c").await.unwrap();
    assert!(checkpoint.notes.iter().any(|note| note.contains("build")), "{:?}", checkpoint.notes);
    assert!(checkpoint.notes.iter().any(|note| note.contains("big.bin")), "{:?}", checkpoint.notes);
    world.sh("echo more >build/new; echo x >>a.txt");
    let report = repository.revert(&checkpoint).await.unwrap();
    assert!(world.exists("build/new"), "what is left alone is not touched");
    assert_eq!(world.read("a.txt"), "one and more\n");
    assert!(report.left.is_empty(), "{report:?}");
    assert_eq!(std::fs::metadata(world.top.join("big.bin")).unwrap().len(), 100 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_for_git_is_moved_and_not_lost() {
    let world = World::new();
    let repository = world.open().await;
    let checkpoint = repository.checkpoint("c").await.unwrap();
    world.sh("head -c 70000000 /dev/zero >huge.bin");
    let kept = repository.keep(&checkpoint, "refs/ralphloop/r/s/1", "kept").await.unwrap();
    assert_eq!(kept.not_kept, [std::path::PathBuf::from("huge.bin")]);
    let report = repository.revert(&checkpoint).await.unwrap();
    assert!(!world.exists("huge.bin"));
    assert_eq!(std::fs::metadata(&report.parked[0].1).unwrap().len(), 70_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_configuration() {
    let world = World::new();
    let before = fingerprint::of(&world);
    let repository = world.open().await;
    let checkpoint = repository.checkpoint("c").await.unwrap();
    world.sh("echo '[broken' >>.git/config; echo x >x.txt");
    assert!(matches!(
        repository.inspect(&checkpoint).await.unwrap().frame,
        ralphloop_engine::git::Frame::Repairable(_)
    ));
    repository.keep(&checkpoint, "refs/ralphloop/r/s/1", "kept").await.unwrap();
    repository.revert(&checkpoint).await.unwrap();
    let after = fingerprint::of(&world);
    assert!(before == after, "{:#?}", before.difference(&after));
    assert_eq!(world.sh("git show refs/ralphloop/r/s/1:x.txt"), "x\n");
}
