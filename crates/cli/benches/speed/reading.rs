//! Reading a specification of 10 MB with 20,000 tasks, in every format. One thread reads, so that its processor time is
//! what it takes on a machine that nobody else uses.

use std::fmt::Write as _;

use nix::sys::resource::UsageWho;
use ralphloop_core::plan::Scheme;
use ralphloop_spec::{SpecFiles, SpecText, mark_done, read};

use crate::roles::used;
use crate::table::{Table, median};

const TASKS: usize = 20_000;
/// So many tasks one story has where a story has tasks.
const IN_ONE: usize = 10;
/// Bytes of text for each task.
const TEXT: usize = 500;
const ROUNDS: usize = 5;
/// Milliseconds.
const AT_MOST: f64 = 300.0;

pub(crate) fn measure(table: &mut Table) {
    for scheme in Scheme::ALL {
        let Some(text) = specification(*scheme) else { continue };
        let files = SpecFiles::single(*scheme, SpecText::new("tasks.md", text.clone()));
        let mut times = Vec::new();
        let mut tasks = 0;
        for _ in 0..ROUNDS {
            let before = used(UsageWho::RUSAGE_SELF);
            let reading = read(&files).unwrap();
            times.push((used(UsageWho::RUSAGE_SELF) - before) as f64 / 1000.0);
            let stories = &reading.plan.stories;
            tasks = stories.iter().map(|story| story.tasks.len().max(1)).sum();
        }
        assert_eq!(tasks, TASKS, "{scheme:?}");
        let what = format!("reading {:.1} MB of {}, {tasks} tasks", text.len() as f64 / 1e6, scheme.as_str());
        table.at_most(&what, median(times), AT_MOST, "ms");
        if reads_alone(*scheme) {
            let before = used(UsageWho::RUSAGE_SELF);
            mark_done(*scheme, text.as_bytes(), "1.1").unwrap();
            let spent = (used(UsageWho::RUSAGE_SELF) - before) as f64 / 1000.0;
            table.note(&format!("marking one task of it ({})", scheme.as_str()), spent, "ms");
        }
    }
}

/// Whether a task of it can be marked by its number.
fn reads_alone(scheme: Scheme) -> bool {
    matches!(scheme, Scheme::OpenSpec | Scheme::Markdown | Scheme::FixPlan | Scheme::Kiro)
}

/// The file; `None` for a format that is no single file.
fn specification(scheme: Scheme) -> Option<String> {
    let words = "carry the lamp across the yard and set it down ".repeat(TEXT / 40);
    let words = &words[..TEXT - 60];
    let mut text = String::with_capacity(TASKS * (TEXT + 40));
    match scheme {
        Scheme::OpenSpec | Scheme::Markdown | Scheme::FixPlan | Scheme::SpecKit => {
            text.push_str("# Yard\n");
            for story in 1..=TASKS / IN_ONE {
                let _ = write!(text, "\n## {story}. Story number {story}\n\nWhy it matters.\n\n");
                for task in 1..=IN_ONE {
                    let _ = writeln!(text, "- [ ] {story}.{task} {words}");
                }
            }
        }
        Scheme::Kiro => {
            text.push_str("# Yard\n\n");
            for story in 1..=TASKS / IN_ONE {
                let _ = writeln!(text, "- [ ] {story}. Story number {story}");
                for task in 1..=IN_ONE {
                    let _ = writeln!(text, "  - [ ] {story}.{task} {words}");
                }
            }
        }
        Scheme::Prd => {
            text.push_str("{\"userStories\": [\n");
            for story in 1..=TASKS {
                let before = if story > 1 { format!("\"S-{}\"", story - 1) } else { String::new() };
                let comma = if story < TASKS { "," } else { "" };
                let _ = writeln!(
                    text,
                    "{{\"id\": \"S-{story}\", \"title\": \"Story {story}\", \"dependsOn\": [{before}], \
                     \"acceptanceCriteria\": [\"{words}\"], \"passes\": false}}{comma}"
                );
            }
            text.push_str("]}\n");
        }
        Scheme::Yaml => {
            text.push_str("tasks:\n");
            for story in 1..=TASKS {
                let _ = write!(text, "  - title: Story {story}\n    description: {words}\n    completed: false\n");
            }
        }
        Scheme::GitHub => {
            text.push('[');
            for story in 1..=TASKS {
                let comma = if story < TASKS { "," } else { "" };
                let _ = write!(
                    text,
                    "{{\"body\":\"{words}\",\"number\":{story},\"state\":\"OPEN\",\"title\":\"Story {story}\"}}{comma}"
                );
            }
            text.push_str("]\n");
        }
        // A file of these holds one task, or a few.
        Scheme::Backlog | Scheme::Flight => return None,
        Scheme::Beads => {
            for story in 1..=TASKS {
                let _ = writeln!(
                    text,
                    "{{\"id\":\"y-{story}\",\"title\":\"Story {story}\",\"description\":\"{words}\",\"status\":\"open\",\
                     \"priority\":2,\"dependencies\":[{{\"depends_on_id\":\"y-{}\",\"type\":\"blocks\"}}]}}",
                    if story > 1 { story - 1 } else { TASKS + 1 }
                );
            }
        }
    }
    Some(text)
}
