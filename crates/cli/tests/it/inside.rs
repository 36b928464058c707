//! The loop driven from inside an agent's session: the MCP server as its client sees it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use ralphloop_testkit::model_api::{ModelApi, ModelScript, StoryScript};
use ralphloop_testkit::scene::{Scene, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::real_claude::{KEY, client_settings};
use crate::world::{COMPLETE, installed, prd_text, scene, story, two_stories};

/// A client with a session.
struct Session {
    server: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    requests: u64,
}

impl Session {
    fn begin(scene: &Scene) -> Self {
        let mut command = scene.command(crate::world::binary());
        command.arg("mcp");
        Self::of(command, scene)
    }

    /// A session whose server was started by somebody else.
    fn begin_elsewhere(scene: &Scene) -> Self {
        let mut command = scene.command("sh");
        command.args(["-c", "\"$0\" mcp; exit $?"]).arg(crate::world::binary());
        Self::of(command, scene)
    }

    fn of(mut command: std::process::Command, scene: &Scene) -> Self {
        command.current_dir(scene.repo());
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdin = server.stdin.take();
        let stdout = BufReader::new(server.stdout.take().unwrap());
        let mut session = Self { server, stdin, stdout, requests: 0 };
        let said = session.request(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "test-client", "version": "1"}}),
        );
        assert_eq!(said["serverInfo"]["name"], "ralphloop");
        assert!(said["instructions"].as_str().unwrap().contains("start_run"));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the server went away");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{message:#}");
                return message["result"].clone();
            }
        }
    }

    fn raw(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// What a tool answers.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.raw(tool, arguments);
        assert_ne!(result["isError"], true, "{result:#}");
        result["structuredContent"].clone()
    }

    /// Why a tool refuses.
    fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.raw(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The turn after all that the tool itself does.
    fn turn(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut turn = self.call(tool, arguments);
        while turn["state"] == "busy" {
            turn = self.call("next", &json!({}));
        }
        turn
    }

    fn report(&mut self, attempt: &str, message: &str) -> Value {
        self.turn("report", &json!({"attempt": attempt, "message": message}))
    }

    /// Closes the session, and waits for the server's end.
    fn end(mut self) -> Option<i32> {
        self.stdin = None;
        self.server.wait().unwrap().code()
    }
}

fn world(stories: &[crate::world::PrdStory]) -> Scene {
    let scene = scene();
    scene.write("prd.json", prd_text(stories));
    scene.commit_all("Plan");
    scene
}

#[test]
fn a_session_works_two_stories_and_one_fails_its_gate_first() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    let works = session.call("list_work", &json!({}));
    assert_eq!(works["works"][0]["work"], "prd:prd.json");
    assert_eq!(session.call("show_work", &json!({}))["stories"].as_array().unwrap().len(), 2);

    let start = json!({"work": "prd.json", "settings": {"gate": ["! grep -r bad lamp"], "max_repairs": 1}});
    let first = session.turn("start_run", &start);
    assert_eq!((first["state"].as_str(), first["call"]["attempt"].as_str()), (Some("work"), Some("S1#1")));
    assert!(first["call"]["prompt"].as_str().unwrap().contains("Alpha lamp"));
    assert_eq!(first["call"]["folder"], scene.repo().display().to_string());

    scene.write("lamp", "bad\n");
    let repair = session.report("S1#1", &format!("It shines.\n{COMPLETE}"));
    assert_eq!((repair["state"].as_str(), repair["call"]["number"].as_u64()), (Some("work"), Some(2)));
    assert!(repair["call"]["prompt"].as_str().unwrap().contains("grep -r bad lamp"), "{repair:#}");
    assert!(repair["happened"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("grep -r bad")));
    assert!(scene.landed().is_empty());

    scene.write("lamp", "good\n");
    let second = session.report("S1#1", &format!("Now it does.\n{COMPLETE}"));
    assert_eq!(second["call"]["attempt"], "S2#1");
    assert_eq!(scene.landed().len(), 1);
    assert_eq!(scene.landed()[0].trailer("Ralphloop-Agent"), Some("test-client (inside)"));

    scene.write("other", "good\n");
    let end = session.turn("report", &json!({"attempt": "S2#1", "message": "Done.", "signal": "complete"}));
    assert_eq!(end["state"], "ended");
    assert!(end["summary"].as_str().unwrap().contains("S2"), "{end:#}");
    assert_eq!(scene.landed().len(), 2);
    scene.tree_is_clean();
    assert_eq!(session.end(), Some(0));
}

