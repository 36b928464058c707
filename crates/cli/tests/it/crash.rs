//! Killed with all that it started after any line of its journal, and again while it recovers, a run ends as one that
//! nobody disturbed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ralphloop_testkit::scene::{Running, Scene, alive_with_mark, eventually};
use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{passes, prd_text, scene, start, two_stories};

/// How often the journal is looked at while a line is waited for.
const LOOK: Duration = Duration::from_micros(300);
/// Scenes at once.
const AT_ONCE: usize = 4;
/// Calls of the agent that one attempt can take.
const CALLS_AN_ATTEMPT: usize = 2;
/// Calls of an undisturbed run: the first story's limit, its attempt and its repair; the second's two attempts, one repaired.
const CALLS: usize = 6;

pub(crate) const FLAGS: &[&str] = &[
    "--gate",
    "sleep 0.03; ! grep -qs bad a.txt b.txt",
    "--max-repairs",
    "1",
    "--max-retries",
    "2",
    "--limit-wait",
    "1",
];

/// The first story meets the account's limit, is waited for, and then needs a repair; the second fails with one attempt, is
/// put back and passes with the next. Every commit goes through a hook.
fn ready() -> Scene {
    ready_in(scene())
}

/// The same in a scene that has a repository.
pub(crate) fn ready_in(scene: Scene) -> Scene {
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let hook = scene.path(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\nsleep 0.03\necho hook >> '{}'\n", scene.outside("hooks").display())).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let repaired = "if [ -e a.txt ]; then echo good > a.txt; else echo bad > a.txt; fi; sleep 0.03";
    // Its first whole attempt is bad and its repair too. What tells them apart is in no tree, and is written last.
    let retried = format!(
        "if [ -e '{0}' ]; then echo good > b.txt; elif [ -e b.txt ]; then echo bad again > b.txt; touch '{0}'; \
         else echo bad > b.txt; fi; sleep 0.03",
        scene.outside("tried").display()
    );
    scene.scripted_agent(
        &AgentScript::new()
            .story(
                "Alpha lamp",
                // Its reset has passed, so that the wait is as long as it may be: a second.
                [call().usage_limit(1000), call().say("at work").shell(repaired).complete()],
            )
            .story("Beta lamp", [call().say("at work").shell(&retried).complete()]),
    );
    scene
}

/// The facts of the only journal, as far as whole lines tell them.
pub(crate) fn facts(journal: &Path) -> Vec<Value> {
    let text = fs::read_to_string(journal).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).map(|line| line["fact"].clone()).collect()
}

pub(crate) fn kind(fact: &Value) -> String {
    fact["kind"].as_str().unwrap_or_default().to_owned()
}

/// Everything that a person would compare.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) commits: Vec<(String, String)>,
    spec: String,
    verdicts: Vec<String>,
    state: String,
    status: String,
    pub(crate) stories_with_kept_work: BTreeSet<String>,
}

/// The commits, with their trees.
fn commits_of(scene: &Scene) -> Vec<(String, String)> {
    let tree = |hash: &str| scene.git(&["rev-parse", &format!("{hash}^{{tree}}")]);
    scene.landed().into_iter().map(|commit| (commit.subject, tree(&commit.hash))).collect()
}

fn changes_of(scene: &Scene) -> String {
    scene.git(&["status", "--porcelain", "--untracked-files=all"])
}

pub(crate) fn end_of(scene: &Scene) -> End {
    let status = scene.status();
    let stories = status["stories"].as_array().unwrap();
    End {
        commits: commits_of(scene),
        spec: scene.read("prd.json"),
        verdicts: stories.iter().map(|s| format!("{} {} {}", s["id"], s["state"], s["verified"])).collect(),
        state: status["state"].as_str().unwrap_or_default().to_owned(),
        status: changes_of(scene),
        stories_with_kept_work: scene
            .kept_refs()
            .iter()
            .filter(|name| !name.contains("/held/"))
            .filter_map(|name| name.split('/').nth(3).map(str::to_owned))
            .collect(),
    }
}

