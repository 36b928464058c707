//! Takes the echo of the prompt out of the output of clients that print both to one stream.

use std::collections::HashMap;

/// The lines of `output` without those that repeat the prompt: runs of at least two lines, blank ones aside, that stand
/// in the prompt in the same order, or the whole prompt if it is a single line. The first line of a run may carry a
/// mark before it (`user: …`).
pub(crate) fn without_echo<'a>(output: &[&'a str], prompt: &str) -> Vec<&'a str> {
    let prompt: Vec<&str> = prompt.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in prompt.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    let output: Vec<&str> = output.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let enough = prompt.len().clamp(1, 2);
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(line) = output.get(at) {
        let run = longest_run(&output[at..], line.trim(), &prompt, &places);
        if run >= enough {
            at += run;
        } else {
            kept.push(*line);
            at += 1;
        }
    }
    kept
}

fn longest_run(output: &[&str], first: &str, prompt: &[&str], places: &HashMap<&str, Vec<usize>>) -> usize {
    let marked = prompt.first().filter(|start| first.ends_with(**start)).map(|_| 0);
    let starts = places.get(first).into_iter().flatten().copied().chain(marked);
    let run_from = |start: usize| {
        let rest = output.iter().skip(1).zip(prompt.iter().skip(start + 1));
        1 + rest.take_while(|(out, line)| out.trim() == **line).count()
    };
    starts.map(run_from).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Story S1\n\nEnd with this line:\n<promise>COMPLETE</promise>\n";

    fn kept(output: &str, prompt: &str) -> Vec<String> {
        without_echo(&output.lines().collect::<Vec<_>>(), prompt).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn an_echo_is_taken_out_wherever_it_stands_and_with_a_mark_before_it() {
        assert_eq!(kept(&format!("user: {PROMPT}I start."), PROMPT), ["I start."]);
        assert_eq!(kept(&format!("hello\n{PROMPT}"), PROMPT), ["hello"]);
        assert_eq!(kept("thinking\n  End with this line:\n<promise>COMPLETE</promise>", PROMPT), ["thinking"]);
    }

    #[test]
    fn a_signal_of_its_own_stays_though_the_prompt_has_the_same_line() {
        let own = "Finished.\n<promise>COMPLETE</promise>";
        assert_eq!(kept(own, PROMPT), ["Finished.", "<promise>COMPLETE</promise>"]);
    }

    #[test]
    fn a_prompt_of_one_line_is_an_echo_too() {
        assert_eq!(kept("STORY_COMPLETE", "STORY_COMPLETE"), Vec::<String>::new());
        assert_eq!(kept("anything", ""), ["anything"]);
    }
}