#[test]
fn what_the_agent_says_of_itself_decides_nothing() {
    let scene = world(&[story("S1", "Alpha lamp").check("test -e lamp")]);
    let mut session = Session::begin(&scene);
    let settings = json!({"max_retries": 1, "max_repairs": 0, "no_gates": true});
    session.turn("start_run", &json!({"settings": settings}));
    scene.write("elsewhere", "x\n");
    let again = session.report("S1#1", &format!("All done.\n{COMPLETE}"));
    assert_eq!(again["call"]["attempt"], "S1#2");
    assert!(again["call"]["prompt"].as_str().unwrap().contains("test -e lamp"));
    assert!(!scene.path("elsewhere").exists(), "the failed attempt was put back");
    let end =
        session.turn("report", &json!({"attempt": "S1#2", "message": "", "signal": "blocked", "reason": "no wire"}));
    assert_eq!(end["state"], "ended");
    assert!(end["summary"].as_str().unwrap().contains("no wire"), "{end:#}");
    assert!(scene.landed().is_empty());
    assert_eq!(session.end(), Some(1));
}

#[test]
fn a_session_that_goes_away_ends_its_run_and_the_next_goes_on() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    session.turn("start_run", &json!({}));
    scene.write("lamp", "x\n");
    session.report("S1#1", COMPLETE);
    scene.write("half", "x\n");
    assert_eq!(session.end(), Some(4));
    assert!(!scene.path("half").exists(), "what was under way is put back");
    assert_eq!(scene.kept_refs().len(), 1, "and kept");

    let mut session = Session::begin(&scene);
    let turn = session.turn("start_run", &json!({}));
    assert_eq!(turn["call"]["story"], "S2");
    scene.write("other", "x\n");
    let attempt = turn["call"]["attempt"].as_str().unwrap().to_owned();
    assert_eq!(session.report(&attempt, COMPLETE)["state"], "ended");
    assert_eq!(scene.landed().len(), 2);
    assert_eq!(session.end(), Some(0));
}

#[test]
fn a_killed_server_loses_nothing() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    session.turn("start_run", &json!({}));
    scene.write("half", "x\n");
    session.server.kill().unwrap();
    session.server.wait().unwrap();
    let mut session = Session::begin(&scene);
    let turn = session.turn("start_run", &json!({}));
    assert_eq!(turn["call"]["story"], "S1");
    assert!(!scene.path("half").exists());
    assert!(scene.kept_refs().iter().any(|kept| kept.ends_with("/S1/1")), "{:?}", scene.kept_refs());
    session.end();
}

#[test]
fn signals_end_the_server_with_and_without_a_run() {
    let scene = world(&two_stories());
    for with_run in [false, true] {
        let mut session = Session::begin(&scene);
        if with_run {
            session.turn("start_run", &json!({}));
        }
        let pid = Pid::from_child(&session.server);
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(session.server.wait().unwrap().code(), Some(143));
    }
    scene.nothing_runs();
}

#[test]
fn wrong_calls_are_answered_with_a_way_out() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    assert!(session.refused("next", &json!({})).contains("start_run"));
    assert!(session.refused("start_run", &json!({"work": "nothing.json"})).contains("nothing.json"));
    let said = session.refused("start_run", &json!({"settings": {"max_retrys": 1}}));
    assert!(said.contains("did you mean max_retries?"), "{said}");
    assert!(!said.contains('\u{1b}'));
    session.turn("start_run", &json!({}));
    assert!(session.refused("start_run", &json!({})).contains("going on"));
    assert!(session.refused("report", &json!({"attempt": "S9#1", "message": ""})).contains("S1#1"));
    // A call can be had again by whoever lost it.
    assert_eq!(session.turn("next", &json!({"attempt": "S1#1"}))["call"]["attempt"], "S1#1");
    assert_eq!(session.call("status", &json!({}))["state"], "running");
    session.end();
}

