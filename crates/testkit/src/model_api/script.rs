//! What a scripted model does, as data: the story is found in the prompt, the step in the conversation.

use std::time::Duration;

/// All that a scripted model knows.
#[derive(Debug, Clone, Default)]
pub struct ModelScript {
    stories: Vec<StoryScript>,
    pub(super) cache: CacheUse,
}

/// How many of an answer's input tokens have to do with the provider's cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheUse {
    /// Read from it.
    pub read: u64,
    /// Put into it; only Anthropic tells.
    pub written: u64,
}

impl ModelScript {
    /// A model that knows no story; it answers an unknown prompt with a text that signals nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets every answer tell that so many of its input tokens were read from the cache, or put into it.
    #[must_use]
    pub fn cached(mut self, cache: CacheUse) -> Self {
        self.cache = cache;
        self
    }

    /// Adds a story. Of several that fit a prompt the first one added is taken.
    #[must_use]
    pub fn story(mut self, story: StoryScript) -> Self {
        self.stories.push(story);
        self
    }

    /// The position of the story that fits `prompt`.
    pub(super) fn find(&self, prompt: &str) -> Option<(usize, &StoryScript)> {
        self.stories.iter().enumerate().find(|(_, s)| s.when.iter().all(|text| prompt.contains(text)))
    }
}

/// What the model does when the prompt holds certain texts.
#[derive(Debug, Clone)]
pub struct StoryScript {
    when: Vec<String>,
    turns: Vec<Turn>,
    faults: Vec<Fault>,
}

impl StoryScript {
    /// Applies to prompts that contain every one of `when`.
    #[must_use]
    pub fn when(when: &[&str]) -> Self {
        Self { when: when.iter().map(|&w| w.to_owned()).collect(), turns: Vec::new(), faults: Vec::new() }
    }

    /// Lets the model write a file, by whichever tool the client offers for it.
    #[must_use]
    pub fn write(mut self, path: &str, text: &str) -> Self {
        self.turns.push(Turn::Write { path: path.to_owned(), text: text.to_owned() });
        self
    }

    /// Lets the model run a command in the client's shell tool.
    #[must_use]
    pub fn run(mut self, command: &str) -> Self {
        self.turns.push(Turn::Run { command: command.to_owned() });
        self
    }

    /// Lets the model call a tool of the client's, found by the end of its name, with this input.
    #[must_use]
    pub fn call(mut self, tool: &str, input: &serde_json::Value) -> Self {
        self.turns.push(Turn::Call { tool: tool.to_owned(), input: input.clone() });
        self
    }

    /// Lets the model call several tools in one answer.
    #[must_use]
    pub fn together(mut self, calls: &[(&str, serde_json::Value)]) -> Self {
        let calls = calls.iter().map(|(tool, input)| ((*tool).to_owned(), input.clone())).collect();
        self.turns.push(Turn::Together { calls });
        self
    }

    /// Ends the conversation with a text. It serves every later request too.
    #[must_use]
    pub fn say(mut self, text: &str) -> Self {
        self.turns.push(Turn::Say { text: text.to_owned() });
        self
    }

    /// Breaks the story's `first`-th request (from 1) and the `times - 1` after it; later ones are answered well.
    #[must_use]
    pub fn fault(mut self, first: usize, times: usize, kind: FaultKind) -> Self {
        self.faults.push(Fault { first, times, kind });
        self
    }

    /// What is wrong with the `number`-th request, if anything.
    pub(super) fn fault_at(&self, number: usize) -> Option<&FaultKind> {
        self.faults.iter().find(|f| (f.first..f.first.saturating_add(f.times)).contains(&number)).map(|f| &f.kind)
    }

    /// What comes after `steps` tool results; the last turn serves all that follow.
    pub(super) fn turn(&self, steps: usize) -> Option<&Turn> {
        let mut before = 0;
        let at = |turn: &&Turn| {
            let here = before >= steps;
            before += turn.results();
            here
        };
        self.turns.iter().find(at).or(self.turns.last())
    }
}

/// One answer of the model.
#[derive(Debug, Clone)]
pub enum Turn {
    /// A call of the tool that writes a file.
    Write {
        /// Relative to the client's working directory, or absolute.
        path: String,
        /// The whole content.
        text: String,
    },
    /// A call of the shell tool.
    Run {
        /// The command line.
        command: String,
    },
    /// A call of a tool by name.
    Call {
        /// How the name ends.
        tool: String,
        /// An object.
        input: serde_json::Value,
    },
    /// Calls of several tools at once, each as in [`Turn::Call`].
    Together {
        /// Names and inputs.
        calls: Vec<(String, serde_json::Value)>,
    },
    /// A final text.
    Say {
        /// The text.
        text: String,
    },
}

impl Turn {
    /// How many results of tools come of it.
    fn results(&self) -> usize {
        match self {
            Self::Together { calls } => calls.len(),
            Self::Write { .. } | Self::Run { .. } | Self::Call { .. } | Self::Say { .. } => 1,
        }
    }
}

/// Which requests of a story go wrong.
#[derive(Debug, Clone)]
struct Fault {
    first: usize,
    times: usize,
    kind: FaultKind,
}

/// What goes wrong with a request.
#[derive(Debug, Clone)]
pub enum FaultKind {
    /// 429 with a `retry-after`.
    RateLimit {
        /// In whole seconds.
        retry_after: Duration,
    },
    /// 429 as a subscription's used-up limit answers, with the time of its reset in the headers.
    UsageLimit {
        /// From the request to the reset, in whole seconds.
        resets_in: Duration,
    },
    /// Accepts the request and never answers.
    Hang,
    /// Sends the first half of an answer, then nothing.
    HangMidStream,
    /// Resets the connection before any byte of an answer.
    Reset,
    /// Resets the connection after half an answer.
    ResetMidStream,
    /// Closes the connection in good order after half an answer.
    Cut,
    /// Answers with this status: 402 (no credit), 404 (no such model), 500, 529.
    Status(u16),
    /// 401.
    Unauthorized,
    /// 400, as a prompt beyond the model's context is answered.
    PromptTooLong,
}
