//! What is left behind inside for those who come after it: the loop itself, git and its hooks, which work outside.

use ralphloop_testkit::scene::{Outcome, Scene};

use super::{Who, prey, there_is_one};
use crate::world::{ONCE, prd_text, reason, run, story};

/// Runs a story in the checkout and one in a worktree, whose agent runs this script. Nothing outside has changed then, and
/// nothing of what was left has run: nobody has made `$mark`.
fn leave(prepare: impl Fn(&mut Scene), script: &str, look: impl Fn(&Scene, Outcome)) {
    leave_with("prd.json", prepare, script, look);
}

/// The same with the work in another file.
fn leave_with(work: &str, prepare: impl Fn(&mut Scene), script: &str, look: impl Fn(&Scene, Outcome)) {
    for place in ["--in-place", "--worktree"] {
        let mut scene = prey(Who::Myself);
        if !there_is_one(&scene, Who::Myself) {
            return;
        }
        scene.set_env("mark", scene.outside("mark"));
        scene.write(work, prd_text(&[story("S1", "Alpha lamp")]));
        prepare(&mut scene);
        scene.commit_all("Plan");
        let agent = scene.program(
            "leaver",
            &format!(
                "#!/bin/sh\ncat >/dev/null\ntop=$(git rev-parse --show-toplevel)\necho on > lamp.txt\n{script}\n\
                 echo '<promise>COMPLETE</promise>'\n"
            ),
        );
        scene.set_env("RALPHLOOP_AGENT_COMMAND", agent);
        let outcome = scene.start(&[&["run", work, "--headless", "--no-gates", place], ONCE].concat()).wait();
        let said = outcome.output();
        assert!(!scene.outside("mark").exists(), "{place}: what was left has run\n{said}");
        assert_eq!(std::fs::read_to_string(scene.outside("outside/notes")).unwrap(), "mine\n", "{place}: {said}");
        assert_eq!(std::fs::read_dir(scene.outside("outside")).unwrap().count(), 1, "{place}: {said}");
        look(&scene, outcome);
    }
}

#[test]
fn a_spec_that_was_made_a_link_is_a_file_again_before_anything_is_written() {
    leave(
        |_| {},
        r#"rm prd.json; ln -s "$outside/notes" prd.json"#,
        |scene, outcome| {
            outcome.says("prd.json had been made a link");
            assert!(scene.git(&["ls-tree", "HEAD", "prd.json"]).starts_with("100644"));
            assert!(scene.git(&["show", "HEAD:prd.json"]).contains("\"passes\": true"));
        },
    );
}

#[test]
fn nothing_is_written_behind_a_link_in_the_place_of_the_folder_of_the_spec() {
    let script = r#"cd "$top" && mv plans old && ln -s "$outside" plans || exit 1"#;
    leave_with(
        "plans/prd.json",
        |_| {},
        script,
        |_, outcome| {
            outcome.says("a link was put above it");
        },
    );
}

#[test]
fn state_files_are_not_written_through_links() {
    let links = r#"test -e state/progress.md || exit 1; for f in state/*.md state/.c* state/*.json; do ln -sf "$outside/notes" "$f"; done"#;
    for script in [links, r#"mv state old; ln -s "$outside" state"#] {
        leave(
            |scene| {
                scene.set_env("RALPHLOOP_STATE_FILES", "state");
                scene.write(".gitignore", "/state\n/old\n");
            },
            script,
            |_, _| {},
        );
    }
}

#[test]
fn git_is_not_found_in_the_working_tree() {
    leave(
        |scene| {
            let paths = format!(
                "{}:bin:{}:{}",
                scene.path(".venv/bin").display(),
                scene.outside("bin").display(),
                scene.outside("tools").display()
            );
            scene.set_env("PATH", paths);
            scene.write(".gitignore", "/.venv\n/bin\n");
        },
        r#"for folder in .venv/bin bin; do
             mkdir -p $folder
             printf '#!/bin/sh\ntouch "$mark"\nexec "%s" "$@"\n' "$(dirname "$tool")/../tools/git" > $folder/git
             chmod +x $folder/git
           done"#,
        |scene, outcome| {
            outcome.says("landed");
            scene.git(&["show", "HEAD:lamp.txt"]);
        },
    );
}

/// A hook in the working tree, which an agent can write: it judges and changes the commit as ever, and gets out nowhere.
#[test]
fn hooks_run_inside_and_what_they_make_of_the_commit_lands() {
    leave(
        |scene| {
            scene.write(".hooks/pre-commit", "#!/bin/sh\n");
            std::process::Command::new("chmod").arg("+x").arg(scene.path(".hooks/pre-commit")).status().unwrap();
            scene.git(&["config", "core.hooksPath", ".hooks"]);
        },
        r#"printf '%s\n' '#!/bin/sh' 'touch "$mark"; echo x >> "$outside/notes"; echo x >> "$common/config"' \
             'git update-ref refs/heads/evil HEAD; echo shining >> lamp.txt; git add lamp.txt' > .hooks/pre-commit
           printf '%s\n' '#!/bin/sh' 'printf "\nSeen-by: hook\n" >> "$1"' > .hooks/commit-msg
           chmod +x .hooks/*"#,
        |scene, outcome| {
            outcome.says("changed by a hook: lamp.txt");
            assert_eq!(scene.git(&["show", "HEAD:lamp.txt"]), "on\nshining");
            assert!(scene.git(&["log", "-1", "--format=%B"]).contains("Seen-by: hook"));
            assert!(!scene.git(&["for-each-ref"]).contains("refs/heads/evil"));
            assert_eq!(scene.git(&["status", "--porcelain", "--untracked-files=no"]), "");
        },
    );
}

#[test]
fn a_hook_inside_refuses_a_commit() {
    leave(
        |scene| {
            let hook = scene.path(".git/hooks/pre-commit");
            std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
            std::fs::write(&hook, "#!/bin/sh\ntest -e lamp.txt || exit 0\necho the lamp is too bright >&2\nexit 1\n")
                .unwrap();
            std::process::Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
        },
        "",
        |scene, _| assert!(reason(scene, "S1").contains("the lamp is too bright"), "{}", reason(scene, "S1")),
    );
}

/// Repositories in the tree, with programs in their configuration, and attributes that name drivers.
#[test]
fn git_runs_nothing_of_a_repository_that_lies_in_the_tree() {
    let script = r#"
        for folder in new libs/other; do
          git init -q $folder
          git -C $folder -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
          git -C $folder config core.fsmonitor "touch $mark"
          git -C $folder config filter.evil.clean "touch $mark; cat"
          echo x > $folder/x
        done
        printf '[submodule "new"]\n\tpath = new\n\turl = ./new\n\tupdate = !touch "%s"\n' "$mark" > .gitmodules
        echo '* filter=evil diff=evil merge=evil' > .gitattributes"#;
    leave(
        |_| {},
        script,
        |scene, outcome| {
            outcome.says("another repository");
            assert_eq!(scene.git(&["ls-tree", "HEAD", "new", "libs/other"]), "");
            // Another run begins with looks at what was left.
            run(scene, &[]);
            assert!(!scene.outside("mark").exists());
        },
    );
}
