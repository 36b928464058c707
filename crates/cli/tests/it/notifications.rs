//! Notifications: who is told, of what, and that nothing of it changes the run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ralphloop_testkit::script::{AgentScript, call};
use rustix::process::Signal;
use serde_json::Value;

use crate::world::{ONCE_AND_ON, nothing_landed, passes, prd_scene, run, scene, start, story, two_stories};

/// What a server was sent.
struct Received {
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A server that gives these answers, one a request, and tells what it got.
fn server(answers: &'static [&'static str]) -> (String, Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let received = read_request(&stream);
            write!(&stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
            // A test that needs no more of them has ended.
            drop(tell.send(received));
        }
    });
    (address, told)
}

fn read_request(stream: &TcpStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    let pair = |line: &String| line.split_once(':').map(|(k, v)| (k.to_owned(), v.trim().to_owned()));
    let headers: Vec<_> = lines[1..].iter().filter_map(pair).collect();
    let mut received = Received { path, headers, body: Vec::new() };
    let length = received.header("content-length").map_or(0, |n| n.parse().unwrap());
    received.body = vec![0; length];
    reader.read_exact(&mut received.body).unwrap();
    received
}

fn next(told: &Receiver<Received>) -> Received {
    told.recv_timeout(Duration::from_mins(1)).unwrap()
}

#[test]
fn a_web_hook_gets_signed_json_when_the_run_has_ended() {
    let script = AgentScript::always([call().write("a.txt", "on").complete()]);
    let mut scene = prd_scene(&[story("S1", "Alpha")], &script);
    scene.set_env("RALPHLOOP_NOTIFY_SECRET", "the-signing-key");
    let (address, told) = server(&["204 No Content"]);
    run(&scene, &["--notify", &format!("http://{address}/hook?x=1")]).exits(0).never_says("notification");
    let got = next(&told);
    assert_eq!(got.path, "/hook?x=1");
    assert_eq!(got.header("content-type"), Some("application/json"));
    let body = got.json();
    for (key, value) in [("event", "run.ended"), ("state", "complete"), ("work", "prd:prd.json"), ("branch", "main")] {
        assert_eq!(body[key], value, "{body:#}");
    }
    assert_eq!((&body["passed"], &body["total"]), (&1.into(), &1.into()), "{body:#}");
    assert_eq!(body["run"], scene.status()["run"], "{body:#}");
    let signature = got.header("x-ralphloop-signature").unwrap().strip_prefix("sha256=").unwrap();
    assert_eq!(signature, hmac_by_openssl("the-signing-key", &got.body));
}

/// What another implementation makes of it.
fn hmac_by_openssl(key: &str, body: &[u8]) -> String {
    let mut child = std::process::Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", key])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn a_web_hook_that_fails_for_a_moment_is_tried_again_and_one_that_refuses_is_not() {
    let scene = prd_scene(&[story("S1", "Alpha")], &AgentScript::always([call().write("a.txt", "on").complete()]));
    let (shaky, told) = server(&["503 Service Unavailable", "200 OK"]);
    let (strict, refused) = server(&["404 Not Found", "200 OK"]);
    let flags = ["--notify", &format!("http://{shaky}"), "--notify", &format!("http://{strict}/secret-path")];
    let outcome = run(&scene, &flags).exits(0);
    assert_eq!(next(&told).json()["state"], "complete");
    assert_eq!(next(&told).json()["state"], "complete");
    assert_eq!(next(&refused).json()["state"], "complete");
    assert!(refused.try_recv().is_err(), "what was refused is not sent again");
    outcome.says(&format!("the notification to http://{strict}/… failed: it answered 404")).never_says("secret-path");
}

#[test]
fn ntfy_gets_topic_title_and_message() {
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().failed("no way")]));
    let (address, told) = server(&["200 OK"]);
    let target = format!("ntfy://{address}/builds?secure=false");
    run(&scene, &[ONCE_AND_ON, &["--notify", &target]].concat()).exits(1);
    let got = next(&told);
    assert_eq!(got.path, "/");
    let body = got.json();
    assert_eq!(body["topic"], "builds", "{body:#}");
    assert_eq!(body["title"], "ralphloop: prd:prd.json failed", "{body:#}");
    assert!(
        body["message"].as_str().unwrap().contains("S1 failed (Alpha lamp): the agent said that it failed: no way"),
        "{body:#}"
    );
}

#[test]
fn a_command_gets_the_message_on_its_standard_input_and_no_secrets() {
    let mut scene = prd_scene(&two_stories(), &AgentScript::always([call().failed("the key is hush-hush-hush")]));
    scene.set_env("MY_API_KEY", "hush-hush-hush");
    let (message, env) = (scene.outside("message"), scene.outside("env"));
    let command = format!("cat >'{}'; env >'{}'", message.display(), env.display());
    run(&scene, &[ONCE_AND_ON, &["--notify", &command]].concat()).exits(1).never_says("notification");
    let message = std::fs::read_to_string(message).unwrap();
    assert!(message.starts_with("ralphloop: prd:prd.json failed\nnot every story passed\n"), "{message}");
    assert!(message.contains("0 of 2 stories passed"), "{message}");
    let env = std::fs::read_to_string(env).unwrap();
    assert!(env.contains("HOME="), "{env}");
    for text in [message, env] {
        assert!(!text.contains("hush-hush-hush") && !text.contains("MY_API_KEY"), "{text}");
    }
}