/// Stops the process once its journal has that many lines, and kills it with all that it has started. Returns the facts
/// that the journal held then; none if the process ended before.
pub(crate) fn kill_at(scene: &Scene, mut running: Running, lines: usize) -> Option<Vec<Value>> {
    let mut journal = None;
    loop {
        if !running.is_running() {
            running.wait().exits(0);
            return None;
        }
        journal = journal.or_else(|| scene.journals().pop());
        let written = journal.as_ref().and_then(|path| fs::read(path).ok()).unwrap_or_default();
        if written.split(|b| *b == b'\n').count() > lines {
            break;
        }
        std::thread::sleep(LOOK);
    }
    // It goes no further from here on, so that the others are killed at the same point of the run.
    running.signal(Signal::STOP);
    let held = facts(journal.as_ref().unwrap());
    eventually("everything to be killed", || {
        let mut alive = alive_with_mark(&scene.root());
        alive.retain(|pid| *pid != running.id());
        for pid in &alive {
            let _gone_already = kill_process(Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(), Signal::KILL);
        }
        alive.is_empty()
    });
    running.crash();
    Some(held)
}

fn landed(facts: &[Value]) -> usize {
    facts.iter().filter(|fact| kind(fact) == "landed").count()
}

/// Kills after line `at`, again after the first line of the recovery, and resumes. Returns the kind of fact after which
/// it was killed; none if the run was over before.
fn disturbed(at: usize, undisturbed: &End, undisturbed_calls: usize) -> Option<String> {
    let scene = ready();
    let held = kill_at(&scene, start(&scene, FLAGS), at)?;
    let before = landed(&held);
    let over = |facts: &[Value]| facts.last().is_some_and(|fact| kind(fact) == "run_ended");
    if !over(&held) {
        let again = kill_at(&scene, scene.start(&["resume", "--headless"]), held.len() + 1);
        if again.is_some_and(|held| !over(&held)) {
            scene.run(&["resume", "--headless"]).exits(0);
        }
    }
    let last = held.last().map(kind).unwrap_or_default();
    let place = format!("killed after line {} of the journal, {last}", held.len());
    let mut end = end_of(&scene);
    assert!(end.stories_with_kept_work.is_superset(&undisturbed.stories_with_kept_work), "{place}: {end:?}");
    end.stories_with_kept_work.clone_from(&undisturbed.stories_with_kept_work);
    assert_eq!(end, *undisturbed, "{place}");
    assert!(passes(&scene, "S1") && passes(&scene, "S2"), "{place}");
    let calls = scene.calls().len();
    assert!(calls <= undisturbed_calls + 2 * CALLS_AN_ATTEMPT, "{place}: {calls} calls of the agent");
    if before > 0 {
        let alpha = scene.calls_of("Alpha lamp").len();
        assert!(alpha <= 1 + CALLS_AN_ATTEMPT, "{place}: a story that had landed was done again ({alpha} calls)");
    }
    scene.nothing_runs();
    Some(last)
}

/// Does it for every line of a journal of so many but the last, several at once; the kinds of facts that were hit.
pub(crate) fn at_every_line(lines: usize, disturb: impl Fn(usize) -> Option<String> + Sync) -> BTreeSet<String> {
    let next = AtomicUsize::new(1);
    let hit = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= lines {
                        return;
                    }
                    let last = disturb(at);
                    hit.lock().unwrap().extend(last);
                }
            });
        }
    });
    hit.into_inner().unwrap()
}

#[test]
fn b36_killed_after_any_line_of_its_journal_and_again_while_it_recovers_a_run_ends_as_if_undisturbed() {
    let scene = ready();
    start(&scene, FLAGS).wait().exits(0);
    let (undisturbed, calls) = (end_of(&scene), scene.calls().len());
    assert_eq!(undisturbed.commits.len(), 2, "{undisturbed:#?}");
    assert!(undisturbed.verdicts.iter().all(|v| v.ends_with("\"passed\" true")), "{undisturbed:#?}");
    assert_eq!(undisturbed.stories_with_kept_work, BTreeSet::from(["S2".to_owned()]), "the failed attempt is kept");
    let all = facts(&scene.journals().pop().unwrap());
    for kind_of_fact in ["landed", "reverted", "woke"] {
        assert!(all.iter().any(|f| kind(f) == kind_of_fact), "no {kind_of_fact} in {all:#?}");
    }
    assert!(all.iter().any(|f| kind(f) == "agent_started" && f["call"] == 1), "no repair in {all:#?}");
    let hooks = fs::read_to_string(scene.outside("hooks")).unwrap();
    assert_eq!((calls, hooks.lines().count()), (CALLS, 2), "{all:#?}");

    let hit = at_every_line(all.len(), |at| disturbed(at, &undisturbed, calls));
    let slow = ["agent_started", "agent_ended", "check_started", "check_finished", "checkpoint_taken"];
    let missed: Vec<_> = slow.iter().filter(|kind| !hit.contains(**kind)).collect();
    assert!(missed.len() <= 1, "killed after {hit:?}, never after {missed:?}");
}

