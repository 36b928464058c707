//! The verbs that look at work and runs, and those that change one thing by hand.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{ONCE_AND_ON, called, prd_scene, prd_text, run, scene, start, story, two_stories};

/// A finished run: S1 passed, S2 failed after two attempts.
fn finished() -> Scene {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::new()
            .story("Alpha lamp", [call().say("screwing in the bulb").write("a.txt", "on").complete()])
            .story(
                "Beta lamp",
                [
                    call().write("try.txt", "one").failed("glued in"),
                    call().write("try.txt", "two").failed("still glued in"),
                ],
            ),
    );
    run(&scene, &["--max-retries", "1", "--on-exhausted", "skip"]).exits(1);
    scene
}

#[test]
fn status_json_has_every_field_of_its_contract() {
    let scene = finished();
    let status = scene.status();
    assert_eq!(status["work"], "prd:prd.json");
    assert_eq!(status["state"], "failed");
    assert_eq!(status["branch"], "main");
    assert_eq!((&status["passed"], &status["total"]), (&json!(1), &json!(2)));
    for key in ["run", "started_at", "ended_at"] {
        assert!(status[key].is_string(), "{key} in {status:#}");
    }
    assert!(status["started_at"].as_str().unwrap().ends_with('Z'));
    assert!((status["cost_usd"].as_f64().unwrap() - 0.03).abs() < 1e-9, "{status:#}");
    assert_eq!((&status["input_tokens"], &status["output_tokens"]), (&json!(3000), &json!(150)));

    let (first, second) = (&status["stories"][0], &status["stories"][1]);
    assert_eq!(
        (&first["id"], &first["title"], &first["state"]),
        (&json!("S1"), &json!("Alpha lamp"), &json!("passed"))
    );
    assert_eq!((&first["attempts"], &first["verified"]), (&json!(1), &json!(false)));
    assert_eq!(first["commit"], scene.head());
    assert!(first["duration_ms"].is_u64() && first["cost_usd"].is_number(), "{first:#}");
    assert_eq!((&second["state"], &second["attempts"]), (&json!("failed"), &json!(2)));
    assert!(second["reason"].as_str().unwrap().contains("still glued in"), "{second:#}");
}

#[test]
fn status_of_a_running_loop_names_its_process_and_the_story_in_work() {
    let scene = scene();
    scene.write("prd.json", prd_text(&two_stories()));
    scene.commit_all("Plan");
    let go_on = scene.outside("go-on");
    scene.scripted_agent(
        &AgentScript::always([call().write("b.txt", "on").complete()])
            .story("Alpha lamp", [call().wait_for(&go_on).write("a.txt", "on").complete()]),
    );
    let running = start(&scene, &[]);
    scene.wait_for_calls(1);
    let status = scene.status();
    assert_eq!(status["state"], "running");
    assert!(status["pid"].is_u64(), "{status:#}");
    assert_eq!(status["stories"][0]["state"], "running");
    scene.run(&["status"]).exits(0).says("Alpha lamp");
    std::fs::write(go_on, "").unwrap();
    running.wait().exits(0);
}

#[test]
fn status_without_any_run_says_so() {
    let outcome = scene().run(&["status"]);
    assert_ne!(outcome.code(), Some(101), "{outcome}");
    outcome.says("no run");
}

#[test]
fn status_and_log_work_from_a_folder_below() {
    let scene = finished();
    let below = scene.path("deep/er");
    std::fs::create_dir_all(&below).unwrap();
    for verb in ["status", "log", "runs"] {
        scene.start_in(&below, &[verb]).wait().exits(0);
    }
}

#[test]
fn runs_lists_all_newest_first() {
    let scene = finished();
    run(&scene, &[ONCE_AND_ON, &["--fresh"]].concat()).exits(1);
    let runs = scene.run(&["runs", "--json"]).exits(0).json();
    let runs = runs.as_array().unwrap_or_else(|| panic!("{runs:#}")).clone();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["run"], scene.status()["run"]);
    assert!(runs[0]["started_at"].as_str() >= runs[1]["started_at"].as_str(), "{runs:#?}");
    let older = runs[1]["run"].as_str().unwrap().to_owned();
    let status = scene.run(&["status", &older, "--json"]).exits(0).json();
    assert_eq!((&status["run"], &status["passed"]), (&json!(older), &json!(1)));
    scene.run(&["runs"]).exits(0).says(&older);
}

