//! The scripted agent of the demo. It speaks the JSON lines of Claude Code and plays one part a story: it succeeds, it
//! repairs, it claims what is not so, it is blocked.

use std::fs;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

/// What the agent does in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Act {
    /// The file that it writes, and its content.
    writes: Option<(&'static str, &'static str)>,
    /// Its final message.
    says: &'static str,
}

/// The part for one story, which is known by a word of its tasks: the calls one after the other, the last one again
/// and again.
#[derive(Debug)]
struct Part {
    word: &'static str,
    acts: &'static [Act],
}

const PARTS: &[Part] = &[
    Part {
        word: "bin/greet",
        acts: &[Act {
            writes: Some(("bin/greet", "#!/bin/sh\necho \"Hello, ${1:-world}!\"\n")),
            says: "The greeting is written, with the world as its default.\n\n<promise>COMPLETE</promise>",
        }],
    },
    Part {
        word: "bin/count",
        acts: &[
            Act {
                writes: Some(("bin/count", "#!/bin/sh\nwc -l | tr -d ' '\n")),
                says: "Counting is done with wc.\n\n<promise>COMPLETE</promise>",
            },
            Act {
                writes: Some(("bin/count", "#!/bin/sh\nwc -w | tr -d ' '\n")),
                says: "The test shows that lines were counted, not words. Mended.\n\n<promise>COMPLETE</promise>",
            },
        ],
    },
    Part {
        word: "bin/slug",
        acts: &[
            Act {
                writes: Some(("bin/slug", "#!/bin/sh\ntr 'A-Z ' 'a-z-'\n")),
                says: "Slugs work and all tests pass.\n\n<promise>COMPLETE</promise>",
            },
            Act { writes: None, says: "I have looked again: everything is in order.\n\n<promise>COMPLETE</promise>" },
            Act {
                writes: Some((
                    "bin/slug",
                    "#!/bin/sh\ntr 'A-Z' 'a-z' | tr -cs 'a-z0-9\\n' '-' | sed 's/^-//; s/-$//'\n",
                )),
                says: "The reason of the failed attempt names the comma. Now all that is no letter or digit goes.\n\n\
                       <promise>COMPLETE</promise>",
            },
        ],
    },
    Part {
        word: "release/toolbox-1.0",
        acts: &[Act {
            writes: None,
            says: "Nothing here says which server is meant, nor how to sign in to it.\n\n\
                   <promise>BLOCKED: the address of the package server and a token for it are missing</promise>",
        }],
    },
];

/// Reads a prompt from the standard input and answers on the standard output. `notes` is a folder outside of the
/// repository in which the agent counts its calls; a script cannot judge by itself whether it failed before.
pub(crate) fn play(notes: &Path) -> io::Result<()> {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let act = next_act(&prompt, notes)?;
    if let Some((name, content)) = act.and_then(|act| act.writes) {
        let path = Path::new(name);
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, content)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let mut out = io::stdout().lock();
    for event in events(act) {
        writeln!(out, "{event}")?;
    }
    out.flush()
}

/// What comes next for the story that the prompt is about; `None` if it is about none that the script knows.
fn next_act(prompt: &str, notes: &Path) -> io::Result<Option<Act>> {
    let Some(part) = PARTS.iter().find(|part| prompt.contains(part.word)) else { return Ok(None) };
    fs::create_dir_all(notes)?;
    let note = notes.join(part.word.replace('/', "-"));
    let calls = fs::read_to_string(&note).ok().and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(0);
    fs::write(&note, format!("{}\n", calls + 1))?;
    Ok(part.acts.get(calls).or(part.acts.last()).copied())
}

fn events(act: Option<Act>) -> Vec<Value> {
    let session = "demo";
    let says = act.map_or("This story is not in my script.", |act| act.says);
    let message = |content: Value| {
        json!({ "type": "assistant", "session_id": session,
                "message": { "id": "demo", "role": "assistant", "model": "scripted", "content": [content] } })
    };
    let mut events = vec![json!({ "type": "system", "subtype": "init", "session_id": session, "model": "scripted" })];
    if let Some((name, content)) = act.and_then(|act| act.writes) {
        let input = json!({ "file_path": name, "content": content });
        events.push(message(json!({ "type": "tool_use", "id": "write", "name": "Write", "input": input })));
        let result = json!({ "type": "tool_result", "tool_use_id": "write", "content": format!("wrote {name}") });
        events.push(json!({ "type": "user", "session_id": session,
                            "message": { "role": "user", "content": [result] } }));
    }
    events.push(message(json!({ "type": "text", "text": says })));
    events.push(json!({ "type": "result", "subtype": "success", "is_error": false, "session_id": session,
                        "terminal_reason": "completed", "result": says, "num_turns": 1, "total_cost_usd": 0.01,
                        "usage": { "input_tokens": 1200, "output_tokens": 150 } }));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(story: &str, calls: usize) -> Vec<Act> {
        let notes = tempfile::tempdir().unwrap();
        (0..calls).map(|_| next_act(&format!("do `{story}` now"), notes.path()).unwrap().unwrap()).collect()
    }

    #[test]
    fn each_story_has_its_part_and_the_last_act_is_repeated() {
        let slug = acts("bin/slug", 4);
        assert_eq!(slug[1].writes, None, "the repair changes nothing");
        assert_ne!(slug[0].writes, slug[2].writes);
        assert_eq!(slug[2], slug[3]);
        assert!(acts("release/toolbox-1.0", 1)[0].says.contains("<promise>BLOCKED: "));
        let notes = tempfile::tempdir().unwrap();
        assert_eq!(next_act("another story", notes.path()).unwrap(), None);
    }

    #[test]
    fn the_last_event_is_the_result_with_the_signal_alone_on_its_last_line() {
        for part in PARTS {
            for act in part.acts {
                let last = events(Some(*act)).pop().unwrap();
                let result = last["result"].as_str().unwrap();
                assert!(result.lines().last().unwrap().starts_with("<promise>"), "{result}");
                assert_eq!((&last["type"], &last["is_error"]), (&json!("result"), &json!(false)));
            }
        }
    }
}
