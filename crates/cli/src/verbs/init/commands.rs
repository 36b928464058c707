//! The commands that an agent's user types to have the loop driven from their own session, in the form that each agent
//! reads such files in, and the entry that makes it start the server.

use std::path::Path;

use clap::ValueEnum;

/// An agent that has files of commands in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Home {
    /// Claude Code: .claude/commands, .claude/settings.json, .mcp.json
    Claude,
    /// `OpenCode`: .opencode/command, opencode.json
    Opencode,
    /// Gemini CLI: .gemini/commands, .gemini/settings.json
    Gemini,
    /// Qwen Code: .qwen/commands, .qwen/settings.json
    Qwen,
    /// Cursor: .cursor/commands, .cursor/mcp.json
    Cursor,
}

/// What one loop works on, and how its start reads.
struct Loop {
    name: &'static str,
    about: &'static str,
    arguments: &'static str,
    start: &'static str,
}

/// The three loops: the same engine, three ways to find work for it.
const LOOPS: [Loop; 3] = [
    Loop {
        name: "continuous-session",
        about: "the next steps that the newest session log names",
        arguments: "[--max-sessions N] [--require-verify] [--pause-on-fail] [--from-session FILE]",
        start: "The work is `flight:next-steps`, or the file given with --from-session. --max-sessions N is the setting \
                max_stories = N (5 if it is not given), --require-verify is require_verify = true, --pause-on-fail is \
                on_exhausted = \"pause\".",
    },
    Loop {
        name: "task-loop",
        about: "the tasks of an area or task group",
        arguments: "[--area A] [--task-group G] [--task T] [--skip-unverifiable] [--stop-on-fail] [--create-tasks]",
        start: "The work is `flight:A` for --area A, or `flight:G` for --task-group G; without either, what `list_work` \
                shows that is ready, and the user's choice if there is more than one. --task T is the story \
                that has the task T, alone: 1.4 for 1.4.2. --skip-unverifiable is require_verify = true, --create-tasks is \
                create_tasks = true; without --stop-on-fail, on_exhausted is \"skip\".",
    },
    Loop {
        name: "story-loop",
        about: "the stories of a specification",
        arguments: "[WORK] [--story ID] [--max-stories N]",
        start: "The work is WORK as it was given; without it, what `list_work` shows that is ready, and the user's choice \
                if there is more than one. --story ID is the story ID alone, --max-stories N is max_stories = N.",
    },
];

/// How every loop is driven.
const DRIVE: &str = "\
You drive the loop, and never decide yourself whether something is done: ralphloop does, from what it observes itself.
Use the tools of the MCP server `ralphloop`. Keep your own context small: read no source files, and write none.

1. Call `start_run`. If it refuses, show the user why, and stop.
2. While the answer's state is `work`: give `call.prompt`, unchanged and whole, to a fresh sub-agent, and tell it to work in
   `call.folder` and nowhere else. Wait for its end, in the foreground. Then call `report` with `call.attempt` and its last message, whole,
   the signal line included. If it died without one, report the signal `failed` and why. The answer says what gates and
   checks found, and what is next: a repair, a further attempt, or the next story.
3. While the state is `busy` or `waiting`: call `next`.
4. When the state is `ended`: show the user the summary, and stop.

Between the calls, change nothing in the folder: no commit, no box, no file. If the user wants to steer, `guide` passes a
sentence on; `pause` and `stop` end the loop, and starting it again goes on where it was.
";

/// The entry that starts the server, in the form that most agents share.
const SERVERS: &str =
    "{\n  \"mcpServers\": {\n    \"ralphloop\": { \"command\": \"ralphloop\", \"args\": [\"mcp\"] }\n  }\n}\n";

impl Home {
    const ALL: [Self; 5] = [Self::Claude, Self::Opencode, Self::Gemini, Self::Qwen, Self::Cursor];

