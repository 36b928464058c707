#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ralphloop_fuzz::reader(ralphloop_core::plan::Scheme::Markdown, data));