#[test]
fn an_unknown_run_is_an_error_that_names_it() {
    let scene = finished();
    for verb in [&["status", "nope"][..], &["log", "nope"], &["resume", "nope"], &["diff", "S1", "nope"]] {
        scene.run(verb).exits(2).says("nope");
    }
}

#[test]
fn log_tells_what_happened_oldest_first_and_can_be_narrowed() {
    let scene = finished();
    let whole = scene.run(&["log"]).exits(0);
    let (first, second) = (whole.stdout.find("Alpha lamp").unwrap(), whole.stdout.find("Beta lamp").unwrap());
    assert!(first < second, "{whole}");
    scene.run(&["log", "--story", "S1"]).exits(0).says("screwing in the bulb").never_says("glued in");
    scene.run(&["log", "--story", "S2", "--attempt", "2"]).exits(0).says("still glued in");
    assert!(scene.run(&["log", "--json"]).exits(0).json_lines().len() > 5);
}

#[test]
fn diff_shows_what_an_attempt_changed_also_a_failed_one() {
    let scene = finished();
    scene.run(&["diff", "S1"]).exits(0).says("a.txt");
    scene.run(&["diff", "S2#1"]).exits(0).says("try.txt").says("+one");
    scene.run(&["diff", "S2#2"]).exits(0).says("+two");
    scene.run(&["diff", "S2#9"]).exits(2).says("S2#9");
}

#[test]
fn verify_runs_gates_and_checks_on_the_tree_as_it_is_and_changes_nothing() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").check("test -f lamp.txt || { echo NO-LAMP; exit 1; }")],
        &AgentScript::new(),
    );
    let before = scene.snapshot();
    let outcome = scene.run(&["verify", "S1", "prd.json"]).exits(1).says("NO-LAMP");
    assert_eq!(scene.snapshot(), before, "{outcome}");
    scene.write("lamp.txt", "on");
    let before = scene.snapshot();
    scene.run(&["verify", "S1", "prd.json"]).exits(0);
    assert_eq!(scene.snapshot(), before);
    scene.run(&["verify", "S9", "prd.json"]).exits(2).says("S9");
    assert_eq!(scene.calls().len(), 0);
}

#[test]
fn mark_changes_the_one_flag_and_not_another_byte() {
    let scene = scene();
    let text = "{ \"userStories\" : [\n\t{\"id\":\"S1\",\"title\":\"A\\u2014B\",\"weight\":1.50,\"passes\":false},\n\t{\"id\":\"S2\",\"title\":\"C\",\"passes\":false} ] }";
    scene.write("prd.json", text);
    scene.run(&["mark", "prd.json", "S2"]).exits(0);
    assert_eq!(scene.read("prd.json"), text.replacen("\"C\",\"passes\":false", "\"C\",\"passes\":true", 1));
    scene.run(&["mark", "prd.json", "S9"]).exits(2).says("S9");
}

#[test]
fn mark_ticks_one_box_of_an_openspec_change() {
    let scene = scene();
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Lamp\r\n\r\n- [ ] 1.1 Bulb\r\n  * [ ] 1.2 Switch");
    scene.run(&["mark", "openspec:lamp", "1.2"]).exits(0);
    assert_eq!(scene.read("openspec/changes/lamp/tasks.md"), "## 1. Lamp\r\n\r\n- [ ] 1.1 Bulb\r\n  * [x] 1.2 Switch");
}