/// Kills after line `at`, deletes the journal, and begins anew from files and commits. Returns the kind of fact after which it
/// was killed; none if the run was over before.
fn without_its_journal(at: usize, undisturbed: &End) -> Option<String> {
    let scene = ready();
    let held = kill_at(&scene, start(&scene, FLAGS), at)?;
    for journal in scene.journals() {
        fs::remove_file(journal).unwrap();
    }
    let last = held.last().map(kind).unwrap_or_default();
    let place = format!("the journal was deleted after its line {}, {last}", held.len());
    let outcome = start(&scene, &[FLAGS, &["--fresh"]].concat()).wait();
    assert_eq!(outcome.code(), Some(0), "{place}: {}", outcome.output());
    // How the new run stands is not compared: where all has landed there is none.
    let End { commits, spec, status, .. } = undisturbed;
    assert_eq!((&commits_of(&scene), &scene.read("prd.json"), &changes_of(&scene)), (commits, spec, status), "{place}");
    if landed(&held) > 0 {
        let alpha = scene.calls_of("Alpha lamp").len();
        assert!(alpha <= 1 + CALLS_AN_ATTEMPT, "{place}: a story that had landed was done again ({alpha} calls)");
    }
    scene.nothing_runs();
    Some(last)
}

#[test]
fn f36_with_the_journal_deleted_after_any_of_its_lines_files_and_commits_lead_to_the_same_tree() {
    let scene = ready();
    start(&scene, FLAGS).wait().exits(0);
    let undisturbed = end_of(&scene);
    let lines = facts(&scene.journals().pop().unwrap()).len();
    let hit = at_every_line(lines, |at| without_its_journal(at, &undisturbed));
    assert!(hit.contains("landed") || hit.contains("checkpoint_taken"), "{hit:?}");
}

#[test]
fn an_agent_that_outlives_its_supervisor_is_ended_before_the_run_goes_on() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()[..1]));
    scene.commit_all("Plan");
    let (begun, late) = (scene.outside("begun"), scene.outside("late"));
    scene.scripted_agent(&AgentScript::always([call()
        .ignore_term()
        .touch(&begun)
        .wait_for(&late)
        .write("late.txt", "from the dead run")
        .hang()]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    running.signal(Signal::STOP);
    let supervisors: Vec<u32> = alive_with_mark(&scene.root())
        .into_iter()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| c.windows(11).any(|w| w == b"__supervise"))
        })
        .collect();
    assert!(!supervisors.is_empty());
    for pid in supervisors {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    running.crash();
    assert!(!alive_with_mark(&scene.root()).is_empty(), "the agent has outlived both");
    scene.scripted_agent(&AgentScript::always([call().touch(&late).write("a.txt", "on").complete()]));
    scene.run(&["resume", "--headless"]).exits(0);
    scene.nothing_runs();
    assert!(!scene.path("late.txt").exists());
    scene.tree_is_clean();
    assert_eq!(scene.landed().len(), 1);
}

/// A run that dies in the middle of its first attempt.
fn dead_in_the_middle() -> Scene {
    dead_in_the_middle_of(&[])
}

/// The same of a run with these flags.
fn dead_in_the_middle_of(flags: &[&str]) -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").touch(&begun).hang()]));
    let running = start(&scene, flags);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    scene.scripted_agent(
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "on").complete()])
            .story("Beta lamp", [call().write("b.txt", "on").complete()]),
    );
    scene
}

