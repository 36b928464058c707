use super::*;

use crate::arguments::Arguments;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn flags(words: &[&str]) -> Result<Layer, clap::Error> {
    let words = ["ralphloop", "run"].iter().chain(words);
    match <Arguments as clap::Parser>::try_parse_from(words)?.verb {
        Some(crate::arguments::Verb::Run(run)) => Ok(run.settings),
        _ => unreachable!("the words call run"),
    }
}

/// A folder with a repository's mark, the user's folder beside it.
struct Places {
    root: tempfile::TempDir,
}

impl Places {
    fn new(project: &str, user: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(root.path().join("repo/sub/deep")).unwrap();
        std::fs::create_dir_all(root.path().join("xdg/ralphloop")).unwrap();
        std::fs::write(root.path().join("repo/ralphloop.toml"), project).unwrap();
        std::fs::write(root.path().join("xdg/ralphloop/config.toml"), user).unwrap();
        Self { root }
    }

    fn load(&self, pairs: &[(&str, &str)], words: &[&str]) -> Result<Config, CliError> {
        let xdg = self.root.path().join("xdg").display().to_string();
        let mut environment = environment(pairs);
        environment.insert("XDG_CONFIG_HOME".to_owned(), xdg);
        load(&self.root.path().join("repo/sub/deep"), &environment, flags(words).unwrap()).map(|(config, _)| config)
    }
}

#[test]
fn an_empty_file_equals_the_defaults() {
    let config = Places::new("", "").load(&[], &[]).unwrap();
    assert_eq!(config.settings, Settings::default());
    assert!(config.rows().all(|(_, _, origin)| *origin == Origin::Default));
}

#[test]
fn r1_three_retries_unless_something_else_is_said() {
    assert_eq!(Settings::default().max_retries, 3);
    let config = Places::new("", "").load(&[], &["--max-retries", "7"]).unwrap();
    assert_eq!(config.settings.max_retries, 7);
}

