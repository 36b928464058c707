//! The files that other tools read: state files, progress, session logs, failure logs; and their schemas.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::{Value, json};

use crate::world::{COMPLETE, prd_scene, prd_text, run, start, story, two_stories};

/// The files that have a schema, by its name.
const WITH_SCHEMA: [(&str, &str); 4] = [
    ("continuous-session-state", ".continuous-session-state.json"),
    ("task-loop-state", ".task-loop-state.json"),
    ("ralph-loop-state", ".ralph-loop-state.json"),
    ("prd-status", "prd-status.json"),
];

fn schema(scene: &Scene, name: &str) -> jsonschema::Validator {
    let schema = scene.run(&["schema", name]).exits(0).json();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn fits(scene: &Scene, name: &str, value: &Value) {
    if let Err(error) = schema(scene, name).validate(value) {
        panic!("{name}: {error} at {} in {value:#}", error.instance_path());
    }
}

fn parse(scene: &Scene, path: &str) -> Value {
    serde_json::from_str(&scene.read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The only file in a folder of the scene that ends so.
fn only(scene: &Scene, folder: &str, end: &str) -> String {
    let found: Vec<String> = std::fs::read_dir(scene.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(end))
        .collect();
    assert_eq!(found.len(), 1, "{found:?} in {folder}");
    format!("{folder}/{}", found[0])
}

/// The first story's check is red once, and mended; the second one's is never green.
fn one_of_two() -> Scene {
    let stories =
        [story("S1", "Alpha lamp").check("grep -q good a.txt"), story("S2", "Beta lamp").check("grep -q good b.txt")];
    let learned = format!("<learning>wires are in the cellar</learning>\n{COMPLETE}");
    let script = AgentScript::new()
        .story("Alpha lamp", [call().write("a.txt", "bad\n").complete(), call().write("a.txt", "good\n").end(&learned)])
        .story("Beta lamp", [call().write("b.txt", "bad\n").complete()]);
    prd_scene(&stories, &script)
}

const FLAGS: &[&str] = &["--no-gates", "--max-repairs", "1", "--max-retries", "0", "--max-iterations", "9"];

#[test]
fn every_export_fits_the_schema_that_the_program_publishes() {
    let scene = one_of_two();
    let outcome = scene.run(&[&["run", "prd.json", "--json"], FLAGS].concat()).exits(1);
    for event in outcome.json_lines() {
        fits(&scene, "event", &event);
    }
    fits(&scene, "status", &scene.status());
    scene.run(&["export", "--to", "out"]).exits(0).says("out/.ralph-loop-state.json");
    for (name, path) in WITH_SCHEMA {
        fits(&scene, name, &parse(&scene, &format!("out/{path}")));
    }
    fits(&scene, "failures", &parse(&scene, &only(&scene, "out/ralph_logs", ".json")));
    // And a schema refuses what is not of its kind.
    assert!(schema(&scene, "ralph-loop-state").validate(&json!({"status": "fine", "currentIteration": 1})).is_err());
    assert!(schema(&scene, "prd-status").validate(&json!({"version": 1})).is_err());
}

/// The keys of an object that its schema does not name.
fn unnamed<'v>(schema: &Value, definition: &str, value: &'v Value) -> Vec<&'v String> {
    let known = &schema["$defs"][definition]["properties"];
    assert!(known.is_object(), "no {definition} in {schema:#}");
    value.as_object().unwrap().keys().filter(|key| known.get(key.as_str()).is_none()).collect()
}

#[test]
fn what_the_verbs_print_fits_its_schema_and_every_key_is_in_it() {
    let scene = one_of_two();
    run(&scene, FLAGS).exits(1);
    let steps = json!([
        {"type": "shell", "command": "true", "timeout": 5}, {"type": "file_exists", "path": "a"},
        {"type": "url", "url": "http://localhost"}, {"type": "manual", "criteria": ["it shines"]},
    ]);
    let all = story("S1", "Lamp").with("verification_steps", steps).with("acceptanceCriteria", json!(["on", "off"]));
    scene.write("all/prd.json", prd_text(&[all]));
    let change = "openspec/changes/lamp";
    scene.write(&format!("{change}/proposal.md"), "# Lamp\n\n## Why\n\nIt is dark.\n");
    scene.write(&format!("{change}/tasks.md"), "## 1. Wire\n\n- [ ] 1.1 Wire it\n");
    scene.write(
        &format!("{change}/specs/light/spec.md"),
        "## ADDED Requirements\n\n### Requirement: Light\nIt SHALL shine.\n\n#### Scenario: On\n- **WHEN** on\n- **THEN** light\n\n\
         ## RENAMED Requirements\n\n- FROM: `### Requirement: Old`\n- TO: `### Requirement: New`\n",
    );
    scene.write("broken/prd.json", "{");
    let print = |arguments: &[&str]| scene.run(arguments).json();
    let schema_of = |name: &str| print(&["schema", name]);
    let show = schema_of("show");
    for work in ["prd:all/prd.json", "openspec:lamp"] {
        let shown = print(&["show", work, "--json"]);
        fits(&scene, "show", &shown);
        assert_eq!(unnamed(&show, "Work", &shown), Vec::<&String>::new());
        for story in shown["stories"].as_array().unwrap() {
            assert_eq!(unnamed(&show, "Story", story), Vec::<&String>::new());
            for task in story["tasks"].as_array().unwrap() {
                assert_eq!(unnamed(&show, "Task", task), Vec::<&String>::new());
            }
        }
    }
    fits(&scene, "show", &print(&["show", "prd:broken/prd.json", "--json"]));
    for work in ["prd:all/prd.json", "prd:broken/prd.json", "openspec:lamp"] {
        fits(&scene, "check", &print(&["check", work, "--json"]));
    }
    fits(&scene, "check", &print(&["check", "prd:all/prd.json", "--fix", "--json"]));
    let list = print(&["list", "--json"]);
    assert!(list.as_array().unwrap().len() > 1, "{list:#}");
    fits(&scene, "list", &list);
    let damaged = scene.path(".git/ralphloop/runs/20260101-000000-000");
    std::fs::create_dir_all(&damaged).unwrap();
    std::fs::write(damaged.join("journal.jsonl"), "nothing\n{}\n").unwrap();
    let runs = print(&["runs", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs:#}");
    fits(&scene, "runs", &runs);
    // And they refuse what is not of their kind.
    for (name, other) in [("show", &list), ("check", &runs), ("list", &runs), ("runs", &list)] {
        assert!(schema(&scene, name).validate(other).is_err(), "{name}");
    }
}

#[test]
fn the_schema_of_the_settings_takes_every_default_and_refuses_what_is_unknown() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().complete()]));
    scene.run(&["init"]).exits(0);
    let with_defaults: String = scene
        .read("ralphloop.toml")
        .lines()
        .map(|line| {
            let is_key = |rest: &&str| rest.split_once(" = ").is_some_and(|(key, _)| !key.contains([' ', '`']));
            line.strip_prefix("# ").filter(is_key).unwrap_or(line)
        })
        .fold(String::new(), |text, line| text + line + "\n");
    let read: toml::Table = with_defaults.parse().unwrap_or_else(|error| panic!("{error}\n{with_defaults}"));
    assert!(read.len() > 20, "{read:?}");
    fits(&scene, "config", &serde_json::to_value(read).unwrap());
    let tables = json!({
        "agents": {"mine": {"command": "mine run"}}, "prices": {"mine-1": {"input": 1}}, "roles": {"critic": {"prompt": "Look"}},
        "retry": {"timeout": {"attempts": 1, "backoff": ["1m", 300]}},
        "generate": [{"files": ["Cargo.lock"], "command": "cargo update"}],
    });
    fits(&scene, "config", &tables);
    assert!(schema(&scene, "config").validate(&json!({"max_retrys": 1})).is_err());
    assert!(schema(&scene, "config").validate(&json!({"retry": {"timout": {}}})).is_err());
    scene.run(&["schema", "statu"]).exits(2).says("did you mean status?");
    scene.run(&["schema"]).exits(0).says("prd-status");
}

