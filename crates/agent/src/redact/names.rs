//! Which variables are secret, by their names and by what their values are.

/// Values shorter than this are no secrets: they stand in too many other places.
pub(super) const SHORTEST: usize = 8;

/// Whether a variable is kept from programs that need no secrets: its name looks secret, or its value is an address with a
/// password in it.
pub fn is_secret(name: &str, value: &[u8]) -> bool {
    names_a_secret(name) || password_in(value).is_some_and(|password| !password.is_empty())
}

/// `GITHUB_TOKEN`, `apiKey`, `DB_PASSWORD`; not `MAX_TOKENS`, `KEYBOARD`, `SSH_KEY_PATH`.
pub(super) fn names_a_secret(name: &str) -> bool {
    const WORDS: [&str; 15] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "PASSWORT",
        "PASS",
        "PWD",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "APIKEY",
        "DSN",
    ];
    const ENDINGS: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "ACCESSKEY", "PRIVATEKEY"];
    const PLACES: [&str; 8] = ["PATH", "FILE", "DIR", "SOCK", "HOME", "URL", "NAME", "COMMAND"];
    // The shell's own, which are folders.
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let name = name.to_ascii_uppercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let is_place = parts.last().is_some_and(|last| PLACES.contains(last));
    !is_place && parts.iter().any(|part| WORDS.contains(part) || ENDINGS.iter().any(|ending| part.ends_with(ending)))
}

/// Too short, a plain number, or a path: masking it would spoil the log and hide nothing.
pub(super) fn is_ordinary(value: &[u8]) -> bool {
    let is_number = value.iter().all(u8::is_ascii_digit) && value.len() < 16;
    value.trim_ascii().len() < SHORTEST || is_number || value.starts_with(b"/") || value.starts_with(b"~/")
}

/// The password in `scheme://user:password@host`.
pub(super) fn password_in(value: &[u8]) -> Option<&[u8]> {
    let after_scheme = memchr::memmem::find(value, b"://")? + 3;
    let rest = &value[after_scheme..];
    let authority = &rest[..rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len())];
    let user = &authority[..memchr::memrchr(b'@', authority)?];
    let colon = memchr::memchr(b':', user)?;
    Some(&user[colon + 1..])
}
