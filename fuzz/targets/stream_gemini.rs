#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ralphloop_fuzz::stream(ralphloop_agent::client::Format::Gemini, data));
