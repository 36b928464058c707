//! Defects of earlier loops that must not come back: signals, limits, prompts, selection. Named by their numbers (B…).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ralphloop_testkit::script::{AgentScript, call};
use serde_json::json;

use crate::world::{
    COMPLETE, ONCE, ONCE_AND_ON, called, landed_once, nothing_landed, passes, prd_scene, prd_text, reason, run, scene,
    start, states, story, two_stories,
};

#[test]
fn b1_complete_with_open_criteria_ends_after_one_call() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")
            .with("acceptanceCriteria", json!([{"id": "c1", "text": "Shines", "passes": false}]))],
        &AgentScript::always([call().write("a.txt", "on").complete()]),
    );
    run(&scene, &[]).exits(0);
    called(&scene, 1);
}

#[test]
fn b2_a_signal_outside_the_final_message_or_quoted_in_it_does_not_count() {
    let fence = format!("It will end so:\n```\n{COMPLETE}\n```\nOne test is left.");
    let quote = format!("> {COMPLETE}\n\nThat is what I shall say.");
    let sentence = format!("I am not saying {COMPLETE} yet.");
    let nothing = "Not finished.";
    for script in [
        call().write("a.txt", "x").say(COMPLETE).end(nothing),
        call().write("a.txt", "x").think(COMPLETE).end(nothing),
        call().write("a.txt", "x").tool("Read", &json!({"path": COMPLETE}), COMPLETE).end(nothing),
        call().write("a.txt", "x").echo(COMPLETE).end(nothing),
        call().write("a.txt", "x").sub_agent(COMPLETE).end(nothing),
        call().write("a.txt", "x").stderr(COMPLETE).end(nothing),
        call().write("a.txt", "x").end(&fence),
        call().write("a.txt", "x").end(&quote),
        call().write("a.txt", "x").end(&sentence),
    ] {
        let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([script.clone()]));
        let outcome = run(&scene, ONCE);
        assert_eq!(outcome.code(), Some(1), "{script:?}\n{outcome}");
        nothing_landed(&scene);
    }
}

#[test]
fn b2_a_near_miss_is_reported_as_one() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("a.txt", "x").end(&format!("I am not saying {COMPLETE} yet."))]),
    );
    run(&scene, ONCE).exits(1);
    let reason = reason(&scene, "S1");
    assert!(reason.contains("COMPLETE"), "{reason}");
}

#[test]
fn b3_stories_that_passed_before_do_not_use_up_the_iterations() {
    let mut stories: Vec<_> =
        (1..=10).map(|n| story(&format!("S{n}"), &format!("Old {n}")).with("passes", json!(true))).collect();
    stories.push(story("S11", "Eleventh lamp"));
    let scene = prd_scene(&stories, &AgentScript::always([call().write("a.txt", "on").complete()]));
    run(&scene, &["--max-iterations", "10"]).exits(0);
    states(&scene, &[("S11", "passed")]);
}

#[test]
fn b4_a_dependant_of_a_failed_story_is_not_begun() {
    let [first, second] = two_stories();
    let scene = prd_scene(
        &[first, second.after(&["S1"]), story("S3", "Gamma lamp").after(&["S2"]), story("S4", "Delta lamp")],
        &AgentScript::always([call().write("d.txt", "on").complete()]).story("Alpha lamp", [call().failed("glued in")]),
    );
    run(&scene, ONCE_AND_ON).exits(1).says("S2").says("S3");
    called(&scene, 2);
    states(&scene, &[("S1", "failed"), ("S2", "blocked"), ("S3", "blocked"), ("S4", "passed")]);
}

#[test]
fn stories_are_taken_by_priority_then_complexity_then_order() {
    let scene = prd_scene(
        &[
            story("S1", "Lamp one").with("priority", json!(3)),
            story("S2", "Lamp two").with("priority", json!(1)).with("complexity", json!(5)),
            story("S3", "Lamp three").with("priority", json!(1)).with("complexity", json!(2)),
            story("S4", "Lamp four").with("priority", json!(2)),
            story("S5", "Lamp five").with("priority", json!(2)),
        ],
        &["one", "two", "three", "four", "five"]
            .iter()
            .fold(AgentScript::new(), |s, n| s.story(&format!("Lamp {n}"), [call().write(n, "on").complete()])),
    );
    run(&scene, &[]).exits(0);
    let order: Vec<String> = scene.calls().iter().map(|c| c.story.clone()).collect();
    assert_eq!(order, ["Lamp three", "Lamp two", "Lamp four", "Lamp five", "Lamp one"]);
}

