//! The plan as headings and boxes, in the ways of the formats that are written so.

use std::collections::HashSet;
use std::fmt::Write as _;

use ralphloop_core::plan::{Check, Scheme, Story, Task, WorkState};

use super::Abilities;
use super::draft::{Draft, Drafted, flat, headed, urgency};
use crate::flight;
use crate::label;
use crate::markdown::boxes;
use crate::markdown::outline::outline;
use crate::text::Text;
use crate::words;

/// The file.
pub(super) fn text(draft: &Draft<'_>, to: Scheme) -> String {
    let mut writer = Writer::new(draft, to);
    let title = draft.title.or(draft.project).map_or_else(|| "Plan".to_owned(), flat);
    let _infallible = writeln!(writer.out, "# {}", unhashed(&title));
    if matches!(to, Scheme::Markdown | Scheme::FixPlan) {
        writer.paragraph(&draft.context.proposal);
    }
    match Abilities::of(to) {
        Ok(abilities) if to == Scheme::FixPlan && !draft.order_stands_for_deps(abilities) => writer.by_urgency(draft),
        _ => draft.stories.iter().for_each(|drafted| writer.story(drafted, 2)),
    }
    if !draft.left_out.is_empty() {
        writer.out.push_str("\n## Not part of the work\n\n");
        draft.left_out.iter().for_each(|story| writer.aside(&story.title));
    }
    writer.out
}

/// A heading must not end in hashes, which would not be part of it.
pub(super) fn unhashed(title: &str) -> String {
    title.trim_matches('#').trim().to_owned()
}

/// Own ids of tasks that several tasks have.
fn repeated(draft: &Draft<'_>) -> HashSet<String> {
    let mut seen = HashSet::new();
    let tasks = draft.stories.iter().flat_map(|drafted| &drafted.story.tasks);
    tasks.filter_map(own_id).filter(|id| !seen.insert((*id).to_owned())).map(str::to_owned).collect()
}

/// The id that the task's own text or object carried.
fn own_id(task: &Task) -> Option<&str> {
    let own = task.id.as_str().rsplit('/').next()?;
    (!own.contains(['#', '~'])).then_some(own)
}

/// Writes headings, boxes and what is said beside them.
pub(super) struct Writer {
    to: Scheme,
    tick: char,
    /// Ids of tasks that cannot be kept, as they would be there twice.
    used: HashSet<String>,
    /// Tasks numbered so far, through the whole file.
    numbers: usize,
    pub out: String,
}

impl Writer {
    pub(super) fn new(draft: &Draft<'_>, to: Scheme) -> Self {
        let tick = if to == Scheme::SpecKit { 'X' } else { 'x' };
        Self { to, tick, used: repeated(draft), numbers: 0, out: String::new() }
    }

    /// Sections whose headings say how urgent their stories are.
    fn by_urgency(&mut self, draft: &Draft<'_>) {
        let mut above = (false, f64::INFINITY);
        for drafted in &draft.stories {
            let here = urgency(&drafted.story);
            if here != above {
                let heading = match here {
                    (true, _) => "Optional".to_owned(),
                    (false, rank) if rank.is_finite() => format!("Priority {rank}"),
                    (false, _) => "Further work".to_owned(),
                };
                let _infallible = write!(self.out, "\n## {heading}\n");
                above = here;
            }
            self.story(drafted, 3);
        }
    }

    fn story(&mut self, drafted: &Drafted<'_>, level: usize) {
        let story = &drafted.story;
        if self.to == Scheme::Kiro {
            return self.boxed_story(drafted);
        }
        let heading = headed(story.id.as_str(), &story.title);
        let number = story.id.as_str().starts_with(|c: char| c.is_ascii_digit());
        let heading = match self.to {
            Scheme::SpecKit if number => {
                format!("Phase {}", headed(story.id.as_str(), &story.title).replacen(". ", ": ", 1))
            }
            _ => heading,
        };
        let _infallible = write!(self.out, "\n{} {heading}\n", "#".repeat(level));
        if self.to == Scheme::Markdown {
            self.fields(story);
        }
        self.paragraph(&story.description);
        self.remarks(story, &drafted.asides, "");
        self.out.push('\n');
        for (index, task) in story.tasks.iter().enumerate() {
            self.task(story, task, index + 1, depth(story, task));
        }
    }

