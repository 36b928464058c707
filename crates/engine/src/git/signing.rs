//! Why a commit could not be signed, in the words that tell a person something.

/// What of git's output says why: not the messages of `GnuPG` for programs, nor what git says of itself.
pub(super) fn why_not(output: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in output.lines().map(|line| line.trim().trim_start_matches("error: ")) {
        let says_nothing = line.is_empty()
            || line.starts_with("[GNUPG:]")
            || line.starts_with("gpg failed to sign the data")
            || matches!(line, "(no gpg output)" | "fatal: failed to write commit object");
        if !says_nothing && !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() { "the signing program failed and did not say why".to_owned() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_that_failed_is_explained_in_the_words_that_tell_something() {
        let gpg = "error: gpg failed to sign the data:\n[GNUPG:] KEY_CONSIDERED 0 0\n[GNUPG:] FAILURE sign 17\ngpg: skipped \
                   \"me\": No secret key\ngpg: signing failed: No secret key\nfatal: failed to write commit object";
        assert_eq!(why_not(gpg), "gpg: skipped \"me\": No secret key; gpg: signing failed: No secret key");
        let ssh =
            "error: Couldn't load public key /x: No such file or directory?\n\nfatal: failed to write commit object";
        assert_eq!(why_not(ssh), "Couldn't load public key /x: No such file or directory?");
        let silent = "error: gpg failed to sign the data:\n(no gpg output)\nfatal: failed to write commit object";
        assert_eq!(why_not(silent), "the signing program failed and did not say why");
    }
}
