//! Pure readers and minimal writers of the files in which work is written down: text in, stories and byte edits out.
#![forbid(unsafe_code)]
