//! What is printed, where, and in which form.

use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{prd_scene, prd_text, run, scene, story, two_stories};

fn lamps() -> AgentScript {
    AgentScript::always([call().write("b.txt", "on").complete()])
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
}

#[test]
fn json_prints_events_and_nothing_else_on_stdout() {
    let scene = prd_scene(&two_stories(), &lamps());
    let events = run(&scene, &["--json"]).exits(0).json_lines();
    assert!(events.len() > 5, "{events:#?}");
}

#[test]
fn json_prints_only_events_also_when_the_run_is_refused_or_fails() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().failed("glued in")]));
    run(&scene, &["--json", "--max-retries", "0"]).exits(1).json_lines();
    let refused = scene.run(&["run", "no-such-file.json", "--json"]).exits(2);
    refused.json_lines();
}

#[test]
fn without_a_terminal_lines_carry_the_time_and_the_name_and_go_to_stderr() {
    let scene = prd_scene(&two_stories(), &lamps());
    let outcome = run(&scene, &[]).exits(0);
    let line =
        outcome.stderr.lines().find(|l| l.contains("Starting iteration 1")).unwrap_or_else(|| panic!("{outcome}"));
    let (stamp, rest) = line.split_once("] ").unwrap();
    assert!(stamp.starts_with("[20") && stamp.ends_with('Z') && stamp.len() == "[2026-01-17T14:00:00Z".len(), "{line}");
    assert_eq!(rest, "ralphloop: Starting iteration 1 (story 1 of 2: \"Alpha lamp\")");
    assert!(!outcome.stdout.contains("Starting iteration"), "{outcome}");
}

#[test]
fn there_is_no_colour_without_a_terminal_unless_it_is_forced() {
    let mut scene = prd_scene(&two_stories(), &lamps());
    run(&scene, &[]).exits(0).never_says("\u{1b}");
    scene.run(&["list"]).never_says("\u{1b}");
    scene.set_env("CLICOLOR_FORCE", "1");
    scene.set_env("NO_COLOR", "1");
    scene.run(&["status"]).never_says("\u{1b}");
}

#[test]
fn b31_control_characters_from_the_agent_or_a_spec_never_reach_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[31mred\u{1b}[2J";
    let scene = prd_scene(
        &[story("S1", &format!("Alpha {evil} lamp"))],
        &AgentScript::always([call().say(evil).write("a.txt", "on").failed(&format!("because {evil}"))]),
    );
    run(&scene, &["--max-retries", "0", "--gate", "true"]).exits(1).never_says("\u{1b}").never_says("\u{7}");
    for verb in [&["status"][..], &["log"], &["list"], &["show", "prd.json"], &["runs"]] {
        scene.run(verb).never_says("\u{1b}").never_says("\u{7}");
    }
}

#[test]
fn durations_are_read_in_every_form_and_nonsense_is_refused() {
    let scene = prd_scene(&two_stories(), &lamps());
    for good in ["90s", "10m", "1h30m", "45"] {
        scene.run(&["run", "prd.json", "--dry-run", "--agent-timeout", good]).exits(0);
    }
    for bad in ["", "soon", "-5", "10 parsecs", "1.5.2", "5m3", "99999999999999999999h"] {
        scene.run(&["run", "prd.json", "--dry-run", &format!("--agent-timeout={bad}")]).exits(2);
    }
}

#[test]
fn dry_run_tells_order_prompts_and_gates_and_neither_spawns_nor_writes() {
    let scene = prd_scene(&[story("S1", "Alpha lamp").after(&["S2"]), story("S2", "Beta lamp")], &lamps());
    let before = scene.snapshot();
    let outcome = run(&scene, &["--dry-run", "--gate", "make check-lamps"]).exits(0).says("make check-lamps");
    let (beta, alpha) = (outcome.stdout.find("Beta lamp").unwrap(), outcome.stdout.find("Alpha lamp").unwrap());
    assert!(beta < alpha, "{outcome}");
    assert_eq!(scene.snapshot(), before);
    assert_eq!(scene.calls().len(), 0);
    assert!(scene.journals().is_empty());
}

#[test]
fn no_path_of_the_output_is_cut_by_a_reader_that_goes_away() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    scene.scripted_agent(&lamps());
    let mut child = scene
        .command(crate::world::binary())
        .args(["run", "prd.json", "--headless", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    assert_ne!(output.status.code(), Some(101));
    scene.nothing_runs();
    scene.tree_is_clean();
}

/// What a terminal of its own shows of a run, codes included.
fn on_a_terminal(arguments: &str) -> String {
    let mut scene = prd_scene(&two_stories(), &lamps());
    scene.set_env("TERM", "xterm-256color");
    let binary = crate::world::binary();
    let command = format!("'{}' run prd.json --gate true {arguments}", binary.display());
    // `script` of util-linux makes a pseudo-terminal.
    let paths = std::env::var_os("PATH").unwrap();
    let script = std::env::split_paths(&paths).map(|folder| folder.join("script")).find(|path| path.is_file()).unwrap();
    let output = scene.command(script).args(["-qec", &command, "/dev/null"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const ERASED: &str = "\r\u{1b}[2K";

#[test]
fn a_terminal_that_nobody_types_at_shows_colours_and_one_line_of_what_happens_now() {
    let shown = on_a_terminal("</dev/null");
    assert!(shown.contains("story 1 of 2 · "), "{shown:?}");
    assert!(shown.contains("Alpha lamp · the agent works"), "{shown:?}");
    let after_the_last = shown.rsplit(ERASED).next().unwrap();
    assert!(shown.contains(ERASED) && !after_the_last.contains(" of 2 · "), "no line is left behind: {shown:?}");
    assert!(shown.contains("\u{1b}[32m"), "what was proven is green: {shown:?}");
}

#[test]
fn headless_on_a_terminal_prints_plain_lines_and_no_line_of_now() {
    let shown = on_a_terminal("--headless");
    assert!(shown.contains("ralphloop: Starting iteration 1"), "{shown:?}");
    assert!(!shown.contains(ERASED) && !shown.contains("story 1 of 2 · "), "{shown:?}");
}
