//! What the tests of ralphloop share: a scripted model API, a scripted agent and hermetic scenes to run the binary in.
#![forbid(unsafe_code)]

pub mod claude;
pub mod model_api;
#[expect(clippy::expect_used, reason = "runs in tests only, where a broken world must end the test")]
pub mod scene;
pub mod script;
pub mod secrets;
