//! Breaking out of the sandbox: what an agent, or a gate that runs what an agent wrote, could try, one by one. Everything
//! here has to fail, and to fail visibly: with an error that the one who tries it sees.
//!
//! Each line is for `sh`; it has broken out if it ends with success. `$top` is the working tree, `$common` git's common
//! folder, `$outside` a folder of the user's, `$remote` a repository that the user pushes to, `$run` the folder of control
//! sockets, `$tool` a program on the user's path, `$home` the home folder, `$loop` the process that drives the run, `$agent`
//! the socket of a key agent that a variable names, `$nameless` a socket without a file, `$included` a file of the working
//! tree that git's configuration includes. `calls.py` makes the system calls that no shell makes; 7 is a file of the user's
//! that was open for writing when the loop was started.

mod attempts;
mod left_behind;

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use ralphloop_testkit::scene::Scene;

use attempts::{ATTEMPTS, Attempt, STRICT_ATTEMPTS};

use crate::world::{binary, prd_text, story};

/// The script that tries them all: a line each, number, result, first words of the error.
fn script(attempts: &[&[Attempt]]) -> String {
    let mut text = "cd \"$top\" || exit 9\n".to_owned();
    for (number, attempt) in attempts.iter().copied().flatten().enumerate() {
        let file = "${TMPDIR:-/tmp}/said";
        let Attempt(_, tries) = attempt;
        let _ = writeln!(
            text,
            "( {tries}\n) >\"{file}\" 2>&1 </dev/null; code=$?\n\
             if [ $code = 0 ]; then echo \"{number} OUT\"; else echo \"{number} kept $code $(head -c 200 \"{file}\" | tr '\\n' ' ')\"; fi"
        );
    }
    text.push_str("rm -rf \"$top\"/l[1-7] \"$top\"/evil \"$top\"/c \"$top\"/g \"$top\"/disk\n");
    text
}

