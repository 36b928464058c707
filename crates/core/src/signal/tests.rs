use super::*;

fn read(message: &str) -> Claim {
    claim(message, &StoryId::from("S-1"), &SignalGrammar::default())
}

fn missed(message: &str) -> String {
    match read(message) {
        Claim::None { near_miss: Some(text) } => text,
        other => panic!("expected a near miss of {message:?}, got {other:?}"),
    }
}

fn failed(reason: &str) -> Claim {
    Claim::Failed { reason: reason.into() }
}

fn blocked(reason: &str) -> Claim {
    Claim::Blocked { reason: reason.into() }
}

#[test]
fn every_spelling_is_read() {
    for complete in [
        "<promise>COMPLETE</promise>",
        "<promise>COMPLETE: S-1</promise>",
        "STORY_COMPLETE",
        "STORY_COMPLETE: S-1",
        "ITERATION_COMPLETE",
        "LOOP_COMPLETE",
    ] {
        assert_eq!(read(&format!("Finished.\n{complete}")), Claim::Complete, "{complete}");
    }
    assert_eq!(read("<promise>FAILED: the tests do not pass</promise>"), failed("the tests do not pass"));
    assert_eq!(read("<promise>FAILED</promise>"), failed(""));
    assert_eq!(read("ITERATION_FAILED"), failed(""));
    assert_eq!(read("ITERATION_FAILED: no database: none at all"), failed("no database: none at all"));
    assert_eq!(read("<promise>BLOCKED: needs a key</promise>"), blocked("needs a key"));
    assert_eq!(read("STORY_BLOCKED: needs a key"), blocked("needs a key"));
}

#[test]
fn blanks_line_ends_letter_case_and_emphasis_do_not_matter() {
    for message in [
        "Finished.\n   <promise>COMPLETE</promise>  \n\t\n",
        "Finished.\r\n<promise>COMPLETE</promise>\r\n\r\n",
        "<promise>complete</promise>",
        "< PROMISE > Complete < / promise >",
        "**<promise>COMPLETE</promise>**",
        "\u{feff}<promise>COMPLETE</promise>\u{200b}\u{a0}",
        "story_complete: S-1",
    ] {
        assert_eq!(read(message), Claim::Complete, "{message:?}");
    }
}

#[test]
fn the_last_of_two_signals_wins_in_both_orders() {
    assert_eq!(read("<promise>FAILED: not yet</promise>\n<promise>COMPLETE</promise>"), Claim::Complete);
    assert_eq!(read("<promise>COMPLETE</promise>\n\n<promise>FAILED: it broke</promise>"), failed("it broke"));
    assert_eq!(read("STORY_COMPLETE\nI was wrong.\nSTORY_BLOCKED: no access"), blocked("no access"));
}

#[test]
fn r38_a_quoted_or_fenced_signal_and_one_inside_a_sentence_do_not_count() {
    assert!(missed("```\n<promise>COMPLETE</promise>\n```\nOne test is left.").contains("code block"));
    assert!(missed("~~~text\n<promise>COMPLETE</promise>\n~~~").contains("code block"));
    assert!(missed("````\n```\n<promise>COMPLETE</promise>").contains("code block"));
    assert!(missed("> <promise>COMPLETE</promise>").contains("quotes"));
    assert!(missed("\"<promise>COMPLETE</promise>\"").contains("quotes"));
    assert!(missed("`<promise>COMPLETE</promise>`").contains("quotes"));
    assert!(missed("Blocked, therefore no <promise>COMPLETE</promise> from me.").contains("sentence"));
    assert!(missed("Once the tests pass I shall answer \"<promise>COMPLETE</promise>\".").contains("sentence"));
    assert!(missed("- <promise>COMPLETE</promise>").contains("sentence"));
    assert!(missed("<promise>COMPLETE</promise> or <promise>FAILED: r</promise>").contains("sentence"));
}

#[test]
fn r38_complete_anywhere_does_not_beat_a_failure() {
    let message = "I may not say <promise>COMPLETE</promise> yet.\n<promise>FAILED: two tests are red</promise>";
    assert_eq!(read(message), failed("two tests are red"));
}

#[test]
fn a_signal_after_a_closed_fence_counts() {
    assert_eq!(read("```sh\ncargo test\n```\n<promise>COMPLETE</promise>"), Claim::Complete);
    assert_eq!(read("Use ```x``` here.\n<promise>COMPLETE</promise>"), Claim::Complete);
}

#[test]
fn text_after_a_signal_makes_it_a_near_miss() {
    let text = missed("<promise>COMPLETE</promise>\nI still have to write the tests.");
    assert!(text.contains("other text follows") && text.contains("<promise>COMPLETE</promise>"), "{text}");
}

#[test]
fn a_named_story_must_be_this_one() {
    assert!(missed("STORY_COMPLETE: S-2").contains("another story"));
    assert!(missed("STORY_COMPLETE: s-1").contains("another story"));
    assert_eq!(claim("STORY_COMPLETE: a b/ü", &StoryId::from("a b/ü"), &SignalGrammar::default()), Claim::Complete);
}

#[test]
fn a_bare_inner_word_is_no_signal() {
    assert!(missed("COMPLETE").contains("lacks its tag"));
    assert!(missed("FAILED: the tests do not pass").contains("lacks its tag"));
    for message in ["Everything is done.", "All tests finished successfully.", "", "\n \n", "COMPLETE, mostly"] {
        assert_eq!(read(message), Claim::None { near_miss: None }, "{message:?}");
    }
}

#[test]
fn a_status_block_is_no_signal_and_an_explicit_no_beats_a_signal() {
    let block = "---STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: false\nREMAINING: two sections\n---END---";
    assert_eq!(read(block), Claim::None { near_miss: None });
    assert!(missed(&format!("{block}\n<promise>COMPLETE</promise>")).contains("contradicted"));
    assert_eq!(read(&format!("{block}\n<promise>FAILED: r</promise>")), failed("r"));
}

#[test]
fn a_reason_may_run_over_several_lines_and_a_completion_may_not() {
    assert_eq!(read("<promise>FAILED: two tests are red:\n- a\n- b\n</promise>"), failed("two tests are red: - a - b"));
    assert!(matches!(read("<promise>\nCOMPLETE\n</promise>"), Claim::None { near_miss: Some(_) }));
}

#[test]
fn an_own_word_counts_like_the_fixed_ones() {
    let grammar = SignalGrammar::with_own_words(["ALL DONE HERE"]).unwrap();
    let story = StoryId::from("S-1");
    assert_eq!(grammar.completion(), "ALL DONE HERE");
    assert_eq!(claim("ok\nall done here", &story, &grammar), Claim::Complete);
    assert_eq!(claim("<promise>COMPLETE</promise>", &story, &grammar), Claim::Complete);
    let sentence = claim("I say ALL DONE HERE later.", &story, &grammar);
    assert!(matches!(sentence, Claim::None { near_miss: Some(_) }));
}

#[test]
fn an_empty_own_word_is_an_error() {
    for blank in ["", " ", "\t\n"] {
        assert_eq!(SignalGrammar::with_own_words([blank]), Err(OwnWordError::Blank));
    }
    assert!(matches!(SignalGrammar::with_own_words(["a\nb"]), Err(OwnWordError::SeveralLines { .. })));
}

#[test]
fn a_near_miss_is_cut_by_characters() {
    let text = missed(&format!("{}<promise>COMPLETE</promise>", "日".repeat(500)));
    assert!(text.ends_with('…') && text.chars().count() < 220, "{text}");
}