#[test]
fn list_names_every_piece_of_work_with_what_is_done() {
    let scene = scene();
    scene.write(
        "prd.json",
        prd_text(&[story("S1", "Alpha lamp").with("passes", json!(true)), story("S2", "Beta lamp")]),
    );
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n");
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Lamp\n\n- [x] 1.1 Bulb\n- [ ] 1.2 Switch\n");
    scene.write("openspec/changes/archive/2026-01-01-old/tasks.md", "## 1. Old\n\n- [ ] 1.1 Never\n");
    let outcome = scene.run(&["list"]).exits(0).says("openspec:lamp").says("prd:prd.json");
    assert!(!outcome.stdout.contains("2026-01-01-old"), "an archived change is no work\n{outcome}");
    let list = scene.run(&["list", "--json"]).exits(0).json();
    let list = list.as_array().unwrap_or_else(|| panic!("{list:#}")).clone();
    let prd = list.iter().find(|w| w["scheme"] == "prd").unwrap();
    assert_eq!((&prd["done"], &prd["total"]), (&json!(1), &json!(2)));
    assert!(list.iter().any(|w| w["scheme"] == "openspec" && w["id"] == "lamp"), "{list:#?}");
}

#[test]
fn list_tells_problems_and_a_run_that_is_unfinished() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().touch(&begun).hang()]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    let row = || scene.run(&["list", "--json"]).exits(0).json()[0].clone();
    assert_eq!(row()["run"]["state"], "running");
    scene.run(&["list"]).says("a run is running");
    scene.run(&["stop", "--now"]).exits(0);
    running.wait().exits(4);
    assert_eq!((&row()["run"]["state"], &row()["run"]["total"]), (&"stopped".into(), &2.into()));
    scene.write("prd.json", r#"{"userStories": [{"id": "A", "title": "A", "priority": "soon", "passes": false}]}"#);
    assert_eq!((&row()["errors"], &row()["warnings"]), (&0.into(), &2.into()));
    scene.run(&["list"]).says("2 warnings");
}

#[test]
fn list_goes_on_past_work_that_cannot_be_read() {
    let scene = scene();
    scene.write("prd.json", "{ broken");
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Lamp\n\n- [ ] 1.1 Bulb\n");
    scene.run(&["list"]).says("openspec:lamp").says("prd.json");
}

#[test]
fn show_tells_stories_order_and_dependencies_and_the_exact_prompt_of_one() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp").after(&["S2"]), story("S2", "Beta lamp")],
        &AgentScript::always([call().write("b.txt", "on").complete()]),
    );
    let outcome = scene.run(&["show", "prd.json"]).exits(0);
    assert!(outcome.stdout.contains("Alpha lamp") && outcome.stdout.contains("Beta lamp"), "{outcome}");
    let shown = scene.run(&["show", "prd.json", "--json"]).exits(0).json();
    assert_eq!(shown["next"], "S2");
    assert_eq!(shown["stories"][0]["deps"], json!(["S2"]));
    let prompt = scene.run(&["show", "prd.json", "--prompt", "S2"]).exits(0).stdout;
    run(&scene, &["--story", "S2"]).exits(0);
    let told = scene.calls()[0].stdin.clone();
    assert_eq!(prompt.trim(), told.trim());
}

#[test]
fn show_json_of_a_file_that_cannot_be_read_is_2_with_class_line_and_message() {
    let scene = scene();
    scene.write("prd.json", "{\n  \"userStories\": [\n    {\"id\": \"S1\" \"title\": 1}\n");
    let shown = scene.run(&["show", "prd.json", "--json"]).exits(2).json();
    assert_eq!((&shown["error"]["class"], &shown["error"]["line"]), (&json!("json_syntax"), &json!(3)));
    assert!(shown["error"]["message"].is_string());
}

#[test]
fn check_is_silent_about_good_work_and_places_every_fault_of_bad_work() {
    let scene = scene();
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp")]));
    scene.run(&["check", "prd.json"]).exits(0);
    scene.write(
        "prd.json",
        prd_text(&[story("S1", "Alpha lamp").after(&["S8"]), story("S2", "Beta lamp").after(&["S9"])]),
    );
    scene.run(&["check", "prd.json"]).exits(2).says("prd.json:").says("S8").says("S9");
    let checked = scene.run(&["check", "prd.json", "--json"]).exits(2).json();
    assert!(checked.to_string().contains("unknown_dependency"), "{checked:#}");
}

