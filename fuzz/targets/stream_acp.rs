#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ralphloop_fuzz::conversation(data));
