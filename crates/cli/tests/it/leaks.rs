//! More than two hundred secrets are said by an agent and a gate in every writing, and none of them is anywhere afterwards:
//! not in the journal, a transcript, the log, the screen, a notification or a commit. And what a story must not commit.

use std::fs;

use ralphloop_engine::transcript::Reader;
use ralphloop_testkit::scene::Scene;
use ralphloop_testkit::script::{AgentScript, call};
use ralphloop_testkit::secrets::{Sample, corpus};

use crate::world::{landed_once, nothing_landed, prd_scene, reason, run, story};

/// So many characters of a secret in a row are a leak.
const LEAK: usize = 12;

/// The values that are only known from the environment.
const KNOWN: [(&str, &str); 2] = [
    ("LAMP_API_KEY", "light/that \"nobody\" sees & more 4711"),
    ("LAMP_SIGNING_SECRET", "a-second-lamp-in-the-cellar"),
];

/// Every secret in a sentence, wrapped in the middle, and as part of JSON.
fn said(samples: &[Sample]) -> Vec<String> {
    let mut lines = Vec::new();
    for sample in samples {
        lines.push(format!("the key is {} and no other", sample.text));
        if !sample.text.contains([' ', '\n', '"']) && !["address", "assigned in a shell"].contains(&sample.shape) {
            let (first, second) = sample.text.split_at(sample.text.len() - sample.core.len() / 2);
            lines.push(format!("wrapped {first}\n{second}\nand on"));
        }
        lines.push(serde_json::json!({"note": format!("a\n{}", sample.text)}).to_string());
    }
    for (_, value) in KNOWN {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("me:{value}"));
        lines.push(format!("{value}, {encoded}, {}", serde_json::json!(value)));
        lines.push(format!("{}\n{}", &encoded[..20], &encoded[20..]));
        lines.push(format!("{}\n{}", &value[..13], &value[13..]));
    }
    lines
}

/// All that the run has left to be read, by where it stands.
pub(crate) fn everything(scene: &Scene) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut folders = vec![scene.journals()[0].parent().unwrap().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "zst") {
                let records = Reader::open(&path).unwrap().map(Result::unwrap);
                let text: Vec<u8> = records.flat_map(|record| record.bytes).collect();
                all.push((path.display().to_string(), String::from_utf8_lossy(&text).into_owned()));
            } else if let Ok(bytes) = fs::read(&path) {
                all.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    for verb in [&["log"][..], &["log", "--json"], &["status"], &["status", "--json"], &["runs", "--json"]] {
        all.push((verb.join(" "), scene.run(verb).output()));
    }
    all.push(("commits".to_owned(), scene.git(&["log", "--all", "--format=%B"])));
    all
}

#[track_caller]
fn nothing_of(samples: &[Sample], (place, text): &(String, String)) {
    let cores = samples.iter().map(|sample| (sample.shape, sample.core.as_str())).chain(KNOWN);
    for (shape, core) in cores {
        let length = LEAK.min(core.len());
        let leak = (0..=core.len() - length).map(|at| &core[at..at + length]).find(|piece| text.contains(piece));
        let at = leak.and_then(|leak| text.find(leak)).unwrap_or(0);
        let around: String = text.chars().skip(text[..at].chars().count().saturating_sub(80)).take(200).collect();
        assert!(leak.is_none(), "{leak:?} of {shape} is in {place}: {around}");
    }
}

#[test]
fn of_two_hundred_secrets_that_are_said_none_is_kept_shown_sent_or_committed() {
    let samples = corpus();
    assert!(samples.len() >= 200);
    let mut scene = prd_scene(&[story("S1", "Light the lamp")], &AgentScript::new());
    for (name, value) in KNOWN {
        scene.set_env(name, value);
    }
    let lines = said(&samples);
    let told = scene.outside("told");
    fs::write(&told, lines.join("\n") + "\n").unwrap();
    let mut first = call().write("a.txt", "on");
    for text in lines.chunks(40) {
        first = first.say(&text.join("\n")).think(&text.join("\n")).stderr(&(text.join("\n") + "\n"));
        first = first.tool("Bash", &serde_json::json!({"command": text[0]}), &text.join("\n"));
    }
    // What is said in one line has no ends of lines to be wrapped at.
    let last = lines.last().unwrap().replace('\n', "");
    scene.scripted_agent(&AgentScript::always([
        first.failed(&format!("no: {} {last}", samples[0].text)),
        call().write("a.txt", "on").say(&lines[0]).complete(),
        call().write("a.txt", "on").write("b.txt", "on").complete(),
    ]));
    let (notes, once) = (scene.outside("notes"), scene.outside("once"));
    let gate = format!(
        "cat '{}'; cat '{}' >&2; test -f a.txt || exit 0; mkdir '{}' && exit 1; exit 0",
        told.display(),
        told.display(),
        once.display()
    );
    let notify = format!("cat >> '{}'", notes.display());
    let outcome = run(&scene, &["--gate", &gate, "--notify", &notify, "--max-retries", "2"]).exits(0);
    landed_once(&scene, "S1", "a.txt");
    nothing_of(&samples, &("the printed log".to_owned(), outcome.output()));
    nothing_of(&samples, &("notifications".to_owned(), fs::read_to_string(&notes).unwrap()));
    let left = everything(&scene);
    assert!(
        left.iter().any(|(place, text)| std::path::Path::new(place).extension().is_some_and(|kind| kind == "zst")
            && text.contains("[redacted]")),
        "it was said"
    );
    for place in &left {
        nothing_of(&samples, place);
    }
}