#[test]
fn config_shows_each_value_with_the_place_it_comes_from() {
    let mut scene = scene();
    scene.write("ralphloop.toml", "max-retries = 7\nmax-repairs = 5\n");
    scene.set_env("RALPHLOOP_MAX_REPAIRS", "4");
    let outcome = scene.run(&["config", "show"]).exits(0);
    let line = |key: &str| {
        let normal = |l: &str| l.replace('_', "-");
        outcome
            .stdout
            .lines()
            .find(|l| normal(l).trim_start().starts_with(key))
            .unwrap_or_else(|| panic!("{key}\n{outcome}"))
            .to_owned()
    };
    assert!(line("max-retries").contains('7') && line("max-retries").contains("ralphloop.toml"), "{outcome}");
    assert!(line("max-repairs").contains('4') && line("max-repairs").contains("RALPHLOOP_MAX_REPAIRS"), "{outcome}");
    assert!(line("idle-timeout").contains("10m") && line("idle-timeout").contains("default"), "{outcome}");
}

#[test]
fn config_shows_the_tables_of_agents_prices_and_made_files() {
    let scene = scene();
    scene.run(&["config", "show"]).exits(0).never_says("Tables");
    scene.write(
        "ralphloop.toml",
        "[agents.mine]\ncommand = \"mine run\"\n[prices.\"mine-1\"]\ninput = 1\noutput = 2\n[roles.critic]\nprompt = \"Look\"\n[[generate]]\nfiles = \
         [\"Cargo.lock\"]\ncommand = \"cargo update\"\n",
    );
    let shown = scene.run(&["config", "show"]).exits(0);
    shown
        .says("[agents.mine]")
        .says("[prices.\"mine-1\"]")
        .says("[roles.critic]")
        .says("[[generate]] Cargo.lock: cargo update");
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_projects_file() {
    let mut scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([1, 2, 3, 4, 5].map(|n| call().write("x", &n.to_string()).failed(&format!("no {n}")))),
    );
    scene.write("ralphloop.toml", "max-retries = 2\n");
    scene.commit_all("Configuration");
    run(&scene, &["--fresh"]).exits(1);
    assert_eq!(scene.calls().len(), 3);
    scene.set_env("RALPHLOOP_MAX_RETRIES", "1");
    run(&scene, &["--fresh"]).exits(1);
    assert_eq!(scene.calls().len(), 3 + 2);
    run(&scene, &["--fresh", "--max-retries", "0"]).exits(1);
    assert_eq!(scene.calls().len(), 3 + 2 + 1);
}

#[test]
fn demo_shows_the_whole_loop_without_agent_key_or_network_and_leaves_nothing() {
    let scene = scene();
    let before = scene.snapshot();
    scene.run(&["demo"]).exits(0).says("passed");
    assert_eq!(scene.snapshot(), before);
    scene.nothing_runs();
}

#[test]
fn help_and_version_say_what_there_is() {
    let scene = scene();
    scene.run(&["--version"]).exits(0).says("ralphloop");
    let help = scene.run(&["--help"]).exits(0);
    for verb in ["run", "list", "show", "check", "status", "log", "diff", "resume", "stop", "verify", "mark"] {
        assert!(help.stdout.contains(verb), "{verb}\n{help}");
    }
    let run_help = scene.run(&["run", "--help"]).exits(0);
    for flag in ["--max-retries", "--max-repairs", "--on-exhausted", "--gate", "--idle-timeout", "--dry-run"] {
        assert!(run_help.stdout.contains(flag), "{flag}\n{run_help}");
    }
}

#[test]
fn without_a_terminal_and_a_verb_the_help_is_printed() {
    scene().run(&[]).says("usage").says("run");
}

#[test]
fn list_json_is_json_also_when_there_is_nothing() {
    let listed: Value = scene().run(&["list", "--json"]).json();
    assert_eq!(listed, json!([]));
}