    /// Those whose folder is in the project; Claude Code if there is none.
    pub(super) fn found_in(project: &Path) -> Vec<Self> {
        let found: Vec<Self> = Self::ALL.into_iter().filter(|home| project.join(home.folder()).is_dir()).collect();
        if found.is_empty() { vec![Self::Claude] } else { found }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Claude => ".claude",
            Self::Opencode => ".opencode",
            Self::Gemini => ".gemini",
            Self::Qwen => ".qwen",
            Self::Cursor => ".cursor",
        }
    }

    /// The files of its commands, from the project's folder, with what is in them.
    pub(super) fn commands(self) -> Vec<(String, String)> {
        let of_loop = |each: &Loop| {
            [
                ("start", format!("Work on {}, one fresh sub-agent each", each.about), start(each)),
                ("stop", "Stop the loop after the attempt".to_owned(), STOP.to_owned()),
                ("status", "Show how the loop stands".to_owned(), STATUS.to_owned()),
                ("resume", "Go on with the loop where it was left".to_owned(), resume()),
            ]
            .map(|(verb, about, text)| self.file(&format!("{}.{verb}", each.name), &about, each.arguments, &text))
        };
        LOOPS.iter().flat_map(of_loop).collect()
    }

    fn file(self, name: &str, about: &str, arguments: &str, text: &str) -> (String, String) {
        match self {
            Self::Claude => (
                format!(".claude/commands/{name}.md"),
                format!("---\ndescription: {about}\nargument-hint: \"{arguments}\"\n---\n\n{text}"),
            ),
            Self::Opencode => {
                (format!(".opencode/command/{name}.md"), format!("---\ndescription: {about}\n---\n\n{text}"))
            }
            Self::Gemini | Self::Qwen => (
                format!("{}/commands/{name}.toml", self.folder()),
                format!("description = \"{about}\"\nprompt = '''\n{}'''\n", text.replace("$ARGUMENTS", "{{args}}")),
            ),
            Self::Cursor => (format!(".cursor/commands/{name}.md"), text.replace("$ARGUMENTS", "what the user wrote")),
        }
    }

    /// The file that names the server, and its content.
    pub(super) fn server(self) -> (&'static str, &'static str) {
        match self {
            Self::Claude => (".mcp.json", SERVERS),
            Self::Opencode => (
                "opencode.json",
                "{\n  \"mcp\": {\n    \"ralphloop\": { \"type\": \"local\", \"command\": [\"ralphloop\", \"mcp\"] }\n  }\n}\n",
            ),
            Self::Gemini => (".gemini/settings.json", SERVERS),
            Self::Qwen => (".qwen/settings.json", SERVERS),
            Self::Cursor => (".cursor/mcp.json", SERVERS),
        }
    }

    /// The file that names what is asked before a session stops, of those agents that ask, and its content.
    pub(super) fn stop_hook(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Claude).then_some((".claude/settings.json", STOP_HOOK))
    }
}

/// Claude Code runs it whenever a session is about to stop.
const STOP_HOOK: &str = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"ralphloop agent may-stop\" }] }\n    ]\n  }\n}\n";

const STOP: &str = "\
Call the tool `stop` of the MCP server `ralphloop`. If this session drives no run, run `ralphloop stop` in the shell. Then
say what was answered, and nothing else.
";

const STATUS: &str = "\
Call the tool `status` of the MCP server `ralphloop`, and show how the run stands: its state and reason, how many stories
have passed, and for each story that has not, its reason. Change nothing.
";

fn start(each: &Loop) -> String {
    format!("Work on {} with ralphloop. Arguments: $ARGUMENTS\n\n{}\n\n{DRIVE}", each.about, each.start)
}

fn resume() -> String {
    format!(
        "Go on with the run that `status` of the MCP server `ralphloop` shows: start its work again, with the same settings \
         as before.\n\n{DRIVE}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_gets_four_commands_for_each_loop() {
        for home in Home::ALL {
            let names: Vec<String> = home.commands().into_iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), 12, "{home:?}");
            for each in ["continuous-session", "task-loop", "story-loop"] {
                for verb in ["start", "stop", "status", "resume"] {
                    assert!(
                        names.iter().any(|name| name.contains(&format!("{each}.{verb}."))),
                        "{home:?} {each} {verb}"
                    );
                }
            }
        }
    }

    #[test]
    fn files_of_toml_can_be_read() {
        for (name, text) in Home::Gemini.commands() {
            let read: toml::Table = text.parse().unwrap();
            assert!(read["prompt"].as_str().is_some(), "{name}");
        }
        for home in Home::ALL {
            let files = [Some(home.server()), home.stop_hook()];
            for (name, text) in files.into_iter().flatten() {
                serde_json::from_str::<serde_json::Value>(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