#[test]
fn exports_say_what_happened_in_the_words_of_their_readers() {
    let scene = one_of_two();
    run(&scene, FLAGS).exits(1);
    scene.run(&["export", "--to", "out"]).exits(0);
    let session = parse(&scene, "out/.continuous-session-state.json");
    assert_eq!((&session["status"], &session["maxSessions"]), (&json!("failed"), &json!(9)));
    assert_eq!(session["completedItems"][0]["title"], "Alpha lamp");
    assert_eq!(session["completedItems"][0]["verification"], "passed");
    assert_eq!(session["failedItems"][0]["title"], "Beta lamp");
    assert_eq!(session["queueSnapshot"], json!(["Beta lamp"]));
    assert_eq!(session["currentSession"], 4, "two calls a story");
    let log = session["completedItems"][0]["sessionLog"].as_str().unwrap();
    assert!(scene.read(&format!("out/{log}")).contains("## Next Steps\n\n1. Beta lamp [VERIFY: `grep -q good b.txt`]"));
    assert!(scene.read(&format!("out/{log}")).contains("wires are in the cellar"));

    let tasks = parse(&scene, "out/.task-loop-state.json");
    assert_eq!(
        (&tasks["completedTasks"][0]["id"], &tasks["completedTasks"][0]["verified"]),
        (&json!("S1"), &json!(true))
    );
    assert_eq!((&tasks["failedTasks"][0]["id"], &tasks["failedTasks"][0]["attempts"]), (&json!("S2"), &json!(1)));
    assert_eq!(parse(&scene, "out/.ralph-loop-state.json"), json!({"status": "failed", "currentIteration": 4}));

    let status = parse(&scene, "out/prd-status.json");
    assert_eq!(status["statistics"], json!({"total": 2, "passed": 1, "failed": 1, "pending": 0}));
    let history = status["stories"][0]["history"].as_array().unwrap();
    assert_eq!(history.iter().map(|entry| entry["result"].as_str().unwrap()).collect::<Vec<_>>(), ["fail", "pass"]);
    assert!(status["stories"][0]["lastVerified"].is_string());
    assert_eq!(status["stories"][1]["verification"]["command"], "grep -q good b.txt");

    let text = scene.read("out/progress.txt");
    let (patterns, entries) = (text.find("## Codebase Patterns").unwrap(), text.find("- S1\n").unwrap());
    assert!(patterns < entries && text[..entries].contains("- wires are in the cellar"), "{text}");
    assert!(scene.read("out/progress.md").contains("(Continuous Session 1/2)"));
    assert!(scene.read("out/critical-learnings.md").contains("- wires are in the cellar"));

    let failures = scene.read(&only(&scene, "out/ralph_logs", ".md"));
    assert!(failures.contains("- Task: Alpha lamp (S1, attempt 1)"), "{failures}");
    assert!(failures.contains("- Action: repaired in place"), "{failures}");
    assert!(failures.contains("- State: kept at refs/ralphloop/"), "{failures}");
}