#[test]
fn b14_output_of_a_gate_that_has_no_line_with_error_reaches_the_repair() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().write("a.txt", "dim").complete(), call().write("a.txt", "bright").complete()]),
    );
    run(
        &scene,
        &[
            "--max-retries",
            "0",
            "--max-repairs",
            "1",
            "--gate",
            "grep -q bright a.txt || { echo '✗ lampe: zu dunkel (3 von 7)'; exit 1; }",
        ],
    )
    .exits(0);
    assert!(scene.calls()[1].prompt().contains("✗ lampe: zu dunkel (3 von 7)"));
}

#[test]
fn b15_without_gates_a_story_is_committed_all_the_same() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    run(&scene, &["--no-gates"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn b17_a_child_that_holds_stdout_open_after_the_result_costs_the_grace_time_and_no_more() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().leave_child(true).write("a.txt", "on").complete()]),
    );
    let outcome = run(&scene, &["--exit-grace", "2"]).exits(0);
    assert!(outcome.took < Duration::from_mins(1), "{outcome}");
    scene.nothing_runs();
}

#[test]
fn b17_an_agent_that_does_not_exit_after_its_result_is_ended_and_judged_by_the_result() {
    let scene =
        prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().write("a.txt", "on").complete().hang()]));
    run(&scene, &["--exit-grace", "2"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    scene.nothing_runs();
}

#[test]
fn b18_the_agents_stdin_is_at_its_end_after_the_prompt() {
    // The scripted agent reads stdin to its end before anything else, so it would never begin.
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    run(&scene, &["--start-timeout", "30"]).exits(0);
    assert!(scene.calls()[0].stdin.contains("Alpha lamp"), "the prompt goes through stdin");
}

fn in_seconds(seconds: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds
}

#[test]
fn b26_a_usage_limit_is_waited_for_and_charges_nothing() {
    let reset = in_seconds(4);
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("b.txt", "on").complete()]).story(
            "Alpha lamp",
            [call().write("half.txt", "x").usage_limit(reset), call().write("a.txt", "on").complete()],
        ),
    );
    let running = start(&scene, ONCE);
    scene.wait_for_calls(1);
    ralphloop_testkit::scene::eventually("the wait to be shown", || {
        scene.status()["resume_at"].is_string() || scene.calls().len() > 1
    });
    running.wait().exits(0).says("limit");
    assert!(in_seconds(0) >= reset);
    let told: Vec<String> = scene.calls().iter().map(|c| c.story.clone()).collect();
    assert_eq!(told, ["Alpha lamp", "Alpha lamp", ""], "the same story again, no other in between");
    landed_once(&scene, "S1", "a.txt");
    assert!(!scene.path("half.txt").exists());
    assert_eq!(scene.story("S1")["attempts"], 2, "both are told of, though the first was not charged");
}

#[test]
fn b26_words_about_limits_in_a_file_that_the_agent_read_are_no_limit() {
    let words = "usage limit reached, try again at 10pm. HTTP 429 rate_limit_error quota exceeded";
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .tool("Read", &json!({"path": "limits.rs"}), words)
            .say(words)
            .write("a.txt", "on")
            .complete()]),
    );
    run(&scene, &[]).exits(0);
    called(&scene, 1);
}

#[test]
fn b27_the_words_is_error_false_are_no_error() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .write("a.txt", "on")
            .say("{\"is_error\": true, \"error\": \"fatal\"}")
            .complete()]),
    );
    run(&scene, &[]).exits(0);
}

#[test]
fn b27_an_overloaded_provider_is_not_the_storys_fault() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().api_error(529, "Overloaded"), call().write("a.txt", "on").complete()]),
    );
    run(&scene, &[ONCE, &["--limit-wait", "30"]].concat()).exits(0);
    called(&scene, 2);
    landed_once(&scene, "S1", "a.txt");
}

#[test]
fn b28_a_gate_that_failed_before_the_story_is_told_apart_from_what_the_story_broke() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    let outcome = run(&scene, &[ONCE, &["--gate", "test -f never.txt"]].concat());
    outcome.says_any(&["before the story", "baseline", "already fail", "failed before"]);
}