#[test]
fn a_session_stops_pauses_and_guides_its_run() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    session.turn("start_run", &json!({"settings": {"max_repairs": 0}}));
    session.raw("guide", &json!({"text": "Use brass."}));
    let again =
        session.turn("report", &json!({"attempt": "S1#1", "message": "No.", "signal": "failed", "reason": "dark"}));
    assert!(again["call"]["prompt"].as_str().unwrap().contains("Use brass."));
    session.raw("stop", &json!({"now": true}));
    let end = session.turn("next", &json!({}));
    assert_eq!(end["state"], "ended", "{end:#}");
    assert!(session.refused("report", &json!({"attempt": "S1#2", "message": COMPLETE})).contains("S1#2"));
    assert!(scene.landed().is_empty());
    session.end();
}

#[test]
fn the_time_of_a_call_runs_out() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    let settings = json!({"agent_timeout": "1s", "max_retries": 0, "on_exhausted": "stop"});
    session.turn("start_run", &json!({"settings": settings}));
    eventually("the call is withdrawn", || session.call("status", &json!({}))["state"] != "running");
    assert_eq!(session.turn("next", &json!({}))["state"], "ended");
    assert_eq!(session.end(), Some(1));
}

#[test]
fn sub_agents_side_by_side_work_in_worktrees_of_their_own() {
    let scene = world(&two_stories());
    let mut session = Session::begin(&scene);
    let one = session.turn("start_run", &json!({"settings": {"jobs": 2}}));
    let two = session.turn("next", &json!({}));
    let calls = [&one["call"], &two["call"]];
    assert_ne!(calls[0]["folder"], calls[1]["folder"]);
    for (call, name) in calls.iter().zip(["lamp", "other"]) {
        std::fs::write(std::path::Path::new(call["folder"].as_str().unwrap()).join(name), "x\n").unwrap();
    }
    session.call("report", &json!({"attempt": calls[0]["attempt"], "message": COMPLETE}));
    let end = session.turn("report", &json!({"attempt": calls[1]["attempt"], "message": COMPLETE}));
    assert_eq!(end["state"], "ended", "{end:#}");
    assert_eq!(scene.landed().len(), 2);
    assert_eq!((scene.read("lamp"), scene.read("other")), ("x\n".to_owned(), "x\n".to_owned()));
    session.end();
}

#[test]
fn init_writes_what_a_session_needs_and_nothing_over_it() {
    let scene = world(&two_stories());
    scene.run(&["init"]).exits(0).says("wrote ralphloop.toml");
    scene.run(&["config"]).exits(0);
    scene.run(&["init"]).exits(2).says("is there already");
    scene.run(&["init", "--commands"]).exits(0).says("story-loop.start.md").says(".mcp.json");
    assert!(scene.read(".claude/commands/story-loop.start.md").contains("start_run"));
    let hooks: Value = serde_json::from_str(&scene.read(".claude/settings.json")).unwrap();
    assert_eq!(hooks["hooks"]["Stop"][0]["hooks"][0]["command"], "ralphloop agent may-stop");
    let servers: Value = serde_json::from_str(&scene.read(".mcp.json")).unwrap();
    assert_eq!(servers["mcpServers"]["ralphloop"]["args"][0], "mcp");
    scene.write(".mcp.json", "{}\n");
    scene.write(".claude/commands/story-loop.start.md", "mine\n");
    scene.run(&["init", "--commands", "claude"]).exits(0).says("left as it is").says("add this server");
    assert_eq!(scene.read(".mcp.json"), "{}\n");
    assert_eq!(scene.read(".claude/commands/story-loop.start.md"), "mine\n");
}

