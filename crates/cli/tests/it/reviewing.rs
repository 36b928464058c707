//! The reviewer: what it sees, what its words do, and that it can write nothing.

use ralphloop_testkit::scene::{Outcome, Scene};
use ralphloop_testkit::script::{AgentScript, call};
use serde_json::json;

use crate::world::{landed_once, nothing_landed, prd_scene, story};

/// A scene with an agent that works and is named in the settings as a reviewer, too: `critic` is a shell script that gets
/// its prompt in the file `$PROMPT` and is called for the so-manieth time in `$CALL`.
fn scene_with(critic: &str) -> Scene {
    let work = AgentScript::always([
        call().write("lamp.txt", "on").complete(),
        call().write("lamp.txt", "on and bright").complete(),
        call().write("lamp.txt", "on and brighter").complete(),
    ]);
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &work);
    let seen = scene.outside("seen");
    std::fs::create_dir_all(&seen).unwrap();
    scene.program(
        "critic",
        &format!(
            "#!/bin/sh\nexport SEEN={seen}\nCALL=$(ls $SEEN | wc -l); CALL=$((CALL + 1)); PROMPT=$SEEN/$CALL\n\
             cat > $PROMPT; pwd > $SEEN/../where; ls -A > $SEEN/../beside\n{critic}\n",
            seen = seen.display()
        ),
    );
    scene.write("ralphloop.toml", "reviewer = \"critic\"\n[agents.critic]\ncommand = \"critic\"\n");
    scene.commit_all("Reviewer");
    scene
}

fn run(scene: &Scene, more: &[&str]) -> Outcome {
    let gate = "grep -q on lamp.txt || test ! -e lamp.txt";
    scene.run(&[&["run", "prd.json", "--headless", "--gate", gate], more].concat())
}

fn seen(scene: &Scene, call: u32) -> String {
    std::fs::read_to_string(scene.outside("seen").join(call.to_string())).unwrap()
}

#[test]
fn a_reviewer_sees_the_story_the_change_and_the_checks_in_an_empty_folder_and_approves() {
    let scene = scene_with("echo 'REVIEW: APPROVED'");
    run(&scene, &[]).exits(0).says("Reviewing with critic").says("approved").says("review: approved by critic");
    landed_once(&scene, "S1", "lamp.txt");
    let prompt = seen(&scene, 1);
    for part in ["Alpha lamp", "+on", "lamp.txt", "grep -q on lamp.txt"] {
        assert!(prompt.contains(part), "{part:?} is not in\n{prompt}");
    }
    let place = std::fs::read_to_string(scene.outside("where")).unwrap();
    assert!(!place.starts_with(scene.repo().to_str().unwrap()), "{place}");
    assert_eq!(std::fs::read_to_string(scene.outside("beside")).unwrap(), "");
    assert!(!std::path::Path::new(place.trim()).exists(), "its folder is gone with it");
    assert_eq!(scene.landed().pop().unwrap().trailer("Ralphloop-Review"), Some("approved by critic"));
    assert_eq!(scene.story("S1")["review"], json!("approved by critic"));
    assert_eq!(scene.status()["iterations"], json!(2));
    assert!(scene.kept_refs().is_empty(), "nothing of the review is left: {:?}", scene.kept_refs());
}

#[test]
fn findings_go_back_to_the_agent_and_the_next_review_knows_them() {
    let scene = scene_with(
        "if [ $CALL = 1 ]; then echo 'FINDING: lamp.txt: not bright'; echo 'REVIEW: CHANGES'; \
         else echo 'REVIEW: APPROVED'; fi",
    );
    run(&scene, &[]).exits(0).says("1 finding").says("Finding: lamp.txt: not bright");
    assert_eq!(scene.read("lamp.txt"), "on and bright");
    assert!(scene.calls()[1].stdin.contains("- lamp.txt: not bright"), "{}", scene.calls()[1].stdin);
    let second = seen(&scene, 2);
    assert!(second.contains("What was found before") && second.contains("- lamp.txt: not bright"), "{second}");
    let events = scene.run(&["log", "--json"]).json_lines();
    let reviews: Vec<_> = events.iter().filter(|event| event["type"] == "review.ended").collect();
    assert_eq!(
        (&reviews[0]["opinion"], &reviews[0]["findings"]),
        (&json!("objects"), &json!(["lamp.txt: not bright"]))
    );
    assert_eq!((&reviews[1]["opinion"], &reviews[1]["round"]), (&json!("approves"), &json!(2)));
    assert_eq!(scene.story("S1")["attempts"], json!(1));
}

#[test]
fn a_reviewer_that_is_never_content_is_heard_so_often_and_the_work_lands() {
    let scene = scene_with("echo 'FINDING: lamp.txt: taste'; echo 'REVIEW: CHANGES'");
    run(&scene, &["--max-reviews", "1"]).exits(0).says("sent back once by critic, and not looked at again");
    landed_once(&scene, "S1", "lamp.txt");
    assert_eq!(scene.calls().len(), 2);
}

#[test]
fn an_answer_in_no_form_and_a_reviewer_that_fails_are_no_objection() {
    for critic in ["echo 'Looks good to me.'", "echo 'REVIEW: CHANGES'", "exit 3", "kill -9 $$"] {
        let scene = scene_with(critic);
        run(&scene, &[]).exits(0).says("no objection").says("review: none");
        landed_once(&scene, "S1", "lamp.txt");
    }
}

#[test]
fn a_reviewer_that_writes_into_the_tree_is_caught_and_its_work_does_not_land() {
    let scene = scene_with("echo evil >> \"$VICTIM/lamp.txt\"; echo 'REVIEW: APPROVED'");
    let mut scene = scene;
    let repo = scene.repo();
    scene.set_env("VICTIM", repo);
    run(&scene, &[]).exits(0).says("changed the tree that it was to review");
    landed_once(&scene, "S1", "lamp.txt");
    assert!(!scene.read("lamp.txt").contains("evil"), "{}", scene.read("lamp.txt"));
    assert_eq!(scene.story("S1")["attempts"], json!(2), "the work that was touched is put back, uncharged");
}

#[test]
fn a_reviewer_that_is_not_here_is_said_before_anything_is_paid_for() {
    let scene = scene_with("true");
    run(&scene, &["--reviewer", "gemini"]).exits(6).says("gemini");
    nothing_landed(&scene);
    assert!(scene.calls().is_empty());
    run(&scene, &["--reviewer", "gemeni"]).exits(2).says("did you mean gemini?");
}

#[test]
fn a_reviewer_named_by_a_path_in_the_project_is_found_from_its_empty_folder_too() {
    let scene = scene_with("true");
    scene.write("tools/critic", "#!/bin/sh\ncat > /dev/null\necho 'REVIEW: APPROVED'\n");
    scene.write("ralphloop.toml", "reviewer = \"critic\"\n[agents.critic]\ncommand = \"tools/critic\"\n");
    scene.command("chmod").arg("+x").arg(scene.path("tools/critic")).status().unwrap();
    scene.commit_all("Tools");
    for more in [&["--in-place"][..], &["--worktree", "--fresh", "--story", "S1"]] {
        run(&scene, more).exits(0).says("approved by critic");
        scene.git(&["reset", "--hard", "--quiet", "HEAD~1"]);
    }
}
