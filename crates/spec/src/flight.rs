//! Flight Rules: task groups, session logs with their next steps, and a PRD with the state of its stories beside it.

pub(crate) mod fix_task;
mod folder;
mod group;
mod prd;
mod queue;
mod session;
mod status;
mod verification;

use ralphloop_core::plan::{Context, Plan, Scheme, WorkId};

use crate::document::{Document, Reading};
use crate::error::{ErrorClass, SpecError};
use crate::markdown::outline::outline;
use crate::markdown::stories::Stories;
use crate::prompt;
use crate::source::{NEXT_STEPS, SpecFiles};
use crate::text::Text;

/// A piece of work of Flight Rules: a file, the next steps of one, all task groups of a folder, or a PRD with its state.
pub(crate) fn read(files: &SpecFiles) -> Result<Reading, SpecError> {
    if files.folder.is_some() {
        return folder::read(files);
    }
    let text = Text::decode(&files.main.path, &files.main.bytes)?;
    if files.main.path.ends_with(NEXT_STEPS) {
        let stories = queue::read(&text)?;
        let log = files.main.path.trim_end_matches(NEXT_STEPS);
        let reading = reading(text.file, None, stories, queue_prompt(log)).reading;
        return Ok(Reading { plan: Plan { writable: false, ..reading.plan }, ..reading });
    }
    if !files.more.is_empty() {
        return prd::read(&text, &files.more);
    }
    Ok(document(&text)?.reading)
}

/// The stories of one file, with their marks. What kind of file it is, it says itself.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    if text.body.trim_start().starts_with('{') {
        return prd::status(text);
    }
    let outline = outline(text);
    if let Some((id, topic)) = outline.title.as_deref().and_then(group::heading) {
        let stories = group::read(text, &id, &topic)?;
        return Ok(reading(text.file, None, stories, group_prompt(text.file)));
    }
    if session::is_log(&outline) {
        let stories = session::read(text)?;
        return Ok(reading(text.file, outline.title, stories, log_prompt(text.file)));
    }
    if prd::is_prd(&outline) {
        return prd::document(text);
    }
    let message = "this file is neither a task group, nor a session log, nor a PRD with user stories";
    Err(SpecError::new(ErrorClass::UnrecognisedShape, text.file, message).at_line(1).with_help(
        "name a file whose first heading is numbered like # 2.3 Topic, or flight:next-steps, or flight for all of them",
    ))
}

/// Whether a line of a task group says something about it beyond its words.
pub(crate) fn says_something(line: &str) -> bool {
    const NAMES: &[&str] = &["status", "requires", "depends on", "verification", "verified"];
    status::field(line).is_some_and(|found| NAMES.iter().any(|name| found.is(name)))
}

/// How a status of a task group is written.
pub(crate) fn status_line(state: ralphloop_core::plan::WorkState) -> String {
    format!("**Status**: {}", status::words_of(state))
}

fn reading(file: &str, project: Option<String>, stories: Stories, tool_prompt: String) -> Document {
    let Stories { list, marks, warnings } = stories;
    let plan = Plan {
        title: project.clone(),
        context: Context { tool_prompt, ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Flight, id: file.to_owned() }, list)
    };
    Document { reading: Reading::new(plan, project, warnings), marks }
}

/// What every file of the method has in common.
const COMMON: &str = "Do not commit, and start none of the loops of Flight Rules yourself: the tool that called you runs \
    the checks and commits what has passed. You may add to docs/progress.md and docs/critical-learnings.md.\n";

fn group_prompt(place: &str) -> String {
    format!(
        "This work is kept with Flight Rules in {place}: a task group is a story, a numbered heading in it is a task, and \
         the Status line below the heading says how far that is (🔵 Planned, 🟡 In Progress, ✅ Complete). When a task of \
         this story is done, change its line to ✅ Complete; change no Status of another group, and no Verified line. What \
         still says otherwise when the story has been verified is set for you.\n\n{COMMON}"
    )
}

fn log_prompt(place: &str) -> String {
    format!(
        "This work is the session log {place} of Flight Rules: its next steps and the boxes in it are open work.\n\n{}",
        prompt::boxes('x')
    )
}

fn queue_prompt(place: &str) -> String {
    format!(
        "This story is one of the next steps that the session log {place} of Flight Rules names. Leave that log as it is; \
         what has landed is known from its commit.\n\n{COMMON}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;
    use crate::mark::{mark_done, tick_story};

    const GROUP: &str = "# 4.2. Lamps\r\n\r\n## 4.2.1. Lamp\r\n\r\n**Status**: 🔵 Planned\r\n**Verified**: false\r\n\
        **Verification**:\r\n- command: `make lamp`\r\n- timeout: 2m\r\n\r\n---\r\n\r\n## 4.2.2. Cord\r\n\r\nRed.\r\n\r\n---\r\n";

    fn edited(edits: &[crate::Edit]) -> String {
        String::from_utf8(apply(GROUP.as_bytes(), edits).unwrap()).unwrap()
    }

    #[test]
    fn landing_a_group_completes_every_task_and_notes_what_was_verified() {
        let out = edited(&tick_story(Scheme::Flight, GROUP.as_bytes(), &"4.2".into()).unwrap());
        let expected = GROUP
            .replace("🔵 Planned", "✅ Complete")
            .replace("Verified**: false", "Verified**: true (`make lamp`)")
            .replace("Red.\r\n", "Red.\r\n\r\n**Status**: ✅ Complete\r\n");
        assert_eq!(out, expected);
    }

    #[test]
    fn a_task_marked_by_hand_is_not_called_verified() {
        let out = edited(&mark_done(Scheme::Flight, GROUP.as_bytes(), "4.2.1").unwrap());
        assert_eq!(out, GROUP.replace("🔵 Planned", "✅ Complete"));
        let out = edited(&mark_done(Scheme::Flight, GROUP.as_bytes(), "4.2").unwrap());
        assert!(out.contains("Verified**: false"), "{out}");
    }

    #[test]
    fn the_verification_of_a_task_is_a_check_of_its_group() {
        let text = Text::decode("t", GROUP.as_bytes()).unwrap();
        let story = &document(&text).unwrap().reading.plan.stories[0];
        assert_eq!(story.checks, [group::shell("make lamp", Some(std::time::Duration::from_mins(2)))]);
    }
}