    fn boxed_story(&mut self, drafted: &Drafted<'_>) {
        let story = &drafted.story;
        let star = if story.optional { "*" } else { "" };
        let text = headed(story.id.as_str(), &story.title);
        let _infallible = write!(self.out, "\n- [{}]{star} {text}\n", self.letter(story.state));
        let lines = story.description.lines().map(str::trim).filter(|line| !line.is_empty());
        for line in lines {
            let line = line.trim_start_matches(['-', '*', '+', ' ']);
            self.bullet("  ", line);
        }
        self.remarks(story, &drafted.asides, "  ");
        for (index, task) in story.tasks.iter().enumerate() {
            self.task(story, task, index + 1, 1 + depth(story, task));
        }
        if !story.refs.is_empty() {
            self.bullet("  ", &format!("_Requirements: {}_", story.refs.join(", ")));
        }
    }

    fn fields(&mut self, story: &Story) {
        let mut lines = Vec::new();
        if !story.deps.is_empty() {
            let deps: Vec<&str> = story.deps.iter().map(ralphloop_core::ids::StoryId::as_str).collect();
            lines.push(format!("**Depends On:** {}", deps.join(", ")));
        }
        if let Some(priority) = story.priority {
            lines.push(format!("**Priority:** {}", priority.0));
        }
        if !lines.is_empty() {
            let _infallible = write!(self.out, "\n{}\n", lines.join("\n"));
        }
    }