#[test]
fn an_export_again_changes_nothing_and_what_is_yours_stays() {
    let scene = one_of_two();
    run(&scene, FLAGS).exits(1);
    scene.write("docs/progress.md", "# Progress\n\n### 2020-01-01 10:00\n\n- Mine\n");
    scene.write("docs/prd-status.json", "{\"stories\": [{\"id\": \"X\", \"title\": \"Mine\", \"passes\": false}]}");
    scene.run(&["export", "--to", "docs"]).exits(0);
    let first: Vec<String> = ["progress.md", "progress.txt", "prd-status.json"]
        .iter()
        .map(|name| scene.read(&format!("docs/{name}")))
        .collect();
    assert!(first[0].starts_with("# Progress\n\n### 2020-01-01 10:00\n\n- Mine\n"), "{}", first[0]);
    assert!(first[2].contains("\"Mine\"") && first[2].contains("Alpha lamp"), "{}", first[2]);
    scene.run(&["export", "--to", "docs"]).exits(0);
    let again: Vec<String> = ["progress.md", "progress.txt", "prd-status.json"]
        .iter()
        .map(|name| scene.read(&format!("docs/{name}")))
        .collect();
    assert_eq!(first, again);
    scene.write("docs/prd-status.json", "{ torn");
    scene.run(&["export", "--to", "docs"]).exits(1).says("mend it or move it away");
    assert_eq!(scene.read("docs/prd-status.json"), "{ torn");
}

#[test]
fn without_being_asked_for_no_state_file_is_left_in_the_tree() {
    let scene = one_of_two();
    run(&scene, FLAGS).exits(1);
    scene.tree_is_clean();
    scene.run(&["export"]).exits(0).says("/export/progress.md");
    scene.tree_is_clean();
}

