//! Every exit code of `run`, and the summary that every end prints.

use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::Signal;

use crate::world::{
    ONCE, ONCE_AND_ON, called, nothing_landed, prd_scene, run, scene, start, states, story, two_stories,
};

fn lamps() -> AgentScript {
    AgentScript::always([call().write("b.txt", "on").complete()])
        .story("Alpha lamp", [call().write("a.txt", "on").complete()])
}

#[test]
fn all_passed_is_0_and_the_summary_names_branch_and_commits() {
    let scene = prd_scene(&two_stories(), &lamps());
    let outcome = run(&scene, &[]).exits(0);
    assert!(outcome.stdout.contains("main"), "{outcome}");
    for commit in scene.landed() {
        assert!(outcome.stdout.contains(&commit.hash[..7]), "{outcome}");
    }
}

#[test]
fn a_failed_story_is_1_and_the_summary_gives_its_reason_and_what_remains() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().failed("the lamp is glued in")]));
    let outcome = run(&scene, ONCE).exits(1);
    assert!(outcome.stdout.contains("the lamp is glued in"), "{outcome}");
    assert!(outcome.stdout.contains("S2"), "what remains is named\n{outcome}");
}

#[test]
fn a_failed_story_is_1_though_others_passed_after_it() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().write("b.txt", "on").complete()]).story("Alpha lamp", [call().failed("glued in")]),
    );
    run(&scene, ONCE_AND_ON).exits(1);
    states(&scene, &[("S1", "failed"), ("S2", "passed")]);
}

#[test]
fn work_that_is_all_done_is_0_without_a_call() {
    let scene = prd_scene(&[story("S1", "Alpha lamp").with("passes", true.into())], &lamps());
    run(&scene, &[]).exits(0).says("nothing to do");
    called(&scene, 0);
}

#[test]
fn nothing_that_could_be_started_though_something_is_open_is_3() {
    let scene = prd_scene(&[story("S1", "Alpha lamp")], &lamps());
    run(&scene, &["--require-verify"]).exits(3).says("S1");
    called(&scene, 0);
    nothing_landed(&scene);
}

#[test]
fn a_request_to_stop_is_4() {
    let scene = scene();
    let (begun, go_on) = (scene.outside("begun"), scene.outside("go-on"));
    scene.write("prd.json", crate::world::prd_text(&two_stories()));
    scene.commit_all("Plan");
    scene.scripted_agent(&AgentScript::always([call().touch(&begun).wait_for(&go_on).write("a.txt", "on").complete()]));
    let running = start(&scene, &[]);
    scene.wait_for_file(&begun);
    scene.run(&["stop"]).exits(0);
    std::fs::write(&go_on, "").unwrap();
    running.wait().exits(4);
    states(&scene, &[("S1", "passed"), ("S2", "pending")]);
}

#[test]
fn a_sign_in_that_expired_is_6_after_one_call_and_names_the_way_back() {
    let scene = prd_scene(
        &two_stories(),
        &AgentScript::always([call().api_error(401, "OAuth token has expired. Please run /login")]),
    );
    run(&scene, &[]).exits(6).says_any(&["sign in", "signed in", "login"]);
    called(&scene, 1);
    nothing_landed(&scene);
}

#[test]
fn the_end_of_a_budget_of_iterations_is_5() {
    let scene = prd_scene(&two_stories(), &lamps());
    run(&scene, &["--max-iterations", "1"]).exits(5).says("iteration");
    called(&scene, 1);
    states(&scene, &[("S1", "passed"), ("S2", "pending")]);
}

#[test]
fn the_end_of_a_budget_of_money_is_5_before_the_next_call() {
    let scene = prd_scene(
        &[story("S1", "Alpha lamp"), story("S2", "Beta lamp"), story("S3", "Gamma lamp")],
        &AgentScript::new()
            .story("Alpha lamp", [call().write("a.txt", "on").end_at_cost(crate::world::COMPLETE, 0.60)])
            .story("Beta lamp", [call().write("b.txt", "on").end_at_cost(crate::world::COMPLETE, 0.60)]),
    );
    run(&scene, &["--max-cost", "1"]).exits(5).says("1.20");
    called(&scene, 2);
}

#[test]
fn the_end_of_a_budget_of_tokens_is_5() {
    let scene = prd_scene(&two_stories(), &lamps());
    run(&scene, &["--max-tokens", "1000"]).exits(5).says("token");
    called(&scene, 1);
}

#[test]
fn the_end_of_the_runs_time_is_5_and_ends_the_agent() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().say("working").hang()]));
    run(&scene, &["--max-duration", "2"]).exits(5);
    nothing_landed(&scene);
    scene.nothing_runs();
}

#[test]
fn a_limit_that_lasts_longer_than_the_longest_wait_is_5_at_once() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().usage_limit(4_102_444_800)]));
    run(&scene, &["--limit-wait", "2"]).exits(5).says("limit");
    called(&scene, 1);
}

#[test]
fn no_repository_is_6() {
    let scene = ralphloop_testkit::scene::Scene::without_repository(crate::world::binary());
    scene.write("prd.json", crate::world::prd_text(&two_stories()));
    scene.scripted_agent(&lamps());
    run(&scene, &[]).exits(6).says("git init");
    called(&scene, 0);
}

#[test]
fn a_missing_agent_is_6_and_its_name_is_said() {
    let scene = scene();
    scene.write("prd.json", crate::world::prd_text(&two_stories()));
    scene.commit_all("Plan");
    run(&scene, &["--agent", "claude"]).exits(6).says("claude");
    nothing_landed(&scene);
}

#[test]
fn signals_end_it_with_their_own_codes_and_the_summary() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        let scene =
            prd_scene(&two_stories(), &AgentScript::always([call().write("half.txt", "x").say("working").hang()]));
        let running = start(&scene, &[]);
        scene.wait_for_calls(1);
        running.signal(signal);
        let outcome = running.wait().exits(code);
        assert!(outcome.stdout.contains("S1"), "the summary is printed\n{outcome}");
        called(&scene, 1);
        nothing_landed(&scene);
        states(&scene, &[("S1", "pending"), ("S2", "pending")]);
        scene.nothing_runs();
    }
}

#[test]
fn every_kind_of_end_prints_duration_and_cost() {
    let scene = prd_scene(&two_stories(), &lamps());
    for flags in [&["--max-iterations", "1"][..], &[]] {
        let outcome = run(&scene, flags);
        for word in ["took", "cost", "token"] {
            assert!(outcome.stdout.to_lowercase().contains(word), "{word}\n{outcome}");
        }
    }
}