/// Everything that is worth breaking out for, with a repository in it.
fn prey(who: Who) -> Scene {
    let mut scene = Scene::new_in(&beside_temporary_files(who), binary());
    let put = |path: &str, text: &str| {
        let path = scene.outside(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for secret in
        [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".git-credentials", ".gnupg/private-keys-v1.d/a.key"]
    {
        put(&format!("home/{secret}"), "secret\n");
    }
    for secret in
        [".config/gh/hosts.yml", ".npmrc", ".codex/auth.json", ".config/ralphloop/config.toml", ".bash_history"]
    {
        put(&format!("home/{secret}"), "# secret\n");
    }
    put("home/.bashrc", "");
    put("home/notes", "");
    put("outside/notes", "mine\n");
    scene.program("tool", "#!/bin/sh\n");
    for tool in ["mount", "umount", "unshare", "nsenter", "mknod", "su", "crontab", "chroot", "python3"] {
        for folder in ["/usr/bin", "/bin", "/usr/sbin", "/sbin"] {
            let program = Path::new(folder).join(tool);
            if program.exists() && !scene.outside("tools").join(tool).exists() {
                std::os::unix::fs::symlink(&program, scene.outside("tools").join(tool)).unwrap();
            }
        }
    }
    scene.git(&["init", "-q", "--bare", scene.outside("remote.git").to_str().unwrap()]);
    for (name, place) in
        [("outside", "outside"), ("remote", "remote.git"), ("run", "run"), ("tool", "bin/tool"), ("home", "home")]
    {
        scene.set_env(name, scene.outside(place));
    }
    drop(UnixListener::bind(scene.outside("home/agent.sock")).unwrap());
    for name in ["agent", "SSH_AUTH_SOCK"] {
        scene.set_env(name, scene.outside("home/agent.sock"));
    }
    scene.set_env("DISPLAY", ":0");
    scene.set_env("nameless", scene.root());
    scene.write("settings/project.gitconfig", "");
    scene.git(&["config", "include.path", "../settings/project.gitconfig"]);
    scene.set_env("included", scene.path("settings/project.gitconfig"));
    let submodule = scene.path("libs/sub");
    std::fs::create_dir_all(&submodule).unwrap();
    let submodule = submodule.to_str().unwrap();
    scene.git(&["init", "-q", submodule]);
    scene.git(&["-C", submodule, "commit", "-q", "--allow-empty", "-m", "Part"]);
    scene.set_env("common", scene.path(".git"));
    scene.set_env("binary", binary());
    scene.set_env("RALPHLOOP_SANDBOX", "workspace");
    scene.set_env("ipc", key().to_string());
    give_to(&scene, who);
    scene
}

/// A folder that a sandbox shows, as it does not show those for temporary files: there is more to be had. It has to be one
/// that the one who runs may go through.
fn beside_temporary_files(who: Who) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let open = |above: &Path| std::fs::metadata(above).is_ok_and(|found| found.mode() & 0o001 != 0);
    if who == Who::Myself || folder.ancestors().all(open) { folder } else { std::env::temp_dir() }
}

/// By which memory and messages that are shared outside are found: another one for each scene.
fn key() -> u32 {
    static MADE: AtomicU32 = AtomicU32::new(0);
    0x2000_0000 | (std::process::id() & 0x000f_ffff) << 8 | (MADE.fetch_add(1, Ordering::Relaxed) & 0xff)
}

/// Runs `calls.py` where nothing keeps it.
fn outside(scene: &Scene, way: &str) -> Output {
    scene.command(scene.outside("tools/python3")).arg(scene.path("calls.py")).arg(way).output().unwrap()
}

/// Whether this machine has a sandbox; where it has none, that is said, and nothing can be tested.
#[expect(clippy::print_stderr, reason = "whoever reads what the tests said has to know")]
fn there_is_one(scene: &Scene, who: Who) -> bool {
    let outcome = command(scene, who, &["doctor", "--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let said: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let finding = said["findings"].as_array().unwrap().iter().find(|f| f["area"] == "sandbox").cloned().unwrap();
    eprintln!("SANDBOX ({who:?}): {}", finding["message"].as_str().unwrap());
    let leaks = finding.to_string().contains("does not hold");
    assert!(!leaks, "a sandbox that is there and leaks is not one that is missing: {finding}");
    if finding["level"] != "ok" {
        eprintln!("SKIPPED: nothing was proven of the sandbox, since this machine has none");
    }
    finding["level"] == "ok"
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Myself,
    Nobody,
}

/// The binary, as somebody.
fn command(scene: &Scene, who: Who, arguments: &[&str]) -> Command {
    match who {
        Who::Myself => {
            let mut command = scene.command(binary());
            command.args(arguments);
            command
        }
        Who::Nobody => {
            let mut command = scene.command("/usr/bin/setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]);
            command.arg(binary()).args(arguments);
            command
        }
    }
}

/// Makes all files of the scene somebody's own.
fn give_to(scene: &Scene, who: Who) {
    let owner = if who == Who::Nobody { "65534:65534" } else { "0:0" };
    if i_am_root() {
        let given = Command::new("chown").args(["-R", owner]).arg(scene.root()).status().unwrap();
        assert!(given.success());
    }
}

/// As whom it can be tried: only root can become somebody else.
fn users() -> &'static [Who] {
    if i_am_root() { &[Who::Myself, Who::Nobody] } else { &[Who::Myself] }
}

fn i_am_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs a story whose agent, and then whose gate, tries everything; returns what each attempt came to.
fn try_all(scene: &Scene, who: Who, attempts: &[&[Attempt]], flags: &[&str]) -> Vec<String> {
    give_to(scene, Who::Myself);
    scene.write("prd.json", prd_text(&[story("S1", "Break out")]));
    scene.write("attempts.sh", script(attempts));
    scene.write("calls.py", include_str!("break_out/calls.py"));
    let agent = scene.program(
        "evil",
        "#!/bin/sh\ncat >/dev/null\nexport top=$(git rev-parse --show-toplevel)\nsh attempts.sh > report.txt 2>&1\n\
         echo '<promise>COMPLETE</promise>'\n",
    );
    // Before the agent it has nothing to do. It is kept as the agent was, attempt by attempt.
    scene.write(
        "gate.sh",
        "test -e report.txt || exit 0\nexport top=$(git rev-parse --show-toplevel)\nreport=$(sh attempts.sh 2>&1)\n\
         echo \"$report\" | grep ' OUT' && exit 1\n\
         test \"$(echo \"$report\" | grep -c ' kept ')\" = \"$(grep -c ' kept ' report.txt)\"\n",
    );
    scene.commit_all("Plan");
    let name = format!("ralphloop-break-out-bait-{}", scene.root().file_name().unwrap().display());
    let (bait, in_run) = (std::env::temp_dir().join(&name), Path::new("/run").join(&name));
    std::fs::write(&bait, "").unwrap();
    // Root alone can put something there.
    let in_run = std::fs::write(&in_run, "").is_ok().then_some(in_run);
    give_to(scene, who);
    let config = std::fs::read(scene.path(".git/config")).unwrap();
    let nameless = SocketAddr::from_abstract_name(scene.root().as_os_str().as_encoded_bytes()).unwrap();
    let _listening = UnixListener::bind_addr(&nameless).unwrap();
    let _quiet = UnixListener::bind(scene.outside("home/quiet.sock")).unwrap();
    let laid = outside(scene, "lay");
    assert!(laid.status.success(), "{}", String::from_utf8_lossy(&laid.stderr));
    let agent = format!("sh {}", agent.display());
    // The shell becomes the loop, so that its own number is known.
    let shell = "export loop=$$; exec 7>>\"$outside/notes\"; exec \"$0\" \"$@\"";
    let mut started = command(scene, who, &[]);
    let program = started.get_program().to_owned();
    let before: Vec<_> = started.get_args().map(ToOwned::to_owned).collect();
    started = scene.command("sh");
    started.arg("-c").arg(shell).arg(program).args(before);
    started.args(["run", "prd.json", "--headless", "--agent-command", &agent, "--gate", "sh gate.sh"]);
    started.args(["--max-retries", "0", "--max-repairs", "0"]).args(flags);
    let outcome = started.output().unwrap();
    assert!(outside(scene, "lift").status.success(), "what was shared outside is gone");
    in_run.into_iter().chain([bait]).for_each(|bait| std::fs::remove_file(bait).unwrap());
    let said = format!("{}\n{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    give_to(scene, Who::Myself);
    assert_eq!(outcome.status.code(), Some(0), "the agent kept inside lands its story\n{said}");
    assert!(said.contains("the sandbox `"), "{said}");
    // What the attempts say of themselves is one thing, what is there is another.
    assert_eq!(std::fs::read(scene.path(".git/config")).unwrap(), config, "git's configuration");
    assert_eq!(std::fs::read_to_string(scene.outside("outside/notes")).unwrap(), "mine\n");
    assert_eq!(std::fs::read_dir(scene.outside("outside")).unwrap().count(), 1, "files of the user's");
    assert!(!scene.path(".git/hooks/pre-commit").exists());
    assert_eq!(scene.git(&["-C", scene.outside("remote.git").to_str().unwrap(), "for-each-ref"]), "", "pushed");
    scene.git(&["show", "HEAD:report.txt"]).lines().map(str::to_owned).collect()
}

/// All were kept inside, and each saw so: it ended with an error.
#[track_caller]
fn all_kept(report: &[String], attempts: &[&[Attempt]]) {
    let all: Vec<&Attempt> = attempts.iter().copied().flatten().collect();
    let said: Vec<String> =
        report.iter().filter(|line| line.contains(" kept ") || line.ends_with(" OUT")).cloned().collect();
    assert_eq!(said.len(), all.len(), "{report:#?}");
    let out: Vec<String> = said
        .iter()
        .zip(&all)
        .filter(|(line, _)| line.ends_with(" OUT"))
        .map(|(line, Attempt(what, tries))| format!("{line}: {what}: {tries}"))
        .collect();
    assert_eq!(out, Vec::<String>::new(), "broke out");
}

/// What those are worth that a kernel may lack is known only where they are not kept; these get out on every one.
#[test]
fn what_is_tried_by_calls_gets_out_where_nothing_keeps_it() {
    let mut scene = prey(Who::Myself);
    scene.write("calls.py", include_str!("break_out/calls.py"));
    let mut other = scene.command("sleep").arg("60").spawn().unwrap();
    scene.set_env("loop", other.id().to_string());
    assert!(outside(&scene, "lay").status.success());
    for way in
        ["limit", "priority", "priorities", "disk_priority", "signal", "shared_memory", "message", "message_queue"]
    {
        let tried = outside(&scene, way);
        assert!(tried.status.success(), "{way}: {}", String::from_utf8_lossy(&tried.stderr));
    }
    assert!(outside(&scene, "lift").status.success());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn who_runs_as_oneself_breaks_out_neither_in_a_worktree_nor_in_the_checkout() {
    for flags in [&["--worktree"][..], &["--in-place"]] {
        let scene = prey(Who::Myself);
        if !there_is_one(&scene, Who::Myself) {
            return;
        }
        all_kept(&try_all(&scene, Who::Myself, &[ATTEMPTS], flags), &[ATTEMPTS]);
    }
}

#[test]
fn who_runs_as_an_ordinary_user_breaks_out_neither_in_a_worktree_nor_in_the_checkout() {
    if !i_am_root() {
        eprintln!("SKIPPED: only root can become somebody else; as oneself it is tried elsewhere");
        return;
    }
    for flags in [&["--worktree"][..], &["--in-place"]] {
        let scene = prey(Who::Nobody);
        if !there_is_one(&scene, Who::Nobody) {
            return;
        }
        all_kept(&try_all(&scene, Who::Nobody, &[ATTEMPTS], flags), &[ATTEMPTS]);
    }
}

/// Tries everything at the strict level, with a server of this machine to be reached.
fn all_kept_at_strict(mut scene: Scene, who: Who) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    scene.set_env("server", port.to_string());
    let met = std::thread::spawn(move || {
        let mut met = 0;
        for stream in server.incoming().flatten() {
            drop(writeln!(&stream, "hello"));
            met += 1;
            let mut word = [0; 4];
            if (&stream).read_exact(&mut word).is_ok() && &word == b"over" {
                break;
            }
        }
        met
    });
    let attempts = &[ATTEMPTS, STRICT_ATTEMPTS][..];
    let report = try_all(&scene, who, attempts, &["--worktree", "--sandbox", "strict"]);
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"over").unwrap();
    all_kept(&report, attempts);
    assert_eq!(met.join().unwrap(), 1, "somebody else than the test came to the server");
}

#[test]
fn a_strict_sandbox_also_keeps_what_can_only_be_read_and_the_network() {
    for who in users().iter().copied() {
        let scene = prey(who);
        if there_is_one(&scene, who) {
            all_kept_at_strict(scene, who);
        }
    }
}

/// The same with the other mechanism, which a machine has on which ralphloop itself may make no namespaces.
#[test]
fn who_is_kept_by_bubblewrap_breaks_out_neither_as_oneself_nor_as_an_ordinary_user() {
    for who in users().iter().copied() {
        for flags in [&["--worktree"][..], &["--in-place"]] {
            let scene = prey_of_bubblewrap(who);
            if !there_is_one(&scene, who) {
                return;
            }
            all_kept(&try_all(&scene, who, &[ATTEMPTS], flags), &[ATTEMPTS]);
        }
    }
}

#[test]
fn a_strict_sandbox_by_bubblewrap_keeps_the_same() {
    for who in users().iter().copied() {
        let scene = prey_of_bubblewrap(who);
        if there_is_one(&scene, who) {
            all_kept_at_strict(scene, who);
        }
    }
}

fn prey_of_bubblewrap(who: Who) -> Scene {
    let mut scene = prey(who);
    if Path::new("/usr/bin/bwrap").exists() {
        std::os::unix::fs::symlink("/usr/bin/bwrap", scene.outside("tools/bwrap")).unwrap();
    }
    scene.set_env("RALPHLOOP_SANDBOX_BY", "bubblewrap");
    scene
}