#[test]
fn the_screen_shows_no_secret_that_an_agent_says() {
    let samples = corpus();
    let key = &samples[28];
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().say(&format!("found the key {} here", key.text)).write("a.txt", "on").hang()]),
    );
    let mut screen = scene.on_screen("run prd.json --no-gates --tui");
    screen.sees("found the key [redacted] here");
    nothing_of(&samples, &("the screen".to_owned(), screen.text()));
    screen.types("qqq");
    drop(screen.ends());
}

#[test]
fn a_story_that_brings_a_secret_is_stopped_before_its_commit_and_lands_once_it_is_out() {
    let secret = &corpus()[28];
    let source = format!("url = \"https://lamp.example\"\nkey = \"{}\"\n", secret.text);
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([
            call().write("config.py", &source).complete(),
            call().write("config.py", "key = os.environ[\"LAMP_KEY\"]\n").complete(),
        ]),
    );
    run(&scene, &["--no-gates"])
        .exits(0)
        .says("the commit was stopped, since it would hold what no commit should")
        .says(&format!("config.py:2: {}", "a GitHub token"));
    landed_once(&scene, "S1", "config.py");
    assert_eq!(scene.calls().len(), 2);
    let prompt = scene.calls()[1].prompt().clone();
    assert!(prompt.contains("config.py:2") && !prompt.contains(&secret.text), "{prompt}");
    assert!(!scene.git(&["log", "-p", "main"]).contains(&secret.core));
}

#[test]
fn what_no_commit_should_hold_stops_a_story_and_a_person_can_let_it_pass() {
    let key = corpus().into_iter().find(|sample| sample.shape == "private key").unwrap();
    // A file that is nothing but a key is held back as a whole.
    let with_key = format!("key: {}", key.text);
    for (file, text, why) in [
        ("deploy/notes.md", with_key.as_str(), "deploy/notes.md:1: a private key"),
        ("tool", "\u{7f}ELF\u{2}\u{1}\u{1}", "tool: it is a compiled program"),
        ("ralphloop.toml", "no_gates = true\n", "ralphloop.toml: it says how the loop judges"),
    ] {
        let stories = [story("S1", "Alpha lamp")];
        let script = AgentScript::always([call().write(file, text).complete()]);
        let scene = prd_scene(&stories, &script);
        run(&scene, &["--no-gates", "--max-retries", "0", "--max-repairs", "0"]).exits(1);
        nothing_landed(&scene);
        assert!(reason(&scene, "S1").contains(why), "{}", reason(&scene, "S1"));

        let mut scene = prd_scene(&stories, &script);
        scene.set_env("RALPHLOOP_COMMIT_ANYWAY", file);
        run(&scene, &["--no-gates"]).exits(0);
        landed_once(&scene, "S1", file);
    }
}

#[test]
fn a_secret_that_was_there_before_is_nobodys_doing() {
    let secret = &corpus()[28];
    let scene = prd_scene(
        &[story("S1", "Alpha lamp")],
        &AgentScript::always([call().shell("echo '# more' >> old.py").complete()]),
    );
    scene.write("old.py", format!("key = \"{}\"\n", secret.text));
    scene.commit_all("It was always there");
    run(&scene, &["--no-gates"]).exits(0);
    landed_once(&scene, "S1", "old.py");
}

#[test]
fn of_named_variables_agents_and_gates_see_those_and_no_others() {
    let mut scene = prd_scene(&[story("S1", "Alpha lamp")], &AgentScript::new());
    let (agent, gate) = (scene.outside("agent-env"), scene.outside("gate-env"));
    let see = format!("env > '{}'", agent.display());
    scene.scripted_agent(&AgentScript::always([call().write("a.txt", "on").shell(&see).complete()]));
    scene.set_env("RALPHLOOP_AGENT_ENV", "LAMP_*");
    scene.set_env("RALPHLOOP_GATE_ENV", "CELLAR");
    for name in ["LAMP_API_KEY", "CELLAR", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_BASE_URL"] {
        scene.set_env(name, "some-value-4711");
    }
    run(&scene, &["--gate", &format!("env > '{}'", gate.display())]).exits(0);
    let names = |path| -> Vec<String> {
        let text: String = fs::read_to_string(path).unwrap();
        text.lines()
            .filter(|line| line.ends_with("some-value-4711"))
            .map(|line| line.split('=').next().unwrap().to_owned())
            .collect()
    };
    let (mut of_agent, of_gate) = (names(agent), names(gate));
    of_agent.sort();
    assert_eq!(of_agent, ["ANTHROPIC_BASE_URL", "LAMP_API_KEY"]);
    assert_eq!(of_gate, ["CELLAR"]);
}