/// What the stop hook of the agent that this test is answers: nothing, or why the session has to go on.
fn held_back(scene: &Scene) -> Option<String> {
    let outcome = scene.run(&["agent", "may-stop"]).exits(0);
    (!outcome.stdout.is_empty()).then(|| {
        let said = outcome.json();
        assert_eq!(said["decision"], "block");
        said["reason"].as_str().unwrap().to_owned()
    })
}

#[test]
fn a_session_that_drives_a_run_is_told_to_go_on_until_it_is_over_but_not_for_ever() {
    let scene = world(&two_stories());
    assert_eq!(held_back(&scene), None, "there is no run");
    let mut session = Session::begin(&scene);
    session.turn("start_run", &json!({}));
    for _ in 0..3 {
        assert!(held_back(&scene).is_some_and(|why| why.contains("`next`") && why.contains("S1")));
    }
    assert_eq!(held_back(&scene), None, "nothing came of it three times");
    scene.write("lamp", "x\n");
    assert_eq!(session.report("S1#1", COMPLETE)["call"]["attempt"], "S2#1");
    assert!(held_back(&scene).is_some(), "something has happened since");
    scene.write("other", "x\n");
    assert_eq!(session.report("S2#1", COMPLETE)["state"], "ended");
    assert_eq!(held_back(&scene), None, "the run is over");
    session.end();
}

#[test]
fn a_session_that_drives_nothing_may_stop_whoever_is_at_work_in_the_repository() {
    let scene = world(&two_stories());
    let mut session = Session::begin_elsewhere(&scene);
    session.turn("start_run", &json!({}));
    assert_eq!(held_back(&scene), None);
    session.end();
}

/// The real Claude Code in the slash command of the story loop, to its end: the model's side, and what it printed.
fn story_loop(scene: &mut Scene, script: ModelScript) -> (ModelApi, String) {
    let api = ModelApi::start(script).unwrap();
    scene.link_program("claude", &installed("claude"));
    scene.link_program("ralphloop", &crate::world::binary());
    for (name, value) in client_settings(KEY, &api.url()) {
        scene.set_env(name, value);
    }
    // The scripted model looks for no tools: all are offered at once.
    scene.set_env("ENABLE_TOOL_SEARCH", "false");
    scene.run(&["init", "--commands"]).exits(0);
    scene.commit_all("Commands");
    let mut claude = scene.command("claude");
    claude.args(["-p", "/story-loop.start prd.json", "--dangerously-skip-permissions", "--mcp-config", ".mcp.json"]);
    let output = claude.current_dir(scene.repo()).stdin(Stdio::null()).output().unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (api, told)
}

/// What the stop hook tells a session.
const NOT_OVER: &str = "that this session drives is not over";

/// How often the real Claude Code was told by the hook: each time it says so to its model.
fn told_to_go_on(api: &ModelApi) -> usize {
    let bodies = api.requests().into_iter().map(|request| String::from_utf8_lossy(&request.body).into_owned());
    let told = |body: String| body.contains(NOT_OVER).then(|| body.matches("Stop hook blocking error").count());
    bodies.filter_map(told).max().unwrap_or_default()
}

#[test]
fn real_client_that_would_stop_too_early_is_kept_going_by_the_hook_until_the_run_is_over() {
    let sub = json!({"description": "One call", "prompt": "SUB-1: do it.", "subagent_type": "general-purpose", "run_in_background": false});
    let script = ModelScript::new()
        .story(StoryScript::when(&["SUB-1"]).write("lamp", "good\n").say(&format!("In.\n{COMPLETE}")))
        .story(
            // The first of its steps was taken before it was told.
            StoryScript::when(&["start_run", NOT_OVER])
                .call("next", &json!({}))
                .call("Agent", &sub)
                .call("report", &json!({"attempt": "S1#1", "message": COMPLETE}))
                .say("The story has landed."),
        )
        .story(
            StoryScript::when(&["start_run"]).call("start_run", &json!({"work": "prd.json"})).say("Enough for today."),
        );
    let mut scene = world(&two_stories()[..1]);
    let (api, told) = story_loop(&mut scene, script);
    assert!(told.contains("The story has landed."), "{told}");
    assert_eq!(told_to_go_on(&api), 1, "once the run is over it may stop");
    assert_eq!(scene.landed().len(), 1, "{told}");
    scene.nothing_runs();
}

