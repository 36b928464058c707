//! The sandbox as a user meets it: asked for, not to be had, opened a little; and runaways, and branches that are protected.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;

use ralphloop_testkit::scene::{Outcome, Scene};

use crate::world::{ONCE, binary, prd_text, reason, run, scene, story};

/// A scene whose agent runs this script, and says that it is done.
fn with_agent(script: &str) -> Scene {
    let mut scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.commit_all("Plan");
    let agent =
        scene.program("agent", &format!("#!/bin/sh\ncat >/dev/null\n{script}\necho '<promise>COMPLETE</promise>'\n"));
    scene.set_env("RALPHLOOP_AGENT_COMMAND", agent);
    scene
}

/// Runs the binary where nobody can make namespaces.
#[expect(clippy::print_stderr, reason = "whoever reads what the tests said has to know")]
fn without_namespaces(scene: &Scene, flags: &[&str]) -> Option<(Option<i32>, String)> {
    let mut command: Command = scene.command("/usr/bin/unshare");
    let inner = "echo 0 > /proc/sys/user/max_user_namespaces && \
                 exec /usr/bin/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs -- \"$0\" \"$@\"";
    command.args(["--user", "--map-root-user", "/bin/sh", "-c", inner]).arg(binary());
    let output = command.args(["run", "prd.json", "--headless"]).args(ONCE).args(flags).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("unshare:") || said.contains("setpriv:") {
        eprintln!("SKIPPED: this machine makes no namespace to take the others away in: {said}");
        return None;
    }
    Some((output.status.code(), said))
}

#[test]
fn a_sandbox_that_was_asked_for_and_cannot_be_had_starts_nothing_and_says_what_helps() {
    let scene = with_agent("echo on > lamp.txt; touch \"$HOME/started\"");
    let Some((code, said)) = without_namespaces(&scene, &["--sandbox", "workspace"]) else { return };
    assert_eq!(code, Some(6), "{said}");
    for word in
        ["cannot be had on this machine", "namespaces:", "bubblewrap:", "nothing was started", "max_user_namespaces"]
    {
        assert!(said.contains(word), "{word:?} in {said}");
    }
    assert!(!scene.outside("home/started").exists(), "an agent was started\n{said}");
    assert!(scene.journals().is_empty());
}