#[test]
fn r2_helper_commands_have_thirty_seconds_unless_something_else_is_said() {
    assert_eq!(Settings::default().command_timeout.as_secs(), 30);
    let config = Places::new("", "").load(&[], &["--command-timeout=5"]).unwrap();
    assert_eq!(config.settings.command_timeout.as_secs(), 5);
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_project_which_beats_the_user() {
    let places = Places::new(
        "max_repairs = 2\nmax_iterations = 20\ngate_timeout = \"2m\"\n",
        "on-exhausted = 'skip'\nmax_repairs = 1\nmax_iterations = 10\ngate_timeout = 60\n",
    );
    let pairs = [("RALPHLOOP_MAX_ITERATIONS", "30"), ("RALPHLOOP_GATE_TIMEOUT", "3m")];
    let config = places.load(&pairs, &["--gate-timeout", "4m"]).unwrap();
    let settings = &config.settings;
    assert_eq!(settings.on_exhausted, OnExhausted::Skip);
    assert_eq!(settings.max_repairs, 2);
    assert_eq!(settings.max_iterations, value::Iterations(Some(30)));
    assert_eq!(settings.gate_timeout.as_secs(), 240);
    let origin = |name: &str| config.origin(name).to_string();
    assert!(origin("on_exhausted").ends_with("config.toml:1"), "{}", origin("on_exhausted"));
    assert!(origin("max_repairs").ends_with("ralphloop.toml:1"), "{}", origin("max_repairs"));
    assert_eq!(origin("max_iterations"), "RALPHLOOP_MAX_ITERATIONS");
    assert_eq!(origin("gate_timeout"), "--gate-timeout");
    assert_eq!(origin("max_retries"), "default");
}

#[test]
fn the_stronger_place_decides_between_gates_and_no_gates() {
    let places = Places::new("gate = ['make test', 'make lint']\n", "no_gates = true\n");
    let gates = |words: &[&str]| places.load(&[], words).unwrap().settings.gates();
    assert_eq!(gates(&[]), Gates::Commands(vec!["make test".to_owned(), "make lint".to_owned()]));
    assert_eq!(gates(&["--no-gates"]), Gates::Off);
    assert_eq!(gates(&["--gate", "true"]), Gates::Commands(vec!["true".to_owned()]));
    let both = places.load(&[], &["--gate", "true", "--no-gates"]).unwrap_err();
    assert_eq!(both.exit, crate::exit::Exit::USAGE);
    assert_eq!(Places::new("", "").load(&[], &[]).unwrap().settings.gates(), Gates::Found);
}

#[test]
fn a_switch_can_be_taken_back_by_a_flag() {
    let places = Places::new("require_verify = true\n", "");
    assert!(places.load(&[], &[]).unwrap().settings.require_verify);
    assert!(!places.load(&[], &["--require-verify=false"]).unwrap().settings.require_verify);
    assert!(Places::new("", "").load(&[], &["--require-verify"]).unwrap().settings.require_verify);
}

#[test]
fn an_unknown_key_is_an_error_with_its_place_and_what_was_meant() {
    let error = Places::new("max_retries = 1\n\nmax_itertions = 5\n", "").load(&[], &[]).unwrap_err();
    let shown = crate::output::plain(&error.render());
    assert_eq!(error.exit, crate::exit::Exit::USAGE);
    assert!(shown.contains("ralphloop.toml:3:1") && shown.contains("did you mean max_iterations?"), "{shown}");
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_with_its_place() {
    for (file, place) in [
        ("max_retries = \"three\"\n", ":1:15"),
        ("max_retries = -1\n", ":1:15"),
        ("[max_retries]\nx = 1\n", ":1:1"),
        ("agent_timeout = 0\n", ":1:17"),
        ("a =\n", ":1:"),
        ("gate = [\"ok\", 1979-05-27]\n", ":1:8"),
        ("on_exhausted = \"explode\"", ":1:16"),
    ] {
        let error = Places::new(file, "").load(&[], &[]).unwrap_err();
        let shown = crate::output::plain(&error.render());
        assert!(shown.contains(&format!("ralphloop.toml{place}")), "{file}: {shown}");
    }
}

#[test]
fn a_bad_variable_is_an_error_that_names_it_and_a_misspelt_one_a_warning() {
    let error = Places::new("", "").load(&[("RALPHLOOP_MAX_COST", "lots")], &[]).unwrap_err();
    assert!(error.one_line().contains("RALPHLOOP_MAX_COST"), "{}", error.one_line());
    let (_, warnings) = from_environment(&environment(&[("RALPHLOOP_MAX_ITERATION", "3")])).unwrap();
    assert!(warnings[0].contains("RALPHLOOP_MAX_ITERATIONS"), "{warnings:?}");
    let (_, warnings) = from_environment(&environment(&[("RALPHLOOP_LOG", "debug"), ("OTHER", "1")])).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_flag_that_does_not_parse_is_an_error_that_names_it() {
    for words in [
        ["--max-iterations", "banana"],
        ["--max-iterations", "-1"],
        ["--max-cost", "free"],
        ["--idle-timeout", "0"],
        ["--on-exhausted", "explode"],
        ["--agent-format", "morse"],
        ["--agent", ":"],
    ] {
        let error = flags(&words).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{words:?}");
        assert!(error.to_string().contains(words[0]), "{words:?}: {error}");
    }
    for unknown in [&["--max-iteratons", "3"][..], &["--max-retries"], &["--gate"]] {
        assert_eq!(flags(unknown).unwrap_err().exit_code(), 2, "{unknown:?}");
    }
}

#[test]
fn both_ways_to_give_a_flag_its_value_work_and_the_last_one_counts() {
    for words in
        [&["--max-iterations", "3"][..], &["--max-iterations=3"], &["--max-iterations=9", "--max-iterations", "3"]]
    {
        let given = flags(words).unwrap().max_iterations.unwrap();
        assert_eq!(given.value, value::Iterations(Some(3)), "{words:?}");
    }
}

#[test]
fn the_file_of_another_repository_around_this_one_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("inner/.git")).unwrap();
    std::fs::write(root.path().join(PROJECT_FILE), "max_retries = 9").unwrap();
    assert_eq!(project_file(&root.path().join("inner")), None);
}

#[test]
fn every_setting_is_shown_with_its_value_and_origin() {
    let config = Places::new("max_cost = 2.5\n", "").load(&[], &[]).unwrap();
    assert_eq!(config.rows().count(), KEYS.len());
    let json = config.json();
    assert_eq!(json["max_cost"]["value"], "2.50");
    assert_eq!(json["max_cost"]["from"], "project_file");
    assert_eq!(json["max_retries"], serde_json::json!({ "value": 3, "from": "default" }));
}

#[test]
fn what_a_call_gave_can_be_kept_and_given_again() {
    let words = [
        "--gate",
        "a b",
        "--gate=c",
        "--max-cost",
        "2.5",
        "--require-verify=false",
        "--max-iterations=0",
        "--idle-timeout=90",
    ];
    let given = flags(&words).unwrap();
    let texts: Vec<(String, Vec<String>)> =
        given.texts().into_iter().map(|(name, texts)| (name.to_owned(), texts)).collect();
    let (again, lost) = from_texts(&texts);
    assert_eq!(combine(vec![given]).unwrap().settings, combine(vec![again]).unwrap().settings);
    assert!(lost.is_empty(), "{lost:?}");
    let (_, lost) = from_texts(&[("removed_long_ago".to_owned(), vec!["1".to_owned()])]);
    assert_eq!(lost, ["removed_long_ago"]);
}

#[test]
fn a_call_beats_what_an_earlier_call_gave() {
    let merged =
        over(flags(&["--max-retries", "1", "--max-repairs", "1"]).unwrap(), flags(&["--max-retries=2"]).unwrap());
    let settings = combine(vec![merged]).unwrap().settings;
    assert_eq!((settings.max_retries, settings.max_repairs), (2, 1));
}

#[test]
fn an_agent_of_ones_own_is_read_with_its_place_and_the_projects_hides_the_users() {
    let project = "max_retries = 1\n\n[agents.local]\ncommand = \"llm --url 'http://127.0.0.1:1'\"\nformat = \"codex\"\nmodel_flag = \"--use\"\nprompt = \"argument\"\n";
    let user = "[agents.local]\ncommand = \"other\"\n[agents.mine]\ncommand = \"mine\"\n";
    let config = Places::new(project, user).load(&[], &[]).unwrap();
    let agents = &config.settings.agents;
    let names: Vec<&str> = agents.iter().map(|own| own.client.name.as_str()).collect();
    assert_eq!(names, ["mine", "local"]);
    let local = &agents[1];
    assert_eq!(local.client.command, "llm --url 'http://127.0.0.1:1'");
    assert_eq!(local.client.format.as_str(), "codex");
    assert_eq!(local.client.model_flag.as_deref(), Some("--use"));
    assert!(local.origin.to_string().ends_with("ralphloop.toml:3"), "{}", local.origin);
}

#[test]
fn a_mistake_in_an_agent_of_ones_own_is_named_with_its_place() {
    for (text, told, line) in [
        ("agents = 3\n", "one table for each agent", "ralphloop.toml:1:"),
        ("[agents.local]\n", "has no command", "ralphloop.toml:1:"),
        ("[agents.local]\ncomand = \"x\"\n", "did you mean command?", "ralphloop.toml:2:"),
        ("[agents.local]\ncommand = \"x\"\nformat = \"morse\"\n", "codex, opencode", "ralphloop.toml:3:"),
        ("[agents.local]\ncommand = \"x 'y\"\n", "cannot be split", "ralphloop.toml:2:"),
        ("[agents.local]\ncommand = \"x\"\nprompt = \"letter\"\n", "stdin or argument", "ralphloop.toml:3:"),
        ("[agents.\"a:b\"]\ncommand = \"x\"\n", "cannot be the name", "ralphloop.toml:1:"),
    ] {
        let error = Places::new(text, "").load(&[], &[]).unwrap_err();
        let shown = crate::output::plain(&error.render());
        assert!(shown.contains(told) && shown.contains(line), "{text}\n{shown}");
    }
}

#[test]
fn an_agent_that_a_stronger_place_names_comes_before_a_command() {
    let places = Places::new("agent_command = \"./mine\"\nagent = \"codex\"\n", "");
    assert_eq!(places.load(&[], &[]).unwrap().settings.agent_command.as_deref(), Some("./mine"));
    let named = places.load(&[], &["--agent", "gemini"]).unwrap().settings;
    assert_eq!((named.agent_command, named.agent.map(|agents| agents.show())), (None, Some("gemini".to_owned())));
    let both = places.load(&[], &["--agent", "gemini", "--agent-command", "./other"]).unwrap().settings;
    assert_eq!(both.agent_command.as_deref(), Some("./other"));
}
