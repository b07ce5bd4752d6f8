"""The command line: what people type, what they read, and exit codes."""