#[test]
fn an_agent_in_a_worktree_stays_inside_if_that_is_asked_for() {
    let outside = "echo on > lamp.txt; echo x > \"$HOME/reached\"";
    let scene = with_agent(outside);
    run(&scene, &[&["--worktree"], ONCE].concat()).exits(0);
    assert!(scene.outside("home/reached").exists(), "nobody asked for a sandbox");
    let scene = with_agent(outside);
    let outcome = run(&scene, &[&["--worktree", "--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        outcome.exits(0);
        assert!(!scene.outside("home/reached").exists(), "the home folder was written");
    }
}

/// Whether there was a sandbox; a machine that has none says so, and then nothing can be tested.
#[expect(clippy::print_stderr, reason = "whoever reads what the tests said has to know")]
#[track_caller]
fn sandboxed(outcome: &Outcome) -> bool {
    let there = outcome.stderr.contains("the sandbox `");
    assert!(!outcome.stderr.contains("does not hold"), "a sandbox that is there and leaks: {}", outcome.stderr);
    if !there {
        eprintln!("SKIPPED: this machine has no sandbox: {}", outcome.stderr);
    }
    there
}

#[test]
fn folders_that_the_user_opens_can_be_written_and_one_that_holds_everything_cannot_be_opened() {
    let scene = with_agent("echo on > lamp.txt; echo x > \"$HOME/cache/entry\"; cat \"$HOME/.npmrc\" > seen.txt");
    std::fs::create_dir(scene.outside("home/cache")).unwrap();
    std::fs::write(scene.outside("home/.npmrc"), "mine\n").unwrap();
    scene.write(
        "ralphloop.toml",
        "sandbox = \"workspace\"\nsandbox_write = [\"~/cache\"]\nsandbox_read = [\"~/.npmrc\"]\n",
    );
    scene.commit_all("Settings");
    let flags = [&["--sandbox", "workspace"], ONCE].concat();
    let outcome = run(&scene, &flags);
    if sandboxed(&outcome) {
        outcome.exits(0);
        assert_eq!(std::fs::read_to_string(scene.outside("home/cache/entry")).unwrap(), "x\n");
        assert_eq!(scene.read("seen.txt"), "mine\n");
    }
    let scene = with_agent("echo on > lamp.txt");
    scene.write("ralphloop.toml", "sandbox_write = [\"~\"]\n");
    scene.commit_all("Too wide");
    run(&scene, &flags).exits(6).says("cannot be opened to the sandbox");
}

#[test]
fn what_an_agents_own_settings_say_to_run_is_not_written_from_inside() {
    let scene = with_agent("echo x > \"$HOME/.claude/settings.json\"; echo x > \"$HOME/.claude/memory\"");
    std::fs::create_dir(scene.outside("home/.claude")).unwrap();
    std::fs::write(scene.outside("home/.claude/settings.json"), "{}").unwrap();
    let outcome = run(&scene, &[&["--agent-format", "claude", "--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        assert_eq!(std::fs::read_to_string(scene.outside("home/.claude/memory")).unwrap(), "x\n", "{}", outcome.stderr);
        assert_eq!(std::fs::read_to_string(scene.outside("home/.claude/settings.json")).unwrap(), "{}");
    }
}

#[test]
fn filters_that_git_starts_outside_are_named() {
    let scene = with_agent("echo on > lamp.txt");
    scene.git(&["config", "filter.polish.clean", "python3 -m polish"]);
    scene.git(&["config", "filter.lfs.clean", "git-lfs clean -- %f"]);
    let outcome = run(&scene, &[&["--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        let outcome = outcome.exits(0).says("outside of the sandbox: filter.polish.clean (`python3 -m polish`)");
        assert!(!outcome.output().contains("filter.lfs"), "{outcome}");
    }
    assert!(!run(&with_agent("echo on > lamp.txt"), ONCE).output().contains("outside of the sandbox"));
}

#[test]
fn settings_of_an_agent_that_are_not_there_are_not_made_from_inside() {
    let scene = with_agent(
        "mkdir -p \"$HOME/.claude/hooks\"; echo x > \"$HOME/.claude/settings.json\"; echo x > \"$HOME/.claude/hooks/x\"; \
         echo x > \"$HOME/.claude/memory\"",
    );
    let outcome = run(&scene, &[&["--agent-format", "claude", "--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        assert_eq!(std::fs::read_to_string(scene.outside("home/.claude/memory")).unwrap(), "x\n", "{}", outcome.stderr);
        assert_eq!(std::fs::read_to_string(scene.outside("home/.claude/settings.json")).unwrap(), "{}\n");
        assert!(!scene.outside("home/.claude/hooks/x").exists());
    }
}

/// A server on this machine that greets whoever comes, until the test is over.
fn greeter() -> u16 {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in server.incoming().flatten() {
            // Who has gone again needs no greeting.
            drop(writeln!(&stream, "hello"));
        }
    });
    port
}

#[test]
fn at_strict_an_agent_reaches_the_hosts_that_are_named_and_hears_and_tells_of_others() {
    for by in ["namespaces", "bubblewrap"] {
        reaches_what_is_named(by);
    }
}

fn reaches_what_is_named(by: &str) {
    let (named, other) = (greeter(), greeter());
    let mut scene = with_agent(&format!(
        r#"exec bash -c '
say() {{ head -c "$1" <&3; exec 3<&-; }}
via() {{ exec 3<>/dev/tcp/127.0.0.1/${{HTTPS_PROXY##*:}}; printf "CONNECT %s HTTP/1.1\r\n\r\n" "$1" >&3; }}
{{
  exec 3<>/dev/tcp/127.0.0.1/{named} && echo "named $(say 5)"
  (exec 3<>/dev/tcp/127.0.0.1/{other}) 2>/dev/null || echo "other refused"
  (exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null || echo "outside refused"
  via 127.0.0.1:{named} && echo "by proxy $(say 12)"
  via 127.0.0.1:{other} && echo "by proxy $(say 12)"
  via lamp.example:443 && echo "by proxy $(say 12)"
}} > seen.txt
echo "<promise>COMPLETE</promise>"'"#
    ));
    if std::path::Path::new(BWRAP).exists() {
        std::os::unix::fs::symlink(BWRAP, scene.outside("tools/bwrap")).unwrap();
    }
    scene.set_env("RALPHLOOP_SANDBOX_BY", by);
    scene.write("ralphloop.toml", format!("sandbox_hosts = [\"127.0.0.1:{named}\"]\n"));
    scene.commit_all("Settings");
    // A gate has nobody to talk to at all.
    let gate = format!("! test -e seen.txt || ! bash -c 'exec 3<>/dev/tcp/127.0.0.1/{named}' 2>/dev/null");
    let outcome = run(&scene, &[&["--sandbox", "strict", "--gate", &gate], ONCE].concat());
    if sandboxed(&outcome) {
        outcome
            .exits(0)
            .says("from reaching")
            .says(&format!("127.0.0.1:{other}, lamp.example:443"))
            .says("sandbox_hosts");
        assert_eq!(
            scene.read("seen.txt"),
            "named hello\nother refused\noutside refused\nby proxy HTTP/1.1 200\nby proxy HTTP/1.1 403\nby proxy HTTP/1.1 403\n"
        );
    }
}

const BWRAP: &str = "/usr/bin/bwrap";

/// Has bubblewrap make the sandbox; before each one this script does something.
fn by_bubblewrap_after(scene: &mut Scene, script: &str) {
    let program = scene.program("bwrap", &format!("#!/bin/sh\n{script}\nexec {BWRAP} \"$@\"\n"));
    std::os::unix::fs::symlink(program, scene.outside("tools/bwrap")).unwrap();
    scene.set_env("RALPHLOOP_SANDBOX_BY", "bubblewrap");
}

#[test]
fn a_socket_that_closes_while_it_is_to_be_covered_keeps_nothing_from_starting() {
    let mut scene = with_agent("echo on > lamp.txt");
    let socket = scene.outside("home/server.sock");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    by_bubblewrap_after(&mut scene, &format!("rm -f {}", socket.display()));
    let outcome = run(&scene, &[&["--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        outcome.exits(0);
        assert!(!socket.exists(), "bubblewrap was not asked");
    }
}

#[test]
fn a_sandbox_that_can_no_more_be_made_is_not_the_storys_failure() {
    let mut scene = with_agent("echo on > lamp.txt");
    let refusal = "case \"$*\" in *bin/agent*) echo 'bwrap: No more namespaces' >&2; exit 1;; esac";
    by_bubblewrap_after(&mut scene, refusal);
    let outcome = run(&scene, &[&["--sandbox", "workspace"], ONCE].concat());
    if sandboxed(&outcome) {
        outcome.exits(6).says("bwrap: No more namespaces").says("ralphloop doctor");
        assert!(!scene.path("lamp.txt").exists());
    }
}

#[test]
fn a_runaway_agent_is_ended_with_all_it_started_and_named() {
    let scene = with_agent("while :; do sleep 600 & done");
    run(&scene, &[&["--max-processes", "40"], ONCE].concat()).exits(1);
    let reason = reason(&scene, "S1");
    assert!(reason.contains("runaway") && reason.contains("more than the 40 of max_processes"), "{reason}");
    scene.nothing_runs();
}

#[test]
fn a_runaway_gate_fails_the_story_with_its_name() {
    let scene = with_agent("echo on > lamp.txt");
    let gate = "test ! -e lamp.txt || while :; do echo on and on and on and on and on and on and on and on; done";
    run(&scene, &[&["--max-output", "1MiB", "--gate", gate], ONCE].concat()).exits(1);
    let reason = reason(&scene, "S1");
    assert!(reason.contains("runaway") && reason.contains("max_output"), "{reason}");
}

#[test]
fn nothing_is_committed_to_a_protected_branch() {
    let scene = with_agent("echo on > lamp.txt");
    scene.write("ralphloop.toml", "protected_branches = [\"ma*\"]\n");
    scene.commit_all("Protect");
    run(&scene, ONCE).exits(2).says("nothing may be committed to the branch main").says("--branch");
    assert!(scene.journals().is_empty());
    run(&scene, &[&["--branch", "feature"], ONCE].concat()).exits(0);
}