#[test]
fn b91_a_notifier_that_fails_changes_neither_the_run_nor_its_exit_code_and_is_told_of_once() {
    let script = AgentScript::always([call().write("a.txt", "on").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha")], &script);
    let outcome = run(&scene, &["--notify", "echo broken pipe >&2; exit 7"]).exits(0);
    assert!(passes(&scene, "S1"));
    let said = "the notification to `echo broken pipe >&2; exit 7` failed: it exited with code 7: broken pipe";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{outcome}");
}

#[test]
fn b91_a_notifier_that_hangs_is_ended_and_takes_its_children_along() {
    let script = AgentScript::always([call().write("a.txt", "on").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha")], &script);
    let outcome = run(&scene, &["--notify", "setsid sleep 1000 & sleep 1000"]).exits(0).says("time limit");
    assert!(outcome.took < Duration::from_secs(40), "{outcome}");
    scene.nothing_runs();
}

#[test]
fn b91_an_interrupted_run_is_told_of_before_the_process_ends() {
    let script = AgentScript::always([call().write("a.txt", "on").say("working").hang()]);
    let scene = prd_scene(&two_stories(), &script);
    let told = scene.outside("told");
    let running = start(&scene, &["--notify", &format!("cat >'{}'", told.display())]);
    scene.wait_for_calls(1);
    running.signal(Signal::TERM);
    running.wait().exits(143);
    let message = std::fs::read_to_string(told).unwrap();
    assert!(message.contains("was stopped") && message.contains("TERM"), "{message}");
    nothing_landed(&scene);
}

#[test]
fn an_impatient_end_is_told_of_too() {
    let script = AgentScript::always([call().ignore_term().say("working").hang()]);
    let scene = prd_scene(&two_stories(), &script);
    let told = scene.outside("told");
    let running = start(&scene, &["--notify", &format!("cat >'{}'", told.display())]);
    scene.wait_for_calls(1);
    for _ in 0..3 {
        running.signal_group(Signal::INT);
        // Three are three only if each is seen by itself.
        std::thread::sleep(Duration::from_millis(150));
    }
    running.wait().exits(130);
    let message = std::fs::read_to_string(told).unwrap();
    // The second signal may have ended everything before the third came.
    assert!(message.contains("forced to quit") || message.contains("was stopped"), "{message}");
}

#[test]
fn nobody_has_to_wait_for_a_notification_after_the_run_has_ended() {
    let script = AgentScript::always([call().write("a.txt", "on").complete()]);
    let scene = prd_scene(&[story("S1", "Alpha")], &script);
    let begun = scene.outside("begun");
    let running = start(&scene, &["--notify", &format!("touch '{}'; sleep 1000", begun.display())]);
    scene.wait_for_file(&begun);
    running.signal_group(Signal::INT);
    let outcome = running.wait().exits(0);
    assert!(outcome.took < Duration::from_secs(15), "{outcome}");
    scene.nothing_runs();
}

#[test]
fn the_next_run_may_begin_while_the_last_message_of_this_one_is_delivered() {
    let script = AgentScript::always([call().write("a.txt", "on").complete(), call().write("b.txt", "on").complete()]);
    let scene = prd_scene(&two_stories(), &script);
    let ralphloop = crate::world::binary();
    let next = format!("'{}' run prd.json --headless >'{}' 2>&1", ralphloop.display(), scene.outside("next").display());
    run(&scene, &["--story", "S1", "--notify", &next]).exits(0).never_says("notification");
    assert!(passes(&scene, "S1") && passes(&scene, "S2"), "{}", scene.read("prd.json"));
}

#[test]
fn a_wait_for_a_limit_is_told_of_when_it_begins_and_the_end_when_it_comes() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let scene = prd_scene(&two_stories(), &AgentScript::always([call().usage_limit(now + 3000)]));
    let (address, told) = server(&["200 OK", "200 OK"]);
    let running = start(&scene, &["--notify", &format!("http://{address}")]);
    let waiting = next(&told).json();
    assert_eq!((&waiting["event"], &waiting["state"]), (&"run.waiting".into(), &"waiting".into()), "{waiting:#}");
    assert_eq!(waiting["resume_at"], scene.status()["resume_at"], "{waiting:#}");
    scene.run(&["pause"]).exits(0);
    running.wait().exits(4);
    let ended = next(&told).json();
    assert_eq!((&ended["event"], &ended["state"]), (&"run.ended".into(), &"paused".into()), "{ended:#}");
}

#[test]
fn a_target_that_makes_no_sense_is_refused_before_anything_is_started() {
    let scene = scene();
    scene.write("prd.json", crate::world::prd_text(&two_stories()));
    run(&scene, &["--notify", "slack://x/y"]).exits(2).says("slack://");
}

#[test]
fn the_settings_show_neither_the_token_of_an_address_nor_the_key() {
    let mut scene = scene();
    scene.set_env("RALPHLOOP_NOTIFY_SECRET", "the-signing-key");
    scene.write("ralphloop.toml", "notify = [\"https://hooks.slack.com/services/T0/B0/token\", \"desktop\"]\n");
    for flags in [&["config"][..], &["config", "--json"]] {
        scene.run(flags).exits(0).says("hooks.slack.com").never_says("B0").never_says("the-signing-key");
    }
}