#[test]
fn b29_an_attempt_that_changes_nothing_is_flagged() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().complete()]));
    run(&scene, ONCE_AND_ON).exits(1);
    states(&scene, &[("S1", "failed"), ("S2", "failed")]);
    assert!(!passes(&scene, "S1"));
}

#[test]
fn b30_a_flood_of_output_is_read_in_bounded_memory() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().flood(64 << 20).write("a.txt", "on").complete()]),
    );
    let mut running = start(&scene, &[]);
    let mut peak = 0;
    while running.is_running() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap_or_default();
        let now: u64 = status
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
            .unwrap_or(0);
        peak = peak.max(now);
        std::thread::sleep(Duration::from_millis(10));
    }
    running.wait().exits(0);
    assert!(peak > 0 && peak < 150 * 1024, "{peak} kB for 64 MB of output");
}

#[test]
fn b33_gates_are_those_of_the_start_even_if_the_agent_edits_them() {
    let scene = scene();
    scene.write("ralphloop.toml", "gate = [\"test -f lamp.txt\"]\n");
    scene.write("prd.json", prd_text(&[story("S1", "Alpha lamp").check("echo ORIGINAL; exit 1")]));
    scene.commit_all("Plan");
    let eased = prd_text(&[story("S1", "Alpha lamp").check("true")]);
    scene.scripted_agent(&AgentScript::always([call()
        .write("prd.json", &eased)
        .write("ralphloop.toml", "gate = []\n")
        .write("a.txt", "on")
        .complete()]));
    run(&scene, ONCE).exits(1);
    nothing_landed(&scene);
    assert!(scene.read("prd.json").contains("ORIGINAL"));
}

#[test]
fn b37_ids_with_slashes_blanks_and_other_scripts_work_throughout() {
    let scene = scene();
    let ids = ["auth/login form", "日本語-1", "a..b~^:?*[", "-rf", "S'1\"$(x)"];
    let stories: Vec<_> = ids.iter().enumerate().map(|(n, id)| story(id, &format!("Lamp number {n}"))).collect();
    scene.write("prd.json", prd_text(&stories));
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always(
        (0..ids.len()).map(|n| call().write(&format!("f{n}.txt"), "on").complete()),
    ));
    run(&scene, &[]).exits(0);
    for (n, id) in ids.iter().enumerate() {
        landed_once(&scene, id, &format!("f{n}.txt"));
        scene.run(&["diff", "--", id]).exits(0).says(&format!("f{n}.txt"));
    }
}

#[test]
fn b38_a_learning_reaches_the_next_story_once() {
    let learning = "<learning>The lamps need 12 volts.</learning>";
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "on").end(&format!("{learning}\n{learning}\n{COMPLETE}"))])
            .story("Beta lamp", [call().write("b.txt", "on").complete()]),
    );
    run(&scene, &[]).exits(0);
    assert_eq!(scene.calls()[1].prompt().matches("The lamps need 12 volts.").count(), 1);
}

#[test]
fn b40_every_event_reaches_a_slow_reader() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().flood(1 << 20).write("a.txt", "on").complete()])
            .story("Beta lamp", [call().flood(1 << 20).write("b.txt", "on").complete()]),
    );
    let live = run(&scene, &["--json"]).exits(0).json_lines();
    for id in ["S1", "S2"] {
        let landed = live.iter().filter(|e| e["type"] == "story.landed" && e["story"] == id).count();
        assert_eq!(landed, 1, "{id} in {live:#?}");
    }
    assert_eq!(live.last().unwrap()["type"], "run.ended");
}

#[test]
fn b43_lines_that_are_no_events_and_a_missing_last_line_end_lose_nothing() {
    let end =
        json!({"type": "result", "subtype": "success", "is_error": false, "result": COMPLETE, "total_cost_usd": 0.01});
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call()
            .raw("npm WARN something")
            .raw("")
            .raw("null")
            .raw("[]")
            .raw("{\"type\":\"assistant\",\"mess")
            .raw("{\"type\":\"brand_new\",\"payload\":{}}")
            .write("a.txt", "on")
            .raw(&end.to_string())]),
    );
    run(&scene, &[]).exits(0).never_says("panicked");
}

#[test]
fn a_prompt_that_is_too_long_is_not_sent_again_unchanged() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().api_error(400, "prompt is too long: 9 tokens > 8 maximum")]),
    );
    run(&scene, &["--max-retries", "6"]).exits(1).says_any(&["too long", "context"]);
    assert!(scene.calls().len() <= 2, "{} calls", scene.calls().len());
}
