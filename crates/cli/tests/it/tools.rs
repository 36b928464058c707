//! `check --fix`, `convert` and `new prd`: what makes, mends and turns over work.

use ralphloop_testkit::script::{AgentScript, call};

use crate::world::{called, conversation, scene};

const BROKEN: &str = "{ // by an agent\n \"userStories\": [\n  {\"id\": \"A\", \"title\": \"one\nline\", \"passes\": false,}\n  \
    {\"id\": \"B\", \"title\": \"two\", \"passes\": false}\n ]\n}\n";

#[test]
fn json_as_agents_break_it_is_told_with_its_mend_and_mended_on_request() {
    let scene = scene();
    scene.write("prd.json", BROKEN);
    let told = scene.run(&["check", "prd.json"]).exits(2);
    assert!(told.stdout.contains("a comment") && told.stdout.contains("prd.json:1:3"), "{told}");
    let told = scene.run(&["check", "prd.json", "--fix"]).exits(0);
    for wanted in ["prd.json:1: the comment", "prd.json:3: a line break", "prd.json:4: a comma before", "0 errors"] {
        assert!(told.stdout.contains(wanted), "{wanted} in\n{told}");
    }
    let mended = "{\n \"userStories\": [\n  {\"id\": \"A\", \"title\": \"one\\nline\", \"passes\": false},\n  \
        {\"id\": \"B\", \"title\": \"two\", \"passes\": false}\n ]\n}\n";
    assert_eq!(scene.read("prd.json"), mended);
    let again = scene.run(&["check", "prd.json", "--fix", "--json"]).exits(0).json();
    assert_eq!((&again["ok"], &again["fixed"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn what_only_a_person_can_decide_stays_as_it_is_and_is_shown() {
    let scene = scene();
    let fused = "{\"userStories\": [{\"id\": \"A\", \"title\": \"one\" \"id\": \"B\", \"title\": \"two\"}]}\n";
    for text in [fused, "{\"userStories\": [{\"id\": \"A\", \"title\": \"one\"}, ...]}\n"] {
        scene.write("prd.json", text);
        let told = scene.run(&["check", "prd.json", "--fix"]).exits(2);
        assert!(told.stdout.contains("nothing could be fixed") && told.stdout.contains("1 error"), "{told}");
        assert_eq!(scene.read("prd.json"), text);
    }
}

#[test]
fn boxes_that_other_tools_would_miss_are_mended_without_another_byte() {
    let scene = scene();
    scene.write(
        "PRD.md",
        "# P\r\n\r\n## 1. A\r\n- [] 1.1 a\r\n-[x] 1.2 b\r\n* [ ]1.3 c\r\n- [x ] 1.4 d\r\n- [ ] 1.5 e\r\n",
    );
    scene.run(&["check", "PRD.md", "--fix"]).exits(0);
    assert_eq!(
        scene.read("PRD.md"),
        "# P\r\n\r\n## 1. A\r\n- [ ] 1.1 a\r\n- [x] 1.2 b\r\n* [ ] 1.3 c\r\n- [x] 1.4 d\r\n- [ ] 1.5 e\r\n"
    );
}

#[test]
fn a_ring_of_dependencies_is_spelled_out_and_a_huge_story_is_called_too_large() {
    let scene = scene();
    scene.write(
        "prd.json",
        r#"{"stories": [{"id": "A", "title": "a", "deps": ["C"]}, {"id": "B", "title": "b", "deps": ["A"]}, {"id": "C", "title": "c", "deps": ["B"]}]}"#,
    );
    let told = scene.run(&["check", "prd.json"]).exits(2);
    assert!(told.stdout.contains("A → C → B → A"), "{told}");
    let huge = "word ".repeat(20_000);
    scene.write("PRD.md", format!("# P\n\n## 1. A\n{huge}\n- [ ] 1.1 a\n"));
    let found = scene.run(&["check", "PRD.md", "--json"]).exits(0).json();
    let codes: Vec<&str> = found["warnings"].as_array().unwrap().iter().filter_map(|w| w["code"].as_str()).collect();
    assert!(codes.contains(&"story_too_large"), "{found:#}");
}

#[test]
fn what_openspec_finds_in_a_change_is_shown_beside_our_own_findings() {
    let scene = scene();
    scene.write("openspec/changes/lamp/tasks.md", "## 1. Lamp\n- [ ] 1.1 Bulb\n");
    scene.write("openspec/changes/lamp/proposal.md", "# Lamp\n");
    scene.write("openspec/changes/lamp/specs/lamp/spec.md", "## ADDED Requirements\n### Requirement: A\nIt SHALL b.\n");
    scene.program(
        "openspec",
        "#!/bin/sh\n[ \"$*\" = 'validate lamp --strict --json' ] || exit 9\n\
         echo '{\"items\": [{\"id\": \"lamp\", \"valid\": false, \
         \"issues\": [{\"level\": \"ERROR\", \"path\": \"lamp/spec.md\", \"message\": \"no scenario at all\"}]}]}'\nexit 1\n",
    );
    let told = scene.run(&["check", "openspec:lamp"]).exits(2);
    assert!(told.stdout.contains("openspec: lamp/spec.md: no scenario at all"), "{told}");
    let found = scene.run(&["check", "openspec:lamp", "--json"]).exits(2).json();
    assert_eq!(found["errors"][0]["file"], "specs/lamp/spec.md");
}

#[test]
fn work_is_converted_with_its_state_and_what_is_lost_is_said() {
    let scene = scene();
    scene.write(
        "prd.json",
        r#"{"project": "Lamp", "branchName": "lamp", "userStories": [
            {"id": "US-2", "title": "Shade", "priority": 2, "dependsOn": ["US-1"], "acceptanceCriteria": ["dims"], "passes": false},
            {"id": "US-1", "title": "Bulb", "priority": 1, "acceptanceCriteria": ["glows"], "passes": true}]}"#,
    );
    let target = "openspec/changes/lamp/tasks.md";
    let told = scene.run(&["convert", "prd.json", "--to", "openspec", "-o", target]).exits(0);
    assert_eq!(told.stdout, "");
    for wanted in ["the branch: left out", "dependencies (US-2): kept as the order"] {
        assert!(told.stderr.contains(wanted), "{wanted} in\n{told}");
    }
    assert_eq!(
        scene.read(target),
        "# Lamp\n\n## US-1: Bulb\n\n- [x] US-1.1 glows\n\n## US-2: Shade\n\n- [ ] US-2.1 dims\n"
    );
    let before = scene.read(target);
    scene.run(&["convert", "prd.json", "--to", "openspec", "-o", target]).exits(2).says("exists already");
    assert_eq!(scene.read(target), before);
    let text = scene.run(&["convert", target, "--to", "prd"]).exits(0).stdout;
    scene.write("back.json", text);
    let shown = scene.run(&["show", "prd:back.json", "--json"]).exits(0).json();
    assert_eq!((&shown["stories"][0]["id"], &shown["stories"][0]["done"]), (&"US-1".into(), &true.into()));
    assert_eq!((&shown["next"], &shown["stories"][1]["done"]), (&"US-2".into(), &false.into()));
    scene.run(&["convert", "prd.json", "--to", "backlog"]).exits(2).says("-o backlog");
    scene.run(&["convert", "prd.json", "--to", "backlog", "-o", "backlog"]).exits(0).says("written to");
    let shown = scene.run(&["show", "backlog", "--json"]).exits(0).json();
    assert_eq!((&shown["next"], &shown["stories"][0]["deps"][0]), (&"US-2".into(), &"US-1".into()));
    scene.run(&["convert", "prd.json", "--to", "backlog", "-o", "backlog"]).exits(2).says("exists already");
    scene.run(&["convert", "prd.json", "--to", "flight", "-o", "area"]).exits(2).says("docs/implementation");
    assert!(!scene.path("area").exists());
    scene.run(&["convert", "prd.json", "--to", "flight", "-o", "docs/implementation/1-lamp"]).exits(0);
    let shown = scene.run(&["show", "flight:1", "--json"]).exits(0).json();
    assert_eq!((&shown["next"], &shown["stories"][0]["title"]), (&"1.2".into(), &"Bulb".into()));
    scene.run(&["convert", "prd.json", "--to", "beads"]).exits(2).says("bd create");
    scene.run(&["convert", "prd.json", "--to", "yml"]).exits(2).says("yaml");
}

#[test]
fn a_starter_is_made_from_flags_and_never_written_over_a_file() {
    let scene = scene();
    let flags = [
        "new",
        "prd",
        "--name",
        "Lamp",
        "--story",
        "Bulb",
        "--criterion",
        "It glows",
        "--check",
        "make bulb",
        "--story",
        "Shade",
    ];
    scene.run(&flags).exits(0).says("ralphloop run");
    let shown = scene.run(&["show", "prd.json", "--json"]).exits(0).json();
    assert_eq!((&shown["project"], &shown["next"]), (&"Lamp".into(), &"US-001".into()));
    assert_eq!(shown["stories"][0]["checks"][0]["command"], "make bulb");
    assert_eq!(shown["stories"][1]["title"], "Shade");
    let before = scene.read("prd.json");
    scene.run(&flags).exits(2).says("exists already");
    assert_eq!(scene.read("prd.json"), before);
    scene.run(&["new", "prd", "-o", "other.json"]).exits(2).says("--story");
}

#[test]
fn questions_are_answered_on_a_terminal_and_the_file_is_shown_before_it_is_written() {
    let scene = scene();
    let (shown, code) = conversation(
        &scene,
        "new prd",
        &[
            ("Name of the project", "Lamp\n"),
            ("Story 1: ", "Bulb\n"),
            ("It is done when: ", "  It glows  \n\n"),
            ("A command that tells so: ", "make bulb\n\n"),
            ("Story 2: ", "\n"),
            ("[y/N] ", "y\n"),
        ],
    );
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.find("\"It glows\"").unwrap() < shown.find("[y/N]").unwrap(), "{shown}");
    let told = scene.run(&["show", "prd.json", "--json"]).exits(0).json();
    assert_eq!((&told["project"], &told["stories"][0]["checks"][0]["command"]), (&"Lamp".into(), &"make bulb".into()));
}

#[test]
fn whoever_breaks_off_or_does_not_agree_has_written_nothing() {
    let scene = scene();
    let one_story = ("Story 1: ", "Bulb\n\n\n\n");
    for (turns, code, said) in [
        (vec![("Name", "\n"), one_story, ("[y/N] ", "maybe\n")], 4, "nothing was written"),
        (vec![("Name", "\n"), one_story, ("[y/N] ", "\n")], 4, "nothing was written"),
        (vec![("Name", "\n"), one_story, ("[y/N] ", "\u{4}")], 4, "nothing was written"),
        (vec![("Name", "\n"), ("Story 1: ", "\n")], 2, "without a story"),
        (vec![("Name", "\u{4}")], 2, "without a story"),
        (vec![("Name", "\n"), ("Story 1: ", "\u{4}")], 2, "without a story"),
        (
            vec![
                ("Name", "\n"),
                ("Story 1: ", "Bulb\n"),
                ("done when", "\u{4}"),
                ("tells so", "\u{4}"),
                ("Story 2", "\u{4}"),
                ("[y/N]", "\u{4}"),
            ],
            4,
            "nothing was written",
        ),
        (vec![("Name", "\u{3}")], 130, ""),
        (vec![("Name", "\n"), one_story, ("[y/N] ", "\u{3}")], 130, ""),
    ] {
        let (shown, ended) = conversation(&scene, "new prd", &turns);
        assert!(shown.contains(said) && !scene.path("prd.json").exists(), "{turns:?}\n{shown}");
        assert_eq!(ended, Some(code), "{turns:?}\n{shown}");
    }
    scene.nothing_runs();
}

const DRAFT: &str = r#"{"userStories": [{"id": "US-001", "title": "Bulb", "passes": false}]}"#;

#[test]
fn an_agent_drafts_in_a_scratch_folder_and_is_told_once_what_is_wrong() {
    let scene = scene();
    scene.scripted_agent(&AgentScript::always([
        call().write("prd.json", "{\"userStories\": [{\"id\": \"US-001\"}]}").write("more.txt", "x").complete(),
        call().write("prd.json", DRAFT).complete(),
    ]));
    scene.run(&["new", "prd", "--from", "a lamp"]).exits(2).says("--yes");
    called(&scene, 0);
    scene.run(&["new", "prd", "--from", "a lamp", "--yes"]).exits(0).says("neither a title");
    called(&scene, 2);
    assert_eq!(scene.read("prd.json"), DRAFT);
    assert!(!scene.path("more.txt").exists(), "what else the agent made stays out of the project");
    scene.nothing_runs();
}

#[test]
fn a_draft_that_stays_broken_is_not_written() {
    let scene = scene();
    scene.scripted_agent(&AgentScript::always([call().write("prd.json", "{\"userStories\": [").complete()]));
    scene.run(&["new", "prd", "--from", "a lamp", "--yes"]).exits(1).says("cannot be used");
    called(&scene, 2);
    assert!(!scene.path("prd.json").exists());
}