#[test]
fn several_works_are_worked_on_one_after_the_other() {
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
        .story("Beta lamp", [call().write("b.txt", "on").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    scene.write("more/prd.json", prd_text(&[story("S1", "Beta lamp")]));
    scene.commit_all("More");
    let several = ["run", "prd.json", "more/prd.json", "--headless", "--no-gates"];
    scene.run(&several).exits(0);
    assert_eq!(scene.landed_subjects().len(), 2, "{:?}", scene.landed_subjects());
    assert_eq!((scene.read("a.txt"), scene.read("more/b.txt")), ("on".to_owned(), "on".to_owned()));
    scene.run(&several).exits(0).says("nothing to do");
    called(&scene, 2);
}

const TWO_WORKS: &[&str] = &["run", "prd.json", "more/prd.json", "--headless", "--no-gates"];

/// A scene with two works of one story each.
fn two_works() -> Scene {
    let script = AgentScript::always([call().write("a.txt", "on").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &script);
    scene.write("more/prd.json", prd_text(&[story("S1", "Beta lamp")]));
    scene.commit_all("More");
    scene
}

#[test]
fn a_signal_after_the_end_of_one_work_keeps_the_next_from_beginning() {
    let scene = two_works();
    let running = scene.start(&[TWO_WORKS, &["--notify", "touch ../told; sleep 1000"]].concat());
    scene.wait_for_file(&scene.outside("told"));
    running.signal(Signal::TERM);
    running.wait().exits(143).says("more/prd.json was not begun");
    called(&scene, 1);
    scene.nothing_runs();
}

#[test]
fn a_signal_between_two_works_ends_the_call_at_once() {
    // The first thing that a run asks git is where it is; the second run's question is not answered.
    let scene = two_works();
    let root = scene.root().display().to_string();
    scene.program(
        "git",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *show-toplevel*)\n\
             [ ! -e '{root}/calls/1' ] || {{ touch '{root}/asked'; exec sleep 1000; }};;\nesac\n\
             exec '{root}/tools/git' \"$@\"\n"
        ),
    );
    let running = scene.start(TWO_WORKS);
    scene.wait_for_file(&scene.outside("asked"));
    running.signal(Signal::INT);
    running.wait().exits(130);
    called(&scene, 1);
    scene.nothing_runs();
}

#[test]
fn what_is_wrong_with_the_last_of_several_works_is_said_before_the_first_begins() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    scene.run(&["run", "prd.json", "gone.json", "--headless"]).exits(2).says("gone.json");
    scene.run(&["run", "prd.json", "prd.json", "--story", "S1", "--headless"]).exits(2).says("--story");
    called(&scene, 0);
}

#[test]
fn what_two_formats_claim_is_refused_by_every_verb_with_the_ways_to_name_it() {
    let scene = scene();
    let boxes = "# Lamp\n\n- [ ] 1. Bulb\n  - [ ] 1.1 Glow\n";
    for (path, text) in [
        ("specs/lamp/tasks.md", boxes),
        ("specs/lamp/spec.md", "x"),
        ("specs/lamp/requirements.md", "x"),
        ("n.md", boxes),
    ] {
        scene.write(path, text);
    }
    scene.commit_all("Plan");
    for verb in ["run", "show", "check", "mark"] {
        let more: &[&str] = if verb == "mark" { &["1"] } else { &[] };
        let call = |work| scene.run(&[&[verb, work], more].concat()).exits(2);
        call("specs/lamp").says("kiro or speckit").says("kiro:specs/lamp");
        call("lamp").says("kiro:lamp").says("speckit:lamp");
        call("n.md").says("markdown or kiro").says("markdown:n.md");
    }
    scene.run(&["list"]).exits(0).says("kiro:lamp").says("speckit:lamp");
    scene.run(&["show", "kiro:lamp"]).exits(0).says("Bulb");
    scene.run(&["check", "speckit:specs/lamp"]).exits(0);
    scene.run(&["mark", "kiro:specs/lamp", "1.1"]).exits(0);
    assert_eq!(scene.read("specs/lamp/tasks.md"), boxes.replace("[ ] 1.1", "[x] 1.1"));
}
