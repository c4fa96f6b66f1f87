//! The operating system's environment, over tokio.
