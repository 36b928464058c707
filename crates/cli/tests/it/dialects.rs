//! Every dialect of `prd.json` is worked through to its end, and only the bytes that tell it is done are changed.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::Value;

use crate::world::{landed_once, scene};

/// Runs the file with an agent that completes every story with a file of its own.
pub(crate) fn work_through(file: &str, text: &str, calls: usize) -> Scene {
    let scene = scene();
    scene.write(file, text);
    scene.commit_all("Plan");
    let each = (1..=calls).map(|n| call().write(&format!("work-{n}.txt"), "on").complete());
    scene.scripted_agent(&AgentScript::always(each));
    scene.run(&["run", file, "--headless"]).exits(0);
    assert_eq!(scene.calls().len(), calls);
    assert_eq!(scene.landed().len(), calls);
    for commit in scene.landed() {
        assert!(commit.files.iter().any(|f| f == file), "the write-back is part of the story's commit: {commit:?}");
    }
    scene.tree_is_clean();
    let shown = scene.run(&["show", file, "--json"]).exits(0).json();
    assert_eq!(shown["all_done"], true, "{shown:#}");
    scene.run(&["run", file, "--headless"]).exits(0).says("nothing to do");
    assert_eq!(scene.calls().len(), calls);
    scene
}

const SNARKTANK: &str = r#"{
  "project": "Herb garden",
  "branchName": "",
  "description": "Watering by the weather \u2014 not by the clock",
  "userStories": [
    {
      "id": "US-001",
      "title": "Read the moisture sensor",
      "description": "As a gardener I want the soil's moisture.",
      "acceptanceCriteria": ["Readings are between 0 and 100", "A missing sensor is an error"],
      "priority": 1,
      "passes": false,
      "notes": ""
    },
    {
      "id": "US-002",
      "title": "Open the valve",
      "description": "As a gardener I want water.",
      "acceptanceCriteria": [ "The valve opens below 30" ],
      "priority": 2,
      "passes": false,
      "notes": "keep: 1.50"
    }
  ]
}
"#;

#[test]
fn camel_case_as_most_plans_are_written() {
    let scene = work_through("prd.json", SNARKTANK, 2);
    assert_eq!(scene.read("prd.json"), SNARKTANK.replace("\"passes\": false", "\"passes\": true"));
    landed_once(&scene, "US-001", "work-1.txt");
    landed_once(&scene, "US-002", "work-2.txt");
}

#[test]
fn b12_only_the_landed_storys_flag_is_in_its_commit() {
    let scene = work_through("prd.json", SNARKTANK, 2);
    let first = scene.landed()[0].hash.clone();
    assert_eq!(
        scene.file_in(&first, "prd.json") + "\n",
        SNARKTANK.replacen("\"passes\": false", "\"passes\": true", 1)
    );
}

const CODETETHER: &str = r#"{
  "project": "kiln",
  "feature": "Firing curve",
  "branch_name": "",
  "version": "1.0",
  "user_stories": [
    {
      "id": "US-001",
      "title": "Curve model",
      "description": "Segments in order",
      "acceptance_criteria": ["Segments keep their order"],
      "verification_steps": [
        {"type": "shell", "name": "made", "command": "echo curve ready", "expect_output_contains": ["curve ready"]},
        {"type": "file_exists", "path": "work-1.txt"}
      ],
      "passes": false,
      "priority": 1,
      "depends_on": [],
      "complexity": 2
    },
    {
      "id": "US-002",
      "title": "Curve editor",
      "description": "Drag a point",
      "acceptance_criteria": [],
      "verification_steps": [{"type": "file_exists", "path": "work-*.txt", "glob": true}],
      "passes": false,
      "priority": 1,
      "depends_on": ["US-001"],
      "complexity": 1
    }
  ],
  "technical_requirements": ["No floating point"],
  "quality_checks": {"typecheck": null, "test": "test -f work-1.txt", "lint": "true", "build": null},
  "created_at": "2026-01-17T14:00:00Z",
  "updated_at": ""
}"#;

#[test]
fn snake_case_with_verification_steps_and_quality_checks() {
    let scene = work_through("prd.json", CODETETHER, 2);
    let wanted: Value = serde_json::from_str(&CODETETHER.replace("\"passes\": false", "\"passes\": true")).unwrap();
    let mut is: Value = serde_json::from_str(&scene.read("prd.json")).unwrap();
    is["updated_at"] = "".into(); // the format lets the tool keep the time
    assert_eq!(is, wanted);
    assert!(!scene.read("prd.json").ends_with('\n'), "the missing last line end stays missing");
    assert_eq!(scene.story("US-001")["verified"], true);
    assert!(scene.calls()[0].prompt().contains("No floating point"));
}

#[test]
fn quality_checks_of_the_plan_are_gates() {
    let scene = scene();
    scene
        .write("prd.json", CODETETHER.replace("\"test\": \"test -f work-1.txt\"", "\"test\": \"echo GATE-9; exit 1\""));
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("work-1.txt", "on").complete()]));
    scene.run(&["run", "prd.json", "--headless", "--max-retries", "0", "--max-repairs", "0"]).exits(1).says("GATE-9");
    assert_eq!(scene.landed_subjects(), Vec::<String>::new());
}

#[test]
fn a_root_array_without_ids() {
    let text = "[\n  {\"description\": \"Lay the track\", \"steps\": [\"Cut\", \"Glue\"], \"passes\": false},\n  {\"description\": \"Roll the marble\", \"steps\": [\"Lift\"], \"passes\": false}\n]\n";
    let scene = work_through("prd.json", text, 2);
    assert_eq!(scene.read("prd.json"), text.replace("false", "true"));
    landed_once(&scene, "s1", "work-1.txt");
}