#[test]
fn f36_state_files_are_written_before_and_after_each_piece_of_work() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let (seen, go_on) = (scene.outside("seen"), scene.outside("go on"));
    let copy = format!("cp docs/.task-loop-state.json '{}'", scene.outside("before").display());
    let script = AgentScript::new()
        .story("Alpha lamp", [call().shell(&copy).write("a.txt", "x\n").complete()])
        .story("Beta lamp", [call().touch(&seen).wait_for(&go_on).write("b.txt", "x\n").complete()]);
    scene.scripted_agent(&script);
    scene.write(".gitignore", "docs/\n");
    scene.commit_all("Ignore");
    let running = start(&scene, &["--no-gates", "--state-files", "docs"]);
    scene.wait_for_file(&seen);
    let before: Value = serde_json::from_str(&std::fs::read_to_string(scene.outside("before")).unwrap()).unwrap();
    assert_eq!((&before["currentTask"], &before["status"]), (&json!("S1"), &json!("running")));
    let between = parse(&scene, "docs/.task-loop-state.json");
    assert_eq!((&between["currentTask"], &between["completedTasks"][0]["id"]), (&json!("S2"), &json!("S1")));
    std::fs::write(go_on, "").unwrap();
    running.wait().exits(0);
    let after = parse(&scene, "docs/.task-loop-state.json");
    assert_eq!((&after["status"], &after["currentTask"]), (&json!("complete"), &Value::Null));
    assert_eq!(scene.landed().len(), 2);
    assert!(scene.landed().iter().all(|commit| commit.files.iter().all(|file| !file.starts_with("docs"))));
    scene.tree_is_clean();
}

#[test]
fn f37_a_log_that_is_missing_is_made_anew_with_all_that_was_in_it() {
    let scene = prd_scene(&two_stories(), &AgentScript::new());
    let lost = "rm -r docs/session_logs docs/ralph_logs docs/progress.md";
    let script = AgentScript::new()
        .story("Alpha lamp", [call().failed("no bulb"), call().write("a.txt", "x\n").complete()])
        .story("Beta lamp", [call().shell(lost).write("b.txt", "x\n").complete()]);
    scene.scripted_agent(&script);
    scene.write(".gitignore", "docs/\n");
    scene.commit_all("Ignore");
    run(&scene, &["--no-gates", "--state-files", "docs"]).exits(0);
    let texts = |folder: &str| {
        let log = scene.read(&only(&scene, &format!("{folder}/session_logs"), "_session.md"));
        let failures = scene.read(&only(&scene, &format!("{folder}/ralph_logs"), ".md"));
        (log, failures, scene.read(&format!("{folder}/progress.md")))
    };
    let made = texts("docs");
    assert!(made.0.contains("Alpha lamp") && made.0.contains("Beta lamp"), "{}", made.0);
    assert!(made.1.contains("no bulb") && made.2.contains("Alpha lamp"), "{made:?}");
    // After the run, too, and elsewhere.
    std::fs::remove_dir_all(scene.path("docs")).unwrap();
    scene.run(&["export", "--to", "docs"]).exits(0);
    assert_eq!(texts("docs"), made);
}

#[test]
fn f37_the_queue_is_that_of_the_last_log_without_what_has_landed() {
    let log = "docs/session_logs/20260101_1000_session.md";
    let scene = prd_scene(&[], &AgentScript::new());
    scene.write(
        log,
        "# Session\n\n## Next Steps\n\n1. Mend the lamp [VERIFY: `test -e a.txt`]\n2. Polish it\n3. Hang it\n",
    );
    scene.commit_all("Session");
    let begun = scene.outside("begun");
    let script = AgentScript::new()
        .story("Mend the lamp", [call().write("a.txt", "x\n").complete()])
        .story("Polish it", [call().touch(&begun).hang(), call().write("b.txt", "x\n").complete()])
        .story("Hang it", [call().write("c.txt", "x\n").complete()]);
    scene.scripted_agent(&script);
    let running = scene.start(&["run", "flight:next-steps", "--headless", "--no-gates"]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.nothing_runs();
    // Its journal is gone, and the log is as it was.
    std::fs::remove_dir_all(scene.path(".git/ralphloop/runs")).unwrap();
    scene.run(&["run", "flight:next-steps", "--headless", "--no-gates"]).exits(0).says("landed already: mend-the-lamp");
    assert_eq!(scene.calls_of("Mend the lamp").len(), 1);
    assert_eq!(scene.landed().len(), 3);
    scene.run(&["run", "flight:next-steps", "--headless", "--no-gates"]).says("nothing to do");
}

#[test]
fn a_log_of_another_run_stays_and_that_is_said_once() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().write("x.txt", "x\n").complete()]));
    scene.write(".gitignore", "docs/\n");
    scene.commit_all("Ignore");
    // Whatever minute it is.
    let flags = ["--no-gates", "--state-files", "docs"];
    run(&scene, &[&flags[..], &["--max-stories", "1"]].concat()).exits(5);
    let log = only(&scene, "docs/session_logs", "_session.md");
    let first = scene.read(&log);
    let again = run(&scene, &[&flags[..], &["--fresh"]].concat());
    let told = again.stderr.matches("does not tell of this run").count();
    let logs = std::fs::read_dir(scene.path("docs/session_logs")).unwrap().count();
    assert_eq!(
        (told + logs, scene.read(&log)),
        (2, first),
        "it is another minute, or it is said once: {}",
        again.stderr
    );
}

