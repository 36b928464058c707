//! The one way to start a program: bounded in time and output, owned until it is confirmed gone.