#[test]
fn status_words_instead_of_flags() {
    let text = "{\n  \"tasks\": [\n    {\"id\": \"T1\", \"title\": \"Old\", \"status\": \"completed\"},\n    {\"id\": \"T2\", \"title\": \"New\", \"status\": \"pending\"},\n    {\"id\": \"T3\", \"title\": \"Newer\", \"status\": \"in_progress\"}\n  ]\n}\n";
    let scene = work_through("prd.json", text, 2);
    assert_eq!(scene.read("prd.json"), text.replace("pending", "completed").replace("in_progress", "completed"));
}

#[test]
fn stories_inside_phases() {
    let text = "{\n  \"name\": \"Tram\",\n  \"phases\": [\n    {\"id\": \"P0\", \"stories\": [{\"id\": \"P0-1\", \"title\": \"Stops\", \"priority\": \"P0\", \"passes\": false}]},\n    {\"id\": \"P1\", \"stories\": [{\"id\": \"P1-1\", \"title\": \"Lines\", \"priority\": \"P1\", \"deps\": [\"P0-1\"], \"passes\": false}]},\n    {\"id\": \"P2\", \"stories\": []}\n  ]\n}\n";
    let scene = work_through("prd.json", text, 2);
    assert_eq!(scene.read("prd.json"), text.replace("false", "true"));
}

#[test]
fn stories_in_a_map_keyed_by_id() {
    let text = "{\n  \"stories\": {\n    \"red-lamp\": {\"title\": \"Red\", \"passes\": false},\n    \"blue-lamp\": {\"title\": \"Blue\", \"passes\": false, \"dependsOn\": [\"red-lamp\"]}\n  }\n}\n";
    let scene = work_through("prd.json", text, 2);
    assert_eq!(scene.read("prd.json"), text.replace("false", "true"));
    landed_once(&scene, "red-lamp", "work-1.txt");
}

#[test]
fn comments_and_trailing_commas_in_a_jsonc_list() {
    let text = "// tasks of the lamp\n{\n  \"tasks\": [\n    {\"id\": \"1.1\", \"section\": \"Lamp\", \"description\": \"Bulb\", \"status\": \"pending\"}, // first\n    {\"id\": \"1.2\", \"section\": \"Lamp\", \"description\": \"Switch\", \"status\": \"completed\"},\n  ],\n}\n";
    let scene = work_through("tasks.jsonc", text, 1);
    assert_eq!(scene.read("tasks.jsonc"), text.replace("pending", "completed"));
}

#[test]
fn criteria_that_are_objects_with_flags_of_their_own() {
    let text = "{\n  \"userStories\": [\n    {\n      \"id\": \"AM-1\",\n      \"title\": \"Lamp\",\n      \"acceptanceCriteria\": [\n        {\"id\": \"c1\", \"text\": \"Shines\", \"passes\": false}\n      ],\n      \"passes\": false\n    }\n  ]\n}\n";
    let scene = work_through("prd.json", text, 1);
    let prd: Value = serde_json::from_str(&scene.read("prd.json")).unwrap();
    assert_eq!(prd["userStories"][0]["passes"], true);
}

#[test]
fn a_flag_that_is_missing_is_added_as_the_last_member() {
    let text = "{\n  \"userStories\": [\n    {\n      \"id\": \"S1\",\n      \"title\": \"Lamp\"\n    }\n  ]\n}\n";
    let scene = work_through("prd.json", text, 1);
    assert_eq!(scene.read("prd.json"), text.replace("\"Lamp\"\n", "\"Lamp\",\n      \"passes\": true\n"));
}

#[test]
fn crlf_line_ends_tabs_and_a_byte_order_mark_stay() {
    let text = "\u{feff}{\r\n\t\"userStories\": [\r\n\t\t{\"id\": \"S1\", \"title\": \"Lamp\", \"passes\": false}\r\n\t]\r\n}\r\n";
    let scene = work_through("prd.json", text, 1);
    assert_eq!(scene.read("prd.json"), text.replace("false", "true"));
}

#[test]
fn a_plan_behind_a_symbolic_link_is_written_through_the_link() {
    let scene = scene();
    scene.write("plans/now.json", SNARKTANK);
    std::os::unix::fs::symlink("plans/now.json", scene.path("prd.json")).unwrap();
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([
        call().write("a.txt", "on").complete(),
        call().write("b.txt", "on").complete(),
    ]));
    scene.run(&["run", "prd.json", "--headless"]).exits(0);
    assert!(scene.path("prd.json").is_symlink());
    assert_eq!(scene.read("plans/now.json"), SNARKTANK.replace("\"passes\": false", "\"passes\": true"));
    scene.tree_is_clean();
}

#[test]
fn the_branch_that_a_plan_names_gets_its_commits_and_the_users_branch_stays_as_it_is() {
    let scene = scene();
    scene.write("prd.json", SNARKTANK.replace("\"branchName\": \"\"", "\"branchName\": \"ralph/herbs\""));
    scene.commit_all("Plan");
    let main = scene.head();
    scene.scripted_agent(&AgentScript::always([
        call().write("a.txt", "on").complete(),
        call().write("b.txt", "on").complete(),
    ]));
    scene.run(&["run", "prd.json", "--headless"]).exits(0);
    assert_eq!(scene.git(&["rev-parse", "main"]), main);
    assert_eq!(scene.git(&["rev-list", "--count", "main..ralph/herbs"]), "2");
    assert_eq!(scene.status()["branch"], "ralph/herbs");
}
