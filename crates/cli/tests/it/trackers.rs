//! Issues that are asked for and closed through the program of their tracker.

use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};

use crate::world::scene;

/// A `gh` that lists the issues in `issues.json` and notes what it is told.
fn gh(scene: &Scene, issues: &str) {
    let (answer, told) = (scene.outside("issues.json"), scene.outside("told"));
    std::fs::write(&answer, issues).unwrap();
    scene.program(
        "gh",
        &format!(
            "#!/bin/sh\necho \"$*\" >> {told}\ncase \"$1 $2\" in 'issue list') cat {answer} ;; 'issue close') echo '[]' > {answer} ;; esac\n",
            told = told.display(),
            answer = answer.display()
        ),
    );
}

fn told(scene: &Scene) -> Vec<String> {
    let text = std::fs::read_to_string(scene.outside("told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

const ISSUES: &str = "[{\"number\": 7, \"title\": \"Lamp is dark\", \"body\": \"Needs a bulb.\", \"state\": \"OPEN\", \
    \"labels\": [{\"name\": \"ready\"}], \"milestone\": null}]";

fn github() -> Scene {
    let scene = scene();
    gh(&scene, ISSUES);
    scene.scripted_agent(&AgentScript::always([call().write("bulb.txt", "on").complete()]));
    scene
}

#[test]
fn issues_of_a_label_are_worked_and_closed_when_asked() {
    let scene = github();
    scene.run(&["show", "github:label=ready"]).exits(0).says("Lamp is dark");
    scene.run(&["run", "github:label=ready", "--headless"]).exits(0).says("closes the issues");
    assert!(told(&scene).iter().all(|call| call.contains("--label ready") && call.contains("--json number,title")));
    assert_eq!(scene.landed_subjects(), ["feat(7): Lamp is dark"]);
    scene.run(&["run", "github:label=ready", "--headless"]).exits(0).says("landed already");
    scene.run(&["run", "github:label=ready", "--headless", "--finish"]).exits(0).says("closed: 7");
    assert!(
        told(&scene).iter().any(|call| call.starts_with("issue close 7 --comment Landed as ")),
        "{:?}",
        told(&scene)
    );
    assert_eq!(scene.calls().len(), 1);
    scene.tree_is_clean();
}

#[test]
fn a_run_of_issues_is_gone_on_with_by_its_name() {
    let scene = github();
    let begun = scene.outside("begun");
    scene.scripted_agent(&AgentScript::always([call().touch(&begun).hang()]));
    let running = scene.start(&["run", "github:label=ready", "--headless"]);
    scene.wait_for_file(&begun);
    running.crash();
    scene.scripted_agent(&AgentScript::always([call().write("bulb.txt", "on").complete()]));
    scene.run(&["resume", "--headless"]).exits(0);
    assert_eq!(scene.landed_subjects(), ["feat(7): Lamp is dark"]);
}

#[test]
fn an_issue_is_closed_by_hand_through_gh() {
    let scene = github();
    scene.run(&["mark", "github:label=ready", "7"]).exits(0).says("closed through gh");
    assert_eq!(told(&scene).last().map(String::as_str), Some("issue close 7"));
}

#[test]
fn what_is_wrong_with_gh_is_told_with_what_to_do() {
    let scene = scene();
    scene
        .run(&["run", "github:label=ready", "--headless"])
        .exits(6)
        .says("`gh` is not installed")
        .says("cli.github.com");
    scene.program("gh", "#!/bin/sh\necho 'To get started with GitHub CLI, please run:  gh auth login' >&2\nexit 4\n");
    scene.run(&["show", "github:label=ready"]).exits(6).says("not signed in").says("gh auth login");
    scene.program("gh", "#!/bin/sh\necho 'none of the git remotes configured point to a known host' >&2\nexit 1\n");
    scene.run(&["run", "github:label=ready", "--headless"]).exits(6).says("known host");
    scene.run(&["run", "github:colour=red", "--headless"]).exits(2).says("there is no work 'github:colour=red'");
}

const BEAD: &str =
    "{\"id\":\"owl-1\",\"title\":\"Perch\",\"status\":\"open\",\"updated_at\":\"2026-01-01T00:00:00Z\"}\n";

fn beads() -> Scene {
    let scene = scene();
    scene.write(".beads/issues.jsonl", BEAD);
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().write("perch.txt", "on").complete()]));
    scene
}

/// A `bd` that notes what it is told, and writes its file as the real one does.
fn bd(scene: &Scene) {
    let told = scene.outside("told");
    scene.program(
        "bd",
        &format!(
            "#!/bin/sh\necho \"$*\" >> {}\n[ \"$1\" = close ] && sed -i 's/\"open\"/\"closed\"/' .beads/issues.jsonl\n",
            told.display()
        ),
    );
}

#[test]
fn issues_of_beads_are_closed_through_bd_so_that_its_database_stays_right() {
    let scene = beads();
    bd(&scene);
    scene.run(&["run", "beads", "--headless", "--finish"]).exits(0).says("closed: owl-1");
    let calls = told(&scene);
    assert!(calls.len() == 1 && calls[0].starts_with("close owl-1 --reason Landed as "), "{calls:?}");
    assert!(scene.file_in("HEAD", ".beads/issues.jsonl").contains("\"closed\""), "what bd wrote is committed");
    scene.tree_is_clean();

    let scene = beads();
    bd(&scene);
    scene.run(&["mark", "beads", "owl-1"]).exits(0).says("closed through bd");
    assert_eq!(told(&scene), ["close owl-1"]);
}

#[test]
fn without_bd_the_file_is_closed_when_asked() {
    let scene = beads();
    scene.run(&["run", "beads", "--headless", "--finish"]).exits(0);
    let line = scene.read(".beads/issues.jsonl");
    let issue: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&issue["status"], &issue["title"]), (&"closed".into(), &"Perch".into()));
    assert_ne!(issue["updated_at"], "2026-01-01T00:00:00Z");
    assert_eq!(issue["closed_at"], issue["updated_at"]);
    scene.tree_is_clean();
    scene.run(&["run", "beads", "--headless", "--finish"]).exits(0).says("nothing to do");
}