#[test]
fn real_client_that_will_not_go_on_may_stop_after_three_times_and_its_run_is_kept() {
    let script = ModelScript::new().story(StoryScript::when(&["start_run", NOT_OVER]).say("Enough, really.")).story(
        StoryScript::when(&["start_run"]).call("start_run", &json!({"work": "prd.json"})).say("Enough for today."),
    );
    let mut scene = world(&two_stories()[..1]);
    let (api, told) = story_loop(&mut scene, script);
    assert!(told.contains("Enough, really."), "{told}");
    assert_eq!(told_to_go_on(&api), 3, "a session that cannot end is worse");
    assert_eq!(scene.landed().len(), 0);
    scene.nothing_runs();
    scene.tree_is_clean();
    assert_ne!(scene.status()["state"], "running", "{:#}", scene.status());
}

/// The whole of it with the real Claude Code: the slash command, a fresh sub-agent for each call, one gate that is red first.
#[test]
fn real_client_works_two_stories_through_the_slash_command() {
    let sub = |text: &str| json!({"description": "One call", "prompt": text, "subagent_type": "general-purpose", "run_in_background": false});
    let said = |message: &str, attempt: &str| json!({"attempt": attempt, "message": message});
    let script = ModelScript::new()
        .story(StoryScript::when(&["SUB-1"]).write("lamp", "bad\n").say(&format!("In.\n{COMPLETE}")))
        .story(StoryScript::when(&["SUB-2"]).write("lamp", "good\n").say(&format!("Mended.\n{COMPLETE}")))
        .story(StoryScript::when(&["SUB-3"]).write("other", "good\n").say(&format!("In.\n{COMPLETE}")))
        .story(
            StoryScript::when(&["start_run"])
                .call("start_run", &json!({"work": "prd.json", "settings": {"gate": ["! grep -r bad lamp"]}}))
                .call("Agent", &sub("SUB-1: do the first."))
                .call("report", &said(COMPLETE, "S1#1"))
                .call("Agent", &sub("SUB-2: mend it."))
                .call("report", &said(COMPLETE, "S1#1"))
                .call("Agent", &sub("SUB-3: do the second."))
                .call("report", &said(COMPLETE, "S2#1"))
                .say("Both stories have landed."),
        );
    let mut scene = world(&two_stories());
    let (_, told) = story_loop(&mut scene, script);
    assert!(told.contains("Both stories have landed."), "{told}");
    assert_eq!(scene.landed().len(), 2, "{told}");
    assert_eq!((scene.read("lamp"), scene.read("other")), ("good\n".to_owned(), "good\n".to_owned()));
    assert_eq!(scene.story("S1")["attempts"], 1, "the red gate was mended, not tried anew");
    scene.tree_is_clean();
    scene.nothing_runs();
}

/// The protocol's own inspector, a session a call.
#[test]
fn real_client_of_the_protocol_lists_and_calls_the_tools() {
    let scene = world(&two_stories());
    scene.link_program("node", &crate::real_client::node());
    let inspect = |call: &[&str]| {
        let mut command = scene.command(installed("mcp-inspector"));
        command.arg("--cli").arg(crate::world::binary()).arg("mcp").arg("--method").args(call);
        let output = command.current_dir(scene.repo()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{call:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let tools = inspect(&["tools/list"]);
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(
        names,
        ["guide", "list_work", "next", "pause", "report", "show_work", "start_run", "status", "stop"],
        "the tools of the protocol"
    );
    let turn = inspect(&["tools/call", "--tool-name", "start_run", "--tool-arg", "work=prd.json"]);
    assert_eq!(turn["structuredContent"]["call"]["attempt"], "S1#1");
    let refused = inspect(&["tools/call", "--tool-name", "next"]);
    assert_eq!(refused["isError"], true);
    scene.tree_is_clean();
}
