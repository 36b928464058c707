//! Plain Markdown with boxes: `PRD.md`, `TODO.md`, `tasks/prd-<name>.md`. A heading that owns boxes is a story.

use ralphloop_core::plan::{Context, Plan, Scheme, SpecGate, Story, WorkId};

use crate::document::{Document, Reading};
use crate::error::{Code, Diagnostic, SpecError};
use crate::graph;
use crate::markdown::outline::{Section, outline};
use crate::markdown::stories::{PLAIN, Stories, stories};
use crate::markdown::{boxes, fields, verification};
use crate::prompt;
use crate::text::Text;
use crate::words::{self, Rank};

/// The stories of the file, with their marks.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let outline = outline(text);
    let Stories { list: mut stories, marks, mut warnings } = stories(text, &outline, PLAIN)?;
    let sections = outline.sections.iter().filter(|section| !section.items.is_empty());
    for (story, section) in stories.iter_mut().zip(sections) {
        warnings.extend(read_fields(text.file, story, section));
        story.checks = verification::checks(story);
    }
    graph::refuse_cycles(text.file, &stories)?;
    warnings.extend(graph::unknown_warnings(text.file, &stories));
    let plan = Plan {
        title: outline.title.clone(),
        gates: gates(&outline.sections),
        context: Context { tool_prompt: tool_prompt(text.file), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Markdown, id: text.file.to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, outline.title, warnings), marks })
}

/// `**Depends On:**` and `**Priority:**` below the heading.
fn read_fields(file: &str, story: &mut Story, section: &Section) -> Option<Diagnostic> {
    story.deps = fields::bold_list(&section.prose, "depends on").as_deref().map(fields::ids).unwrap_or_default();
    let written = fields::bold(&section.prose, "priority")?;
    // `High (blocks the release)`
    let bare = written.split(['(', '（']).next().unwrap_or_default();
    let rank = match words::rank(written) {
        Rank::Unknown if !bare.trim().is_empty() => words::rank(bare),
        rank => rank,
    };
    match rank {
        Rank::Known(priority) => story.priority = Some(priority),
        Rank::None => {}
        Rank::Unknown => {
            let message =
                format!("story {:?}: the priority {written:?} has no known meaning; it comes last", story.id.as_str());
            return Some(Diagnostic::warning(Code::UnknownPriority, file, story.line, message));
        }
    }
    None
}

/// The commands below `## Validation Commands`, one an item, in backquotes.
fn gates(sections: &[Section]) -> Vec<SpecGate> {
    let is_it = |section: &&Section| {
        let heading = section.heading.as_ref().map(|heading| heading.text.to_lowercase());
        heading.is_some_and(|heading| heading.trim_end_matches(':') == "validation commands")
    };
    let lines = sections.iter().filter(is_it).flat_map(|section| &section.prose);
    let commands = lines.filter_map(|line| {
        let line = line.trim_start();
        let item = line.get(boxes::list_marker(line)?..)?.trim();
        let (command, _) = item.strip_prefix('`')?.split_once('`')?;
        Some(command.trim().to_owned()).filter(|command| !command.is_empty())
    });
    commands.map(|command| SpecGate { name: command.clone(), command }).collect()
}

fn tool_prompt(file: &str) -> String {
    format!(
        "This work is the task list in {file}: a heading is a story, a box below it is a task. What else that file says \
         may matter, so read it.\n\n{}",
        prompt::boxes('x')
    )
}