/// Locks that git leaves when it is killed, of the repository and of one of the dead run's own refs.
fn leave_locks(scene: &Scene) -> Vec<std::path::PathBuf> {
    let run = scene.status()["run"].as_str().unwrap().to_owned();
    let of_an_attempt = format!("refs/ralphloop/{run}/S1/1.lock");
    let locks = ["packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "worktrees/lane-1/HEAD.lock", &of_an_attempt];
    let locks: Vec<_> = locks.iter().map(|lock| scene.path(".git").join(lock)).collect();
    for lock in &locks {
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(lock, "").unwrap();
    }
    locks
}

#[test]
fn locks_that_git_of_a_dead_run_left_are_taken_away_when_it_is_gone_on_with() {
    let scene = dead_in_the_middle_of(&["--worktree"]);
    let locks = leave_locks(&scene);
    let outcome = scene.run(&["resume", "--headless"]).exits(0);
    for lock in locks {
        let name = lock.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(!lock.exists() && outcome.stderr.contains(&name), "{name}: {}", outcome.output());
    }
    assert_eq!(scene.landed().len(), 2);
}

#[test]
fn a_lock_that_somebody_may_hold_is_left_to_its_owner() {
    // Made after the run's last sign of life.
    let scene = dead_in_the_middle_of(&["--worktree"]);
    let lock = scene.path(".git/packed-refs.lock");
    fs::write(&lock, "").unwrap();
    let later = std::time::SystemTime::now() + Duration::from_mins(1);
    fs::File::options().write(true).open(&lock).unwrap().set_modified(later).unwrap();
    scene.run(&["resume", "--headless"]).exits(6).says("packed-refs.lock");
    // Git is at work here.
    let scene = dead_in_the_middle_of(&["--worktree"]);
    fs::write(scene.path(".git/packed-refs.lock"), "").unwrap();
    let mut git = scene.command("git").args(["-c", "alias.wait=!sleep 60", "wait"]).spawn().unwrap();
    scene.run(&["resume", "--headless"]).exits(6).says("packed-refs.lock");
    assert!(scene.path(".git/packed-refs.lock").exists());
    git.kill().unwrap();
    git.wait().unwrap();
}

/// Commits as a person does some time after the crash.
fn commit_later(scene: &Scene, file: &str) -> String {
    scene.write(file, "by hand");
    scene.git(&["add", file]);
    let later = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 60;
    let made = scene
        .command("git")
        .args(["commit", "--quiet", "--message", "By hand"])
        .env("GIT_COMMITTER_DATE", format!("@{later} +0000"))
        .status()
        .unwrap();
    assert!(made.success());
    scene.head()
}

#[test]
fn f37_what_a_person_committed_after_the_crash_is_not_taken_off_the_branch() {
    let scene = dead_in_the_middle();
    let mine = commit_later(&scene, "mine.txt");
    let base = scene.git(&["rev-parse", "refs/testkit/scene-start"]);
    for arguments in [
        &["resume", "--headless"][..],
        &["run", "prd.json", "--headless"],
        &["run", "prd.json", "--headless", "--fresh"],
    ] {
        let refused = scene.run(arguments).exits(6);
        refused.says("By hand").says("git format-patch").says("git reset --soft");
        assert_eq!(scene.head(), mine);
        assert_eq!(scene.read("mine.txt"), "by hand");
        assert_eq!(scene.read("half.txt"), "x");
    }
    // What the message says to do.
    let patch = scene.outside("saved.patch");
    let text = scene.git(&["format-patch", "--stdout", &format!("{mine}^..HEAD")]);
    fs::write(&patch, text + "\n").unwrap();
    scene.git(&["reset", "--soft", &base]);
    scene.run(&["resume", "--headless"]).exits(0);
    scene.git(&["am", "--quiet", &patch.display().to_string()]);
    assert_eq!(scene.read("mine.txt"), "by hand");
    assert_eq!(scene.landed().len(), 3);
    scene.tree_is_clean();
}

#[test]
fn f37_what_the_agent_committed_before_the_crash_is_put_back_and_kept() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let (begun, base) = (scene.outside("begun"), scene.head());
    let commit = "git add half.txt && git commit -qm 'By the agent'";
    scene.scripted_agent(&AgentScript::always([call().write("half.txt", "x").shell(commit).touch(&begun).hang()]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    assert_ne!(scene.head(), base);
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").complete()]));
    scene.run(&["resume", "--headless"]);
    assert!(!scene.landed_subjects().iter().any(|s| s == "By the agent"), "{:?}", scene.landed_subjects());
    assert!(!scene.path("half.txt").exists());
    assert!(scene.kept_refs().iter().any(|r| scene.git_succeeds(&["cat-file", "-e", &format!("{r}:half.txt")])));
}