#[test]
fn a_folder_that_git_does_not_ignore_is_refused_for_files_of_a_run() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().write("x.txt", "x\n").complete()]));
    run(&scene, &["--state-files", "docs"]).exits(2).says(".gitignore").says("/docs/.ralph-loop-state.json");
    assert!(!scene.path("docs").exists());
    // What is tracked is left to `export`.
    scene.write(".gitignore", "/docs/.*.json\n");
    scene.write("docs/progress.md", "# Mine\n");
    scene.commit_all("Progress");
    run(&scene, &["--no-gates", "--state-files", "docs", "--story", "S1"]).exits(0).says("ralphloop export --to docs");
    assert_eq!(scene.read("docs/progress.md"), "# Mine\n");
    assert_eq!(parse(&scene, "docs/.ralph-loop-state.json")["status"], "complete");
    scene.tree_is_clean();
}

#[test]
fn the_next_steps_of_an_exported_session_log_are_a_queue_that_runs() {
    let stories = [
        story("S1", "Alpha [old] lamp").check("test -e a.txt"),
        story("S2", "Beta lamp").check("test -e b.txt").with("priority", json!(2)),
    ];
    let scene = prd_scene(&stories, &AgentScript::always([call().blocked("no wire")]));
    run(&scene, &["--no-gates"]).exits(1);
    scene.run(&["export", "--to", "docs"]).exits(0);
    scene.commit_all("Session");
    let shown = scene.run(&["show", "flight:next-steps", "--json"]).exits(0).json();
    let titles: Vec<&str> = shown["stories"].as_array().unwrap().iter().map(|s| s["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Alpha [old] lamp", "Beta lamp"]);
    assert_eq!(shown["stories"][0]["state"], "blocked");
    assert_eq!(scene.read("prd.json"), prd_text(&stories));
}

#[test]
fn r53_what_was_learned_goes_into_the_design_of_the_change_and_leaves_the_rest_alone() {
    let learned = format!("<learning>wires are in the cellar</learning>\n{COMPLETE}");
    let script = AgentScript::always([call().write("a.txt", "on").end(&learned)]);
    let scene = prd_scene(&two_stories(), &script);
    let change = "openspec/changes/lamp";
    scene.write(&format!("{change}/proposal.md"), "# Lamp\n\n## Why\n\nIt is dark.\n");
    scene.write(&format!("{change}/tasks.md"), "## 1. Wire\n\n- [ ] 1.1 Wire it\n");
    scene.write(&format!("{change}/design.md"), "# Lamp\n\n## Learnings\n\n- brass bends\n\n## Risks\n\nNone.\n");
    scene.commit_all("Change");
    scene.run(&["run", "openspec:lamp", "--headless", "--no-gates"]).exits(0);
    scene.run(&["export", "--design"]).exits(0).says("openspec/changes/lamp/design.md");
    let design = scene.read(&format!("{change}/design.md"));
    let at = |part: &str| design.find(part).unwrap_or_else(|| panic!("{part:?} in {design}"));
    let (entry, patterns) = (at(" - Story 1\n\n- wires are in the cellar\n"), at("## Patterns"));
    assert!(at("- brass bends") < entry && entry < at("## Risks\n\nNone.\n") && at("## Risks") < patterns, "{design}");
    scene.run(&["export", "--design"]).exits(0);
    assert_eq!(scene.read(&format!("{change}/design.md")), design, "a second time changes nothing");
    scene.git(&["checkout", "--quiet", "."]);
    run(&scene, &["--no-gates", "--max-retries", "0"]).exits(1);
    scene.run(&["export", "--design"]).exits(2).says("prd:prd.json has no design.md");
}