    /// Text as it is; as a quotation if a heading, a box or a fence in it would be read as such.
    pub(super) fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let plain = Text::decode("", text.as_bytes()).is_ok_and(|text| is_prose(&text))
            && !(self.to == Scheme::Flight && text.lines().any(flight::says_something));
        self.out.push('\n');
        for line in text.lines() {
            let line = if plain { line.to_owned() } else { format!("> {line}") };
            let _infallible = writeln!(self.out, "{}", line.trim_end());
        }
    }

    /// What has no place of its own in the format: lines for people and agents.
    pub(super) fn remarks(&mut self, story: &Story, asides: &[Task], indent: &str) {
        let mut remarks: Vec<String> = Vec::new();
        remarks.extend(story.group.as_ref().map(|group| format!("Group: {}", flat(group))));
        if !story.tags.is_empty() {
            remarks.push(format!("Labels: {}", story.tags.join(", ")));
        }
        if !story.refs.is_empty() && self.to != Scheme::Kiro {
            remarks.push(format!("Requirements: {}", story.refs.join(", ")));
        }
        remarks.extend(story.complexity.map(|complexity| format!("Complexity: {complexity} of 5")));
        if story.needs_no_change {
            remarks.push("No file has to change for this.".to_owned());
        }
        let further = story.criteria.iter().filter(|text| !story.tasks.iter().any(|task| task.text == **text));
        remarks.extend(further.map(|text| flat(text)));
        remarks.extend(story.checks.iter().map(check));
        if !story.notes.is_empty() {
            remarks.push(format!("Notes: {}", flat(&story.notes)));
        }
        remarks.extend(asides.iter().map(|task| format!("Optional: {}", flat(&task.text))));
        if !remarks.is_empty() && indent.is_empty() {
            self.out.push('\n');
        }
        for remark in &remarks {
            self.bullet(indent, remark);
        }
    }

    fn aside(&mut self, text: &str) {
        self.bullet("", &flat(text));
    }

    /// A bullet that is no box, whatever the text.
    fn bullet(&mut self, indent: &str, text: &str) {
        let line = format!("{indent}- {text}");
        let line = if boxes::parse(&line).is_some() { format!("{indent}- “{text}”") } else { line };
        let _infallible = writeln!(self.out, "{line}");
    }

    fn task(&mut self, story: &Story, task: &Task, position: usize, depth: usize) {
        self.numbers += 1;
        let text = flat(&task.text);
        let with = |id: &str| {
            if id.bytes().all(|b| b.is_ascii_digit()) { format!("{id}. {text}") } else { format!("{id} {text}") }
        };
        let reads = |line: &str, id: &str| label::task(line).is_some_and(|found| found.id == id && found.text == text);
        let kept = own_id(task).filter(|id| !self.used.contains(*id) && reads(&with(id), id));
        let kept = kept.filter(|id| self.to != Scheme::Kiro || belongs(id, story.id.as_str()));
        let numbered = match self.to {
            Scheme::SpecKit => Some(format!("T{:03}", self.numbers)),
            Scheme::OpenSpec | Scheme::Kiro => Some(format!("{}.{position}", story.id)),
            // Only where the text itself begins like a label.
            _ => label::task(&text).map(|_| format!("{}.{position}", story.id)),
        };
        let line = match (kept, numbered) {
            (Some(id), _) => with(id),
            (None, Some(id)) => format!("{id} {}", self.tagged(task, &text)),
            (None, None) => text.clone(),
        };
        let star = if task.optional && self.to == Scheme::Kiro { "*" } else { "" };
        let _infallible =
            writeln!(self.out, "{}- [{}]{star} {}", "  ".repeat(depth), self.letter(task.state), line.trim_end());
        if self.to == Scheme::Kiro && !task.refs.is_empty() {
            self.bullet(&"  ".repeat(depth + 1), &format!("_Requirements: {}_", task.refs.join(", ")));
        }
    }

    /// The text behind its tags, where the format has them.
    fn tagged(&self, task: &Task, text: &str) -> String {
        let tags = task.tags.iter().filter(|_| self.to == Scheme::SpecKit).map(|tag| format!("[{tag}] "));
        format!("{}{text}", tags.collect::<String>())
    }

    fn letter(&self, state: WorkState) -> char {
        match state {
            WorkState::Done => self.tick,
            WorkState::Todo => ' ',
            WorkState::Doing => '-',
            WorkState::Blocked | WorkState::Skipped | WorkState::Other => '~',
        }
    }
}

/// The number of a task that Kiro takes for one of the story.
fn belongs(id: &str, story: &str) -> bool {
    id.strip_prefix(story).is_some_and(|rest| rest.starts_with('.'))
}

fn depth(story: &Story, task: &Task) -> usize {
    let mut depth = 0;
    let mut parent = task.parent.as_ref();
    while let Some(id) = parent.filter(|_| depth < 4) {
        depth += 1;
        parent = story.tasks.iter().find(|task| task.id == *id).and_then(|task| task.parent.as_ref());
    }
    depth
}

/// Nothing in the text is a heading, a box, or hides one.
fn is_prose(text: &Text<'_>) -> bool {
    let outline = outline(text);
    let plain = |line: &str| {
        let line = line.trim_start();
        !line.starts_with("```") && !line.starts_with("~~~") && !line.contains("<!--") && line != "---"
    };
    outline.notes.is_empty()
        && outline.sections.iter().all(|section| section.heading.is_none() && section.items.is_empty())
        && text.lines().all(|(_, line)| plain(line))
}

/// A line that the readers take for a check, where that is possible.
fn check(check: &Check) -> String {
    match check {
        Check::Shell { name: None, command, cwd: None, expect_output_contains, expect_files_glob, timeout: None }
            if expect_output_contains.is_empty() && expect_files_glob.is_empty() && words::is_command(command) =>
        {
            format!("Verify: `{}`", flat(command))
        }
        other => format!("To be checked by hand: {}", flat(other.label())),
    }
}
